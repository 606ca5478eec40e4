/** One report as a person can read it: each bit, what it can mean, and the bytes that were sent. */

/**
 * A new element with text or children. Text is never read as HTML.
 * @param {string} name a tag, and classes after dots
 * @param {...(string | Node)} children
 */
export function element(name, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag);
  made.classList.add(...classes);
  made.append(...children);
  return made;
}

/** @param {number} share */
const percent = (share) => `${Math.round(100 * share)}\u00a0%`;

/**
 * How likely each category is after one report, for somebody who held all to be equally likely: a bit
 * is 1 with q* for the category that was chosen, and with p* for the others.
 * @param {string} bits bit k-1 first
 * @param {{ categories: string[], params: { f: number, p: number, q: number } }} definition
 * @returns {number[]}
 */
export function guesses(bits, { categories, params: { f, p, q } }) {
  const one = (/** @type {number} */ rate) => (f / 2) * (p + q) + (1 - f) * rate;
  const ratio = (/** @type {string} */ bit) => (bit === "1" ? one(q) / one(p) : (1 - one(q)) / (1 - one(p)));
  const weights = categories.map((_, index) => ratio(bits[bits.length - 1 - index]));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/** The bits of a category, each with its name. @param {string} bits @param {any} definition */
function namedBits(bits, definition) {
  const chances = guesses(bits, definition);
  const box = element("div.named");
  definition.categories.forEach((/** @type {string} */ name, /** @type {number} */ index) => {
    const bit = bits[bits.length - 1 - index];
    const mark = element(bit === "1" ? "i.one" : "i");
    mark.setAttribute("aria-hidden", "true");
    box.append(
      element(
        "div",
        element("strong", name),
        element("span.bit", mark, `bit ${bit}`),
        element("span.meta", `guess: ${percent(chances[index])}`),
      ),
    );
  });
  return box;
}

/** The bits of a string, as squares. @param {string} bits */
function squares(bits) {
  const box = element("div.bits");
  box.setAttribute("role", "img");
  const ones = bits.replaceAll("0", "").length;
  box.setAttribute("aria-label", `${bits.length} bits, ${ones} of them 1`);
  for (const bit of [...bits].reverse()) box.append(element(bit === "1" ? "i.one" : "i"));
  return box;
}

/**
 * @param {any} report of client.preview()
 * @param {any} definition its collection
 * @param {string} state in words
 * @param {boolean} left whether it has left the device
 */
export function reportItem(report, definition, state, left) {
  const item = element("li.report");
  item.dataset.token = report.token;
  const head = element("header", element("h3", `${report.collection}, ${report.period}`));
  head.append(element(left ? "span.badge.sent" : "span.badge", state));
  const meaning = definition.categories
    ? "What somebody could guess from this report, who held each answer to be equally likely before."
    : "Your link sets a few of these bits, chance sets the others. Any link could have given this row.";
  const raw = element("dl.raw");
  for (const [name, value] of [
    ["Bits, the last first", report.bits],
    ["Group of hash functions", `${report.cohort}, drawn once by this browser`],
    ["Token, so that a repeated upload counts once", report.token],
    ["All bytes of the message", report.body],
  ]) {
    raw.append(element("div", element("dt", name), element("dd", element("code", value))));
  }
  item.append(
    head,
    definition.categories ? namedBits(report.bits, definition) : squares(report.bits),
    element("p.meta", meaning),
    element("details", element("summary", "Everything in the message"), raw),
  );
  return item;
}
