/** The six numbers of a collection, checked. A probability is exactly the rational that its double is. */

import { hex, sha256, utf8 } from "./bytes.js";
import { checkArgument, sentence } from "./errors.js";
import { fractionText } from "./rational.js";

/**
 * @typedef {object} Params
 * @property {number} k bits in a report, 1 to 4096
 * @property {number} h hash functions, 1 to 16, at most k
 * @property {number} m cohorts, 1 to 1024
 * @property {number} f share of bits that the permanent response replaces by coin flips, 0 <= f < 1
 * @property {number} p probability that a 0 is reported as 1
 * @property {number} q probability that a 1 is reported as 1; 0 <= p < q <= 1
 */

/**
 * A value for an error message: as JSON, cut to 60 characters.
 * @param {unknown} value
 */
export function show(value) {
  let text;
  try {
    text = typeof value === "string" ? `'${value}'` : (JSON.stringify(value) ?? String(value));
  } catch {
    text = typeof value;
  }
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/**
 * Whether a value is a number within limits.
 * @param {unknown} value
 * @param {number} low
 * @param {number} high
 * @returns {value is number}
 */
export const inRange = (value, low, high) => typeof value === "number" && value >= low && value <= high;

/**
 * @param {unknown} value
 * @param {number} low
 * @param {number} high
 * @param {string} name
 */
export const checkWhole = (value, low, high, name) =>
  checkArgument(
    inRange(value, low, high) && Number.isInteger(value),
    sentence`${name} must be a whole number from ${low} to ${high}, got ${show(value)}`,
  );

/**
 * @param {unknown} value
 * @param {string} limit
 */
const checkShare = (value, limit) =>
  checkArgument(
    inRange(value, 0, 1),
    sentence`${limit[0]} must be a number with 0 <= ${limit}, got ${show(value)}`,
  );

/**
 * The same numbers if each is of its type and range and they fit together, or an error of code "params".
 * @param {Params} given
 * @returns {Params}
 */
export function checkParams(given) {
  const { k, h, m, f, p, q } = given;
  checkWhole(k, 1, 4096, sentence`k`);
  checkWhole(h, 1, 16, sentence`h`);
  checkWhole(m, 1, 1024, sentence`m`);
  checkShare(f, sentence`f < 1`);
  checkShare(p, sentence`p <= 1`);
  checkShare(q, sentence`q <= 1`);
  return fitParams(given);
}

/**
 * The same numbers, each within its range, if they fit together.
 * @param {Params} given
 * @returns {Params}
 */
export function fitParams({ k, h, m, f, p, q }) {
  checkArgument(h <= k, sentence`h must be at most k = ${k}, got h = ${h}`);
  checkArgument(f < 1, sentence`f must satisfy 0 <= f < 1, got 1: f = 1 carries no information`);
  checkArgument(
    p < q,
    sentence`p and q must satisfy 0 <= p < q <= 1, got p = ${p}, q = ${q}${p === q ? ": p = q carries no information" : ""}`,
  );
  checkArgument(
    f || (p && q < 1),
    sentence`f = 0 needs 0 < p and q < 1, got p = ${p}, q = ${q}: some reported bits would be true bits, without any privacy`,
  );
  return { k, h, m, f: f + 0, p: p + 0, q }; // -0 becomes 0
}

/**
 * SHA-256, in hex, of the six exact numbers; it labels everything made with them.
 * @param {Params} given
 * @returns {Promise<string>}
 */
export async function paramsDigest(given) {
  const { k, h, m, f, p, q } = checkParams(given);
  const lines = ["rappor-params-v1", `k=${k}`, `h=${h}`, `m=${m}`];
  for (const [name, value] of Object.entries({ f, p, q })) lines.push(`${name}=${fractionText(value)}`);
  return hex(await sha256(utf8(`${lines.join("\n")}\n`)));
}
