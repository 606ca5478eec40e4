// The heat map of cohorts and bits on a canvas: cells of at least 4 pixels, one colour for noise.
"use strict";

(() => {
  const STOPS = [-6, -4, -2, 2, 4, 6];
  const LEFT = 36, TOP = 18, LEAST = 4, EASY = 8, MOST = 22;

  function colours(prefix, count) {
    const style = getComputedStyle(document.documentElement);
    return Array.from({ length: count }, (_, at) => {
      const code = style.getPropertyValue(`--${prefix}${at + 1}`).trim();
      return [1, 3, 5].map((place) => parseInt(code.slice(place, place + 2), 16));
    });
  }

  function between(value, stops, shades) {
    const at = Math.min(Math.max(value, stops[0]), stops[stops.length - 1]);
    let place = 1;
    while (at > stops[place]) place += 1;
    const share = (at - stops[place - 1]) / (stops[place] - stops[place - 1]);
    const mixed = shades[place - 1].map((one, part) => Math.round(one + share * (shades[place][part] - one)));
    return `rgb(${mixed.join(" ")})`;
  }

  function painter(data, mode) {
    if (mode === "residuals") {
      const shades = colours("d", 6);
      return (value) => between(value, STOPS, shades);
    }
    const shades = colours("s", 5);
    let low = Infinity, high = -Infinity;  // one scale for counts and fitted values
    for (const value of [...data.counts, ...(data.fitted || [])]) {
      if (value !== null && value < low) low = value;
      if (value !== null && value > high) high = value;
    }
    return (value) => between(high > low ? (value - low) / (high - low) : 0, [0, 0.25, 0.5, 0.75, 1], shades);
  }

  function shown(value, digits) {
    if (value === null || value === undefined) return "–";
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return value.toLocaleString("en-US", options).replace("-", "−");
  }

  class HeatMap {
    constructor(figure, data) {
      this.figure = figure;
      this.data = data;
      this.frame = figure.querySelector(".heat-frame");
      this.canvas = figure.querySelector("canvas");
      this.readout = figure.querySelector(".heat-readout");
      this.lit = new Set();
      this.at = null;
      this.canvas.addEventListener("pointermove", (event) => this.point(event));
      this.canvas.addEventListener("pointerdown", (event) => this.point(event));
      this.frame.addEventListener("keydown", (event) => this.key(event));
    }

    get mode() {
      return this.figure.dataset.mode;
    }

    light(cells) {
      const [high, wide] = this.data.block;
      this.lit = new Set(cells.map(([cohort, bit]) => Math.floor(cohort / high) * this.data.columns + Math.floor(bit / wide)));
      this.draw();
    }

    draw() {
      const { rows, columns } = this.data;
      this.size = sizeOf(this.frame, columns);
      const width = LEFT + columns * this.size + 2, height = TOP + rows * this.size + 2;
      const dense = Math.min(Math.max(1, Math.round(window.devicePixelRatio || 1)), 2);
      const scale = Math.max(width, height) * dense > 16000 ? 1 : dense;
      this.canvas.width = width * scale;
      this.canvas.height = height * scale;
      const pen = this.canvas.getContext("2d");
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      this.figure.dataset.cell = this.size;
      this.resize(width, height, scale);
      this.cells(pen);
      this.labels(pen);
      this.boxes(pen);
      this.figure.dataset.drawn = this.mode;
    }

    // The page's policy allows no style attributes in markup; the object model may set sizes.
    resize(width, height, scale) {
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      this.scale = scale;
    }

    cells(pen) {
      const values = this.data[this.mode];
      const paint = painter(this.data, this.mode);
      const { rows, columns } = this.data;
      const gap = this.size >= 8 ? 1 : 0;
      for (let row = 0; row < rows; row += 1) {
        for (let column = 0; column < columns; column += 1) {
          const value = values[row * columns + column];
          if (value === null) continue;
          pen.fillStyle = paint(value);
          pen.fillRect(LEFT + column * this.size, TOP + row * this.size, this.size - gap, this.size - gap);
        }
      }
    }

    labels(pen) {
      const style = getComputedStyle(document.documentElement);
      const [high, wide] = this.data.block;
      pen.fillStyle = style.getPropertyValue("--muted");
      pen.font = `11px ${style.getPropertyValue("--font")}`;
      const every = (room) => [1, 2, 4, 8, 16, 32, 64, 128, 256].find((step) => step * this.size >= room) || 512;
      pen.textBaseline = "middle";
      pen.textAlign = "right";
      for (let row = 0; row < this.data.rows; row += every(13)) {
        pen.fillText(String(row * high), LEFT - 6, TOP + row * this.size + this.size / 2);
      }
      pen.textAlign = "left";
      for (let column = 0; column < this.data.columns; column += every(34)) {
        pen.fillText(String(column * wide), LEFT + column * this.size, TOP / 2);
      }
    }

    boxes(pen) {
      const style = getComputedStyle(document.documentElement);
      const around = (cell, colour, width) => {
        const row = Math.floor(cell / this.data.columns), column = cell % this.data.columns;
        pen.strokeStyle = style.getPropertyValue(colour);
        pen.lineWidth = width;
        pen.strokeRect(LEFT + column * this.size - 0.75, TOP + row * this.size - 0.75, this.size + 0.5, this.size + 0.5);
      };
      for (const cell of this.lit) around(cell, "--text", 1.5);
      if (this.at !== null) around(this.at, "--accent", 2);
    }

    say(cell) {
      const { columns, block: [high, wide], cohorts, bits } = this.data;
      const row = Math.floor(cell / columns), column = cell % columns;
      const span = (from, step, all) => step === 1 ? `${from}` : `${from}–${Math.min(from + step, all) - 1}`;
      const parts = [`counted ${shown(this.data.counts[cell], 0)}`];
      if (this.data.fitted) parts.push(`fitted ${shown(this.data.fitted[cell], 0)}`);
      if (this.data.residuals) parts.push(`residual ${shown(this.data.residuals[cell], 1)} standard deviations`);
      const mean = high * wide > 1 ? ", means" : "";
      this.readout.textContent = `Cohort ${span(row * high, high, cohorts)}, bit ${span(column * wide, wide, bits)}${mean}: ${parts.join(", ")}.`;
    }

    select(cell) {
      if (cell === this.at) return;
      this.at = cell;
      this.draw();
      this.say(cell);
    }

    point(event) {
      const box = this.canvas.getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left - LEFT) / this.size);
      const row = Math.floor((event.clientY - box.top - TOP) / this.size);
      if (column < 0 || row < 0 || column >= this.data.columns || row >= this.data.rows) return;
      this.select(row * this.data.columns + column);
    }

    key(event) {
      const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
      const move = moves[event.key];
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const { rows, columns } = this.data;
      const now = this.at === null ? 0 : this.at;
      const row = Math.min(Math.max(Math.floor(now / columns) + (this.at === null ? 0 : move[0]), 0), rows - 1);
      const column = Math.min(Math.max((now % columns) + (this.at === null ? 0 : move[1]), 0), columns - 1);
      this.select(row * columns + column);
      const left = LEFT + column * this.size, top = TOP + row * this.size;
      const near = (at, from, size) => Math.min(Math.max(from, at + 2 * this.size - size), at - 2 * this.size);
      this.frame.scrollLeft = near(left, this.frame.scrollLeft, this.frame.clientWidth);
      this.frame.scrollTop = near(top, this.frame.scrollTop, this.frame.clientHeight);
    }
  }

  function sizeOf(frame, columns) {
    const room = frame.clientWidth - LEFT - 2;
    const least = columns <= 256 ? EASY : LEAST;  // a finger can hit 8 pixels; larger cells would scroll too far
    return Math.min(Math.max(Math.floor(room / columns), least), MOST);
  }

  async function begin(figure) {
    const { rows, columns } = figure.dataset;
    const frame = figure.querySelector(".heat-frame");  // reserves its height while the cells are fetched
    figure.querySelector("canvas").style.height = `${TOP + rows * sizeOf(frame, columns) + 2}px`;
    const answer = await fetch(figure.dataset.cells, { headers: { accept: "application/json" } });
    if (!answer.ok) throw new Error(`cells: ${answer.status}`);
    const map = new HeatMap(figure, await answer.json());
    map.light(map.data.lit);
    listen(figure, map);
    let room = map.frame.clientWidth;
    new ResizeObserver(() => {
      if (map.frame.clientWidth === room) return;
      room = map.frame.clientWidth;
      map.draw();
    }).observe(map.frame);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map.draw());
  }

  function listen(figure, map) {
    const choices = document.querySelectorAll("[data-heat-mode]");
    for (const choice of choices) {
      choice.addEventListener("click", (event) => {
        event.preventDefault();
        figure.dataset.mode = choice.dataset.heatMode;
        for (const other of choices) {
          if (other === choice) other.setAttribute("aria-current", "true");
          else other.removeAttribute("aria-current");
        }
        for (const legend of figure.querySelectorAll("[data-legend]")) {
          legend.hidden = (legend.dataset.legend === "residuals") !== (figure.dataset.mode === "residuals");
        }
        history.replaceState(null, "", choice.href);
        map.draw();
      });
    }
    const form = document.querySelector("form[data-heat-light]");
    const field = form && form.elements.light;
    async function light(string) {
      const address = new URL(form.dataset.heatLight, location.href);
      address.searchParams.set("light", string);
      const answer = await fetch(address, { headers: { accept: "application/json" } });
      if (!answer.ok) return;
      map.light((await answer.json()).cells);
      figure.dataset.light = string;
      const here = new URL(location.href);
      if (string) here.searchParams.set("light", string);
      else here.searchParams.delete("light");
      history.replaceState(null, "", here);
      const told = figure.querySelector(".heat-lit");
      told.textContent = string ? `Boxed: the bits of ${string}.` : "";
    }
    if (!form) return;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      light(field.value);
    });
    field.addEventListener("change", () => light(field.value));
    for (const link of document.querySelectorAll("a[data-light]")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        field.value = link.dataset.light;
        light(link.dataset.light);
        figure.scrollIntoView({ block: "nearest" });
      });
    }
  }

  for (const figure of document.querySelectorAll("figure[data-cells]")) {
    begin(figure).catch((error) => {
      figure.dataset.drawn = "failed";
      figure.querySelector(".heat-readout").textContent = "The map could not be loaded. The table below lists the cells that stand out.";
      console.error(error);
    });
  }
})();
