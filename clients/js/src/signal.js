/**
 * A value of any kind -> its true filter B and the bytes that stand for it in the memo.
 *
 * Strings are memoized by value, tuples by what the view of the cohort shows. Every other kind is
 * memoized by its bits: two numbers in one range share one memo. Error messages never repeat the value.
 */

import { encodable, frame, own, utf8 } from "./bytes.js";
import { checkArgument, checkValue, sentence } from "./errors.js";
import { show } from "./params.js";
import { rapporV1 } from "./placement.js";
import { exact, isBelow } from "./rational.js";

/** @typedef {"string" | "category" | "boolean" | "ordinal" | "bits" | "tuple"} Kind */
/** @typedef {import("./rational.js").Rational} Edge */
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

/** @param {unknown} kind */
export const isFieldKind = (kind) => KINDS.slice(0, 4).includes(/** @type {string} */ (kind));

/** @param {unknown} name */
export const isFieldName = (name) => typeof name === "string" && /^[a-z][a-z0-9_]{0,31}$/.test(name);

/**
 * Edges as exact rationals, in strictly increasing order, or an error.
 * @param {Edges | undefined} edges
 * @returns {Edge[]}
 */
export function checkEdges(edges) {
  const points = (Array.isArray(edges) ? edges : []).map((edge) => (edge?.below ? edge : exact(edge)));
  checkArgument(
    points.length && points.every((edge, at) => edge && (!at || isBelow(points[at - 1], edge))),
    sentence`edges must be one or more finite numbers in strictly increasing order`,
  );
  return points;
}

/**
 * Packed bits, all 0 but these.
 * @param {number} k
 * @param {Iterable<number>} ones
 */
function bitsOf(k, ones) {
  const bits = new Uint8Array((k + 7) >> 3);
  for (const bit of ones) bits[bit >> 3] |= 1 << (bit & 7);
  return bits;
}

/**
 * K packed bits from a bigint or a whole number (bit i is bit i), or from k truth values, bit 0 first.
 * @param {unknown} value
 * @param {number} k
 * @returns {Uint8Array}
 */
function freeBits(value, k) {
  const number = Number.isSafeInteger(value) ? BigInt(/** @type {number} */ (value)) : value;
  const isNumber = typeof number === "bigint" && BigInt.asUintN(k, number) === number;
  const truths = isNumber ? Array.from(number.toString(2).padStart(k, "0"), Number).reverse() : value;
  checkValue(
    Array.isArray(truths) && truths.length === k && truths.every((bit) => bit === !!bit || bit === +!!bit),
    sentence`value must be ${k} truth values, bit 0 first, or a whole number of ${k} bits`,
  );
  return bitsOf(
    k,
    truths.flatMap((bit, at) => (bit ? [at] : [])),
  );
}

/**
 * The bytes of a string value: text as UTF-8 without normalisation, bytes as they are.
 * @param {unknown} value
 * @returns {Uint8Array}
 */
function valueBytes(value) {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  checkValue(typeof value === "string", sentence`value must be text or a Uint8Array`);
  return utf8(value);
}

/**
 * How a value of a kind of fields is told from others.
 * @typedef {object} Part
 * @property {readonly string[]} texts categories or edges, as the memo digest has them
 * @property {number} count how many bits it needs, if it has a bit for each value
 * @property {(value: any) => number[]} ones the bit of a value
 * @property {(value: any) => Uint8Array} bytes what stands for a value in a tuple
 */

/**
 * @param {Omit<Field, "name">} field or a collection of one of these kinds
 * @returns {Part}
 */
export function partOf({ kind, categories, edges }) {
  checkArgument(
    !categories === (kind !== "category") && !edges === (kind !== "ordinal"),
    sentence`categories belong to kind 'category', ranges to kind 'ordinal'; got kind '${kind}'`,
  );
  /** @type {Part} */
  const part = { texts: [], count: 1, ones: () => [], bytes: (value) => utf8(String(part.ones(value))) };
  if (categories) {
    const index = new Map(categories.map((category, bit) => [category, bit]));
    part.texts = categories;
    part.count = index.size;
    checkArgument(
      part.count === categories.length,
      sentence`categories must be distinct; one is listed twice`,
    );
    part.ones = (value) => {
      const bit = index.get(value);
      checkValue(bit !== undefined, sentence`value is not one of the categories of this collection`);
      return [bit];
    };
    part.bytes = (value) => utf8(part.ones(value) && value);
  } else if (edges) {
    const points = checkEdges(edges);
    part.texts = points.map(({ above, below }) => `${above.toString(16)}/${below.toString(16)}`);
    part.count = points.length + 1;
    // The number of edges that are not above a number is the range that it lies in.
    part.ones = (value) => {
      const point = typeof value === "string" ? null : exact(value);
      checkValue(point || value === Infinity || value === -Infinity, sentence`value must be a number`);
      return [points.filter((edge) => (point ? !isBelow(point, edge) : value > 0)).length];
    };
  } else if (kind === "boolean") {
    part.ones = (value) => {
      checkValue(typeof value === "boolean", sentence`value must be true or false`);
      return value ? [0] : [];
    };
    part.bytes = (value) => utf8(String(part.ones(value) && value));
  } else part.bytes = valueBytes;
  return part;
}

