/**
 * A value of any kind -> its true filter B and the bytes that stand for it in the memo.
 *
 * Strings are memoized by value, tuples by what the view of the cohort shows. Every other kind is
 * memoized by its bits: two numbers in one range share one memo. Error messages never repeat the value.
 */

import { encodable, frame, utf8 } from "./bytes.js";
import { paramsError, RapporError, sentence } from "./errors.js";
import { show } from "./params.js";
import { rapporV1 } from "./placement.js";

/** @typedef {"string" | "category" | "boolean" | "ordinal" | "bits" | "tuple"} Kind */
/** @typedef {{ above: bigint, below: bigint }} Edge an exact rational in lowest terms, below > 0 */
/** @typedef {(value: unknown) => { bits: Uint8Array, memo: Uint8Array }} Signal */
/** @typedef {Record<string, import("./placement.js").Dialect>} Dialects */

/**
 * What decides how a value becomes bits.
 * @typedef {object} Shape
 * @property {import("./params.js").Params} params
 * @property {Kind} [kind]
 * @property {string} [dialect]
 * @property {readonly string[] | null} [categories] of kind category, a bit for each
 * @property {Edges} [edges] of kind ordinal, increasing
 * @property {readonly Field[] | null} [fields] of kind tuple, two to four
 * @property {readonly View[] | null} [views] of kind tuple: the first has the first cohorts, and so on
 */

/** @typedef {readonly (number | bigint | string | Edge)[] | null} Edges */

/**
 * One field of a tuple.
 * @typedef {object} Field
 * @property {string} name
 * @property {Kind} kind string, category, boolean or ordinal
 * @property {readonly string[] | null} [categories]
 * @property {Edges} [edges]
 */

/** @typedef {{ fields: readonly string[], cohorts: number }} View fields, and how many cohorts report them */

export const KINDS = ["string", "category", "boolean", "ordinal", "bits", "tuple"];

/** @param {unknown} name */
export const isFieldName = (name) => typeof name === "string" && /^[a-z][a-z0-9_]{0,31}$/.test(name);

/** @param {string} message */
const refused = (message) => new RapporError("value", message);

/**
 * @param {bigint} one
 * @param {bigint} other
 * @returns {bigint}
 */
const divisor = (one, other) => (other ? divisor(other, one % other) : one < 0n ? -one : one);

/**
 * A finite double, a bigint, or a text such as "-1/1000", as an exact rational; null for the rest.
 * @param {unknown} number
 * @returns {Edge | null}
 */
export function exact(number) {
  let above = 0n;
  let below = 1n;
  if (typeof number === "bigint") above = number;
  else if (typeof number === "number" && Number.isFinite(number)) {
    let rest = number;
    for (; !Number.isInteger(rest); below *= 2n) rest *= 2; // exact: only the exponent changes
    above = BigInt(rest);
  } else {
    const found = typeof number === "string" && /^(-?\d{1,400})(?:\/(\d{1,400}))?$/.exec(number);
    if (!found) return null;
    above = BigInt(found[1]);
    below = BigInt(found[2] ?? 1);
    if (!below) return null;
  }
  const common = divisor(above, below);
  return { above: above / common, below: below / common };
}

/**
 * One edge as an exact rational, or an error.
 * @param {number | bigint | string | Edge} edge
 * @returns {Edge}
 */
function checkEdge(edge) {
  const found = typeof edge === "object" ? edge : exact(edge);
  if (found) return found;
  throw paramsError(sentence`edges must be finite numbers, got ${show(edge)}`);
}

/**
 * Edges as exact rationals, in strictly increasing order, or an error.
 * @param {Edges | undefined} edges
 * @returns {Edge[]}
 */
export function checkEdges(edges) {
  const points = Array.isArray(edges) ? edges.map(checkEdge) : [];
  if (!points.length || points.some((edge, at) => at && !isBelow(points[at - 1], edge))) {
    throw paramsError(sentence`edges must be one or more numbers in strictly increasing order`);
  }
  return points;
}

/**
 * @param {Edge} one
 * @param {Edge} other
 */
const isBelow = (one, other) => one.above * other.below < other.above * one.below;

/**
 * The number of edges that are not above a number, which is the range that it lies in.
 * @param {unknown} value
 * @param {Edge[]} edges
 * @returns {number}
 */
function rangeOf(value, edges) {
  if (value === Infinity) return edges.length;
  if (value === -Infinity) return 0;
  const point = typeof value === "string" ? null : exact(value);
  if (!point) throw refused(sentence`value must be a number`);
  return edges.filter((edge) => !isBelow(point, edge)).length;
}

