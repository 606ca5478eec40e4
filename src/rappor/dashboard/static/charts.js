// Draws each figure[data-chart] from the specification embedded next to it, in the page's colours.
"use strict";

const night = window.matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map();

// The bundle draws Vega-Lite 5 specifications with Vega 6. That works; its warning is left out.
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
  if (!before) plot.style.minHeight = `${plot.clientHeight}px`; // a lower chart must not move the page
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
