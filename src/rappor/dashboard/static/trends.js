// Fits the small multiples to the width of the page: 4 columns, 3 on a tablet, 2 on a phone.
"use strict";

const AXIS = 46, GAP = 16, PADDING = 8, LETTER = 7;

function fit(figure) {
  const holder = document.getElementById(figure.dataset.chart);
  const given = JSON.parse(holder.textContent);
  const room = figure.clientWidth;
  const columns = room < 640 ? 2 : room < 960 ? 3 : 4;
  const width = Math.max(Math.floor((room - AXIS - PADDING - GAP * (columns - 1)) / columns), 90);
  if (given.light.spec.width === width && given.light.columns === columns) return false;
  for (const part of [given.light, given.dark]) {
    if (part.spec) part.spec.width = width;
    if (part.facet) part.facet.header.labelLimit = width;
    for (const { encoding } of part.spec?.layer ?? []) {
      const axis = encoding?.x?.axis;
      if (!axis?.values) continue;
      const letters = axis.values.reduce((sum, period) => sum + period.length + 1, 0);
      if (letters * LETTER > width) axis.labelExpr = "slice(datum.label, 5)"; // without the year
      else delete axis.labelExpr;
    }
  }
  given.light.columns = columns;
  // If the last row is not full, an axis for each column would have no chart above it.
  const count = new Set(given.light.data.values.map((each) => each.line)).size;
  given.light.resolve.axis.x = count > columns && count % columns ? "independent" : "shared";
  holder.textContent = JSON.stringify(given);
  return true;
}

for (const figure of document.querySelectorAll("figure[data-multiples]")) {
  fit(figure);
  let timer = 0;
  new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (fit(figure)) figure.dispatchEvent(new CustomEvent("refit", { bubbles: true }));
    }, 150);
  }).observe(figure);
}