/**
 * K packed bits from a bigint or a whole number (bit i is bit i), or from k truth values, bit 0 first.
 * @param {unknown} value
 * @param {number} k
 * @returns {Uint8Array}
 */
function freeBits(value, k) {
  const bits = new Uint8Array((k + 7) >> 3);
  if (Array.isArray(value) && value.length === k && value.every((bit) => [0, 1, false, true].includes(bit))) {
    value.forEach((bit, at) => {
      if (bit) bits[at >> 3] |= 1 << (at & 7);
    });
    return bits;
  }
  const number = Number.isSafeInteger(value) ? BigInt(Number(value)) : value;
  if (typeof number === "bigint" && number >= 0n && !(number >> BigInt(k))) {
    let rest = number;
    for (let byte = 0; rest; byte++, rest >>= 8n) bits[byte] = Number(rest & 255n);
    return bits;
  }
  throw refused(sentence`value must be ${k} truth values, bit 0 first, or a whole number of ${k} bits`);
}

/**
 * The bytes of a string value: text as UTF-8 without normalisation, bytes as they are.
 * @param {unknown} value
 * @returns {Uint8Array}
 */
function valueBytes(value) {
  if (typeof value === "string") return utf8(value);
  if (value instanceof Uint8Array) return value.slice();
  throw refused(sentence`value must be text or a Uint8Array`);
}

/**
 * @param {readonly string[] | null | undefined} categories
 * @returns {Map<string, number>}
 */
function categoryIndex(categories) {
  if (!Array.isArray(categories) || !categories.length) {
    throw paramsError(sentence`kind 'category' needs categories: a list of strings, a bit each`);
  }
  if (!categories.every((category) => typeof category === "string" && encodable(category))) {
    throw paramsError(sentence`categories must be Unicode sentence`);
  }
  const index = new Map(categories.map((category, bit) => [category, bit]));
  if (index.size !== categories.length) {
    throw paramsError(sentence`categories must be distinct; one is listed twice`);
  }
  return index;
}

/**
 * @param {unknown} value
 * @param {Map<string, number>} index
 * @returns {number}
 */
function categoryBit(value, index) {
  const bit = typeof value === "string" ? index.get(value) : undefined;
  if (bit === undefined) {
    throw refused(sentence`value is not one of the ${index.size} categories of this collection`);
  }
  return bit;
}

/** @param {unknown} value */
function checkBoolean(value) {
  if (typeof value !== "boolean") throw refused(sentence`value must be true or false`);
  return value;
}

/**
 * The canonical bytes of a field's value: the text of a string or category, true or false, or the
 * index of a number's range.
 * @param {Field} field
 * @returns {(value: unknown) => Uint8Array}
 */
export function partOf({ name, kind, categories, edges }) {
  if (
    !isFieldName(name) ||
    !KINDS.slice(0, 4).includes(kind) ||
    !categories !== (kind !== "category") ||
    !edges !== (kind !== "ordinal")
  ) {
    throw paramsError(sentence`field ${show(name)}: name, kind, categories and ranges must fit together`);
  }
  if (kind === "string") return valueBytes;
  if (kind === "boolean") return (value) => utf8(String(checkBoolean(value)));
  if (kind === "ordinal") {
    const points = checkEdges(edges);
    return (value) => utf8(String(rangeOf(value, points)));
  }
  const index = categoryIndex(categories);
  return (value) => {
    categoryBit(value, index); // refuses what is not listed
    return valueBytes(value);
  };
}

/**
 * The bytes that stand for a tuple in the view of a cohort. All fields are checked, in every view:
 * whether a client reports does not depend on its cohort.
 * @param {Shape} shape
 * @param {number} cohort
 * @returns {(value: unknown) => Uint8Array}
 */
