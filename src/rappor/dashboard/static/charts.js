// Draws each figure[data-chart] from the specification embedded beside it, in the page's colours.
"use strict";

const night = window.matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map();

// The bundle draws what Vega-Lite 5 makes with Vega 6, which works; it need not say so each time.
const warn = console.warn.bind(console);
console.warn = (...said) => {
  if (!String(said[0]).startsWith("The compiled spec uses Vega")) warn(...said);
};

function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : night.matches;
}

function specification(figure) {
  const given = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
  if (!given.light) return given;
  return dark() ? { ...given.light, ...given.dark } : given.light;
}

async function draw(figure) {
  const before = drawn.get(figure);
  const plot = figure.querySelector(".plot");
  if (!before) plot.style.minHeight = `${plot.clientHeight}px`; // a chart that is lower moves nothing
  const result = await window.vegaEmbed(plot, specification(figure), {
    actions: false,
    ast: true,
    defaultStyle: false,
    mode: "vega-lite",
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  });
  if (before) before.finalize();
  drawn.set(figure, result);
  figure.dataset.drawn = dark() ? "dark" : "light";
  figure.dispatchEvent(new CustomEvent("drawn", { bubbles: true, detail: result }));
}

function tryToDraw(figure) {
  draw(figure).catch((error) => {
    figure.dataset.drawn = "failed";
    console.error(error);
  });
}

function drawAll() {
  for (const figure of document.querySelectorAll("figure[data-chart]")) tryToDraw(figure);
}

night.addEventListener("change", drawAll);
document.addEventListener("refreshed", drawAll);
document.addEventListener("refit", (event) => {
  event.target.querySelector(".plot").style.minHeight = "";
  tryToDraw(event.target);
});
drawAll();