/**
 * The bytes that stand for a tuple in the view of a cohort. All fields are checked, in every view:
 * whether a client reports does not depend on its cohort.
 * @param {Shape} shape
 * @param {number} cohort
 * @returns {(value: unknown) => Uint8Array}
 */
function viewOf({ fields, views, params: { m } }, cohort) {
  checkArgument(fields && views, sentence`kind 'tuple' needs fields and views`);
  const names = fields.map((field) => field.name);
  const different = new Set(views.map((view) => [...view.fields].sort().join()));
  checkArgument(
    new Set(names).size === names.length &&
      new Set([...names, ...views.flatMap((view) => view.fields)]).size === names.length &&
      names.every((name) => views.some((view) => view.fields.includes(name))) &&
      different.size === views.length &&
      views.reduce((total, view) => total + view.cohorts, 0) === m,
    sentence`fields have different names, and each is in a view; views differ, and have ${m} cohorts together`,
  );
  const parts = fields.map(partOf);
  let left = cohort;
  const chosen = /** @type {View} */ (views.find((view) => (left -= view.cohorts) < 0)).fields;
  return (/** @type {any} */ value) => {
    const given = Object(value);
    checkValue(
      Object.keys(given).length === names.length && names.every((name) => Object.hasOwn(given, name)),
      sentence`value must be an object with the fields ${names.join(", ")}`,
    );
    const encoded = parts.map((part, at) => part.bytes(given[names[at]]));
    return frame(chosen.map((name) => encoded[names.indexOf(name)]));
  };
}

/**
 * Whether a view lists some fields, each once, and has a whole number of cohorts.
 * @param {View} view
 */
export const isView = ({ fields, cohorts }) =>
  fields.length > 0 && new Set(fields).size === fields.length && Number.isInteger(cohorts) && cohorts > 0;

/**
 * Refuse a shape whose parts are not of their types; definitions of collections are checked elsewhere,
 * with a path for each error. How the parts fit together is checked by `signalOf`.
 * @param {Shape} shape
 * @param {Dialects} [dialects]
 */
export function checkShape(
  { kind = "string", dialect = "rappor-v1", categories, fields, views },
  dialects = {},
) {
  checkArgument(KINDS.includes(kind), sentence`kind must be one of ${KINDS.join(", ")}; got ${show(kind)}`);
  checkArgument(
    dialect === "rappor-v1" || own(dialects, dialect),
    sentence`dialect ${show(dialect)} is not built in: pass it as dialects, from rappor/dialects`,
  );
  checkArgument(
    !fields ||
      (Array.isArray(fields) &&
        fields.length > 1 &&
        fields.length < 5 &&
        fields.every((field) => isFieldName(field?.name) && isFieldKind(field.kind))),
    sentence`fields must be two to four, each with a name and a kind`,
  );
  for (const listed of [categories, ...(fields ?? []).map((field) => field.categories)]) {
    checkArgument(
      !listed || (Array.isArray(listed) && listed.length && listed.every(encodable)),
      sentence`categories must be a list of strings of Unicode text, a bit each`,
    );
  }
  checkArgument(
    !views || (Array.isArray(views) && views.every((view) => view && isView(view))),
    sentence`views must be a list, each with some fields and a whole number of cohorts`,
  );
}

/**
 * The function value -> (B, memo input) of one client; an error of code "params" if the parts do
 * not fit together.
 * @param {Shape} shape
 * @param {number} cohort
 * @param {Dialects} [dialects] further ones, of dialects.js
 * @returns {Signal}
 */
export function signalOf(shape, cohort, dialects = {}) {
  const { params, kind = "string", dialect = "rappor-v1", fields, views } = shape;
  const { k, h } = params;
  const place = dialect === "rappor-v1" ? rapporV1 : dialects[dialect];
  const isTuple = kind === "tuple";
  checkArgument(
    isTuple || !(fields || views),
    sentence`fields and views belong to kind 'tuple', not to kind '${kind}'`,
  );
  const placed = place(cohort, params);
  const { bytes, ones, count } = partOf({ ...shape, kind });
  if (isTuple || kind === "string") {
    checkArgument(h < k, sentence`strings need h < k, got h = ${h}, k = ${k}: every filter would be full`);
    const bytesOf = isTuple ? viewOf(shape, cohort) : bytes;
    return (value) => {
      const memo = bytesOf(value);
      return { bits: bitsOf(k, placed(memo)), memo };
    };
  }
  checkArgument(
    kind === "bits" || (h === 1 && k >= count && (k === 1 || kind !== "boolean")),
    sentence`kind '${kind}' sets one of ${count} bits for a value: got h = ${h}, k = ${k}`,
  );
  return (value) => {
    const bits = kind === "bits" ? freeBits(value, k) : bitsOf(k, ones(value));
    return { bits, memo: bits };
  };
}