function viewOf({ fields, views, params: { m } }, cohort) {
  if (!Array.isArray(fields) || !Array.isArray(views)) {
    throw paramsError(sentence`kind 'tuple' needs fields and views`);
  }
  const parts = new Map(fields.map((field) => [field.name, partOf(field)]));
  const seen = new Set(views.flatMap((view) => view.fields));
  const different = new Set(views.map((view) => [...view.fields].sort().join()));
  if (
    parts.size !== fields.length ||
    parts.size < 2 ||
    parts.size > 4 ||
    seen.size !== parts.size ||
    [...seen].some((name) => !parts.has(name)) ||
    different.size !== views.length ||
    views.some((view) => !isView(view)) ||
    views.reduce((total, view) => total + view.cohorts, 0) !== m
  ) {
    throw paramsError(
      sentence`two to four fields of different names are each in a view; views differ, and have ${m} cohorts together`,
    );
  }
  let left = cohort;
  const chosen = /** @type {View} */ (views.find((view) => (left -= view.cohorts) < 0)).fields;
  return (/** @type {any} */ value) => {
    const given = Object(value);
    if (
      Object.keys(given).length !== parts.size ||
      [...parts.keys()].some((name) => !Object.hasOwn(given, name))
    ) {
      throw refused(sentence`value must be an object with the fields ${[...parts.keys()].join(", ")}`);
    }
    const encoded = new Map([...parts].map(([name, part]) => [name, part(given[name])]));
    return frame(...chosen.map((name) => /** @type {Uint8Array} */ (encoded.get(name))));
  };
}

/**
 * Whether a view lists some fields, each once, and has a whole number of cohorts.
 * @param {View} view
 */
export const isView = ({ fields, cohorts }) =>
  fields.length > 0 && new Set(fields).size === fields.length && Number.isInteger(cohorts) && cohorts > 0;

/**
 * The function value -> (B, memo input) of one client; an error of code "params" if the parts do
 * not fit together.
 * @param {Shape} shape
 * @param {number} cohort
 * @param {Dialects} [dialects] further ones, of dialects.js
 * @returns {Signal}
 */
export function signalOf(shape, cohort, dialects = {}) {
  const { params, kind = "string", dialect = "rappor-v1", categories, edges } = shape;
  const { k, h } = params;
  if (!KINDS.includes(kind)) {
    throw paramsError(sentence`kind must be one of ${KINDS.join(", ")}; got ${show(kind)}`);
  }
  const place = dialect === "rappor-v1" ? rapporV1 : Object.hasOwn(dialects, dialect) && dialects[dialect];
  if (!place) {
    throw paramsError(
      sentence`dialect ${show(dialect)} is not built in: pass it as dialects, from rappor/dialects`,
    );
  }
  if (categories && kind !== "category") {
    throw paramsError(sentence`categories belong to kind 'category', not to kind '${kind}'`);
  }
  if (edges && kind !== "ordinal") {
    throw paramsError(sentence`ranges belong to kind 'ordinal', not to kind '${kind}'`);
  }
  /** @param {number} bit */
  const oneBit = (bit) => {
    const bits = new Uint8Array((k + 7) >> 3);
    if (bit >= 0) bits[bit >> 3] |= 1 << (bit & 7);
    return bits;
  };
  /**
   * @param {number} needed
   * @param {string} what
   */
  const enough = (needed, what) => {
    if (k < needed) {
      throw paramsError(
        sentence`k must be at least ${needed} for ${needed} ${what} of kind '${kind}', got k = ${k}`,
      );
    }
  };
  /** @param {(value: unknown) => Uint8Array} predicate @returns {Signal} */
  const byBits = (predicate) => (value) => {
    const bits = predicate(value);
    return { bits, memo: bits };
  };
  const placed = place(cohort, params);
  if (kind !== "tuple" && (shape.fields || shape.views)) {
    throw paramsError(sentence`fields and views belong to kind 'tuple', not to kind '${kind}'`);
  }
  if (kind === "string" || kind === "tuple") {
    if (h >= k) {
      throw paramsError(sentence`strings need h < k, got h = ${h}, k = ${k}: every filter would be full`);
    }
    const bytesOf = kind === "string" ? valueBytes : viewOf(shape, cohort);
    return (value) => {
      const memo = bytesOf(value);
      const bits = oneBit(-1);
      for (const bit of placed(memo)) bits[bit >> 3] |= 1 << (bit & 7);
      return { bits, memo };
    };
  }
  if (kind === "bits") return byBits((value) => freeBits(value, k));
  if (h !== 1) {
    throw paramsError(sentence`kind '${kind}' sets one bit for a value: h must be 1, got ${h}`);
  }
  if (kind === "category") {
    const index = categoryIndex(categories);
    enough(index.size, "categories");
    return byBits((value) => oneBit(categoryBit(value, index)));
  }
  if (kind === "ordinal") {
    const points = checkEdges(edges);
    enough(points.length + 1, "ranges");
    return byBits((value) => oneBit(rangeOf(value, points)));
  }
  if (k !== 1) throw paramsError(sentence`k must be 1 for kind 'boolean', got k = ${k}`);
  return byBits((value) => oneBit(checkBoolean(value) ? 0 : -1));
}
