// Fits the small multiples to the page before they are drawn: 4 columns, 2 on a phone.
"use strict";

for (const figure of document.querySelectorAll("figure[data-multiples]")) {
  const holder = document.getElementById(figure.dataset.chart);
  const given = JSON.parse(holder.textContent);
  const room = figure.clientWidth;
  const columns = room < 640 ? 2 : room < 960 ? 3 : 4;
  const axis = 46, gap = 16, padding = 8;
  const width = Math.max(Math.floor((room - axis - padding - gap * (columns - 1)) / columns), 90);
  for (const part of [given.light, given.dark]) {
    if (part.spec) part.spec.width = width;
    if (part.facet) part.facet.header.labelLimit = width;
  }
  given.light.columns = columns;
  // Below a last row that is not full, an axis for each column would hang in the air.
  const count = new Set(given.light.data.values.map((each) => each.line)).size;
  given.light.resolve.axis.x = count > columns && count % columns ? "independent" : "shared";
  holder.textContent = JSON.stringify(given);
}
