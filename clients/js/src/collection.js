/**
 * A collection's definition, as `rappor collection export --format json` writes it, checked as every
 * client checks it: an error has the same code and the same path in all of them (docs/clients.md).
 */

import { encodable, own } from "./bytes.js";
import { RapporError, sentence } from "./errors.js";
import { memoDigest } from "./memo.js";
import { fitParams } from "./params.js";
import { daysOf, periodOf, startOf } from "./periods.js";
import { exact } from "./rational.js";
import { checkEdges, isFieldKind, isFieldName, isView, KINDS, partOf, signalOf } from "./signal.js";

/**
 * @typedef {object} Definition
 * @property {string} name
 * @property {number} version
 * @property {import("./signal.js").Kind} kind
 * @property {import("./params.js").Params} params
 * @property {string} description
 * @property {string} dialect
 * @property {"day" | "week"} period
 * @property {Record<string, string[]>} dimensions
 * @property {number} reports_per_period
 * @property {number} max_values
 * @property {number} max_epsilon
 * @property {boolean} null_reports
 * @property {boolean} one_time
 * @property {boolean} budget
 * @property {{ from: string, p: number, q: number }[]} schedule
 * @property {number} clients_per_person
 * @property {string[]} [categories]
 * @property {{ edges: string[] }} [ranges]
 * @property {(import("./signal.js").Field & { ranges?: { edges: string[] } })[]} [fields]
 * @property {import("./signal.js").View[]} [views]
 * @property {string} [group]
 * @property {string} [expires]
 */

/**
 * What the rest of the client uses.
 * @typedef {Definition & { edges?: import("./signal.js").Edge[], digest: Uint8Array, lastDay: number }} Collection
 */

/** @param {string} definitionCode @param {string} path @param {string} message @returns {never} */
function refuse(definitionCode, path, message) {
  const where = path && `${path}: `;
  throw Object.assign(new RapporError("params", sentence`${where}${message}`), { definitionCode, path });
}

const NAME = /^[a-z][a-z0-9_-]{0,62}$/;
const EDGE = /^-?(0|[1-9]\d{0,308})(\/[1-9]\d{0,308})?$/;
const CELL = /^[A-Za-z0-9](?:[A-Za-z0-9 ._+/:()-]{0,62}[A-Za-z0-9._+()-])?$/;
const CONTROL = /[\0-\x08\x0b-\x1f\x7f]/;

/** @param {bigint} number */
const isLong = (number) => number >> 1024n && -number >> 1024n;

/** @param {unknown} edge */
function isEdge(edge) {
  const point = encodable(edge) && EDGE.test(edge) && exact(edge);
  return point && !isLong(point.above) && !isLong(point.below);
}

/** @param {unknown} cell */
const isCell = (cell) => encodable(cell) && CELL.test(cell) && cell !== "other";

/** @param {unknown[]} list */
const areDistinct = (list) => new Set(list).size === list.length;

/**
 * The types of fields: the type in JSON, and what a value of it must be.
 * @type {Record<string, [string, (value: any) => unknown]>}
 */
const TYPES = {
  name: ["string", (text) => NAME.test(text)],
  fieldname: ["string", isFieldName],
  kind: ["string", (text) => KINDS.includes(text)],
  fieldkind: ["string", isFieldKind],
  dialect: ["string", (text) => /^(rappor-v1|google|google-java|chromium)$/.test(text)],
  period: ["string", (text) => /^(day|week)$/.test(text)],
  text: ["string", (text) => [...text].length <= 4096 && encodable(text) && !CONTROL.test(text)],
  day: ["string", (text) => daysOf(text) && !/W/.test(text)],
  share: ["number", (number) => number >= 0 && number <= 1],
  positive: ["number", (number) => number > 0 && number < Infinity],
  strings: ["array", (list) => list.length && list.every(encodable)],
  fieldnames: ["array", (list) => list.every(isFieldName)],
  edges: ["array", (list) => list.every(isEdge)],
  cells: [
    "array",
    (list) => list.length > 0 && list.length <= 256 && areDistinct(list) && list.every(isCell),
  ],
};

/**
 * @param {string} path
 * @param {any} value
 * @param {string} type one of TYPES, a type in JSON, or N: a whole number from 1 to N
 */
function checkType(path, value, type) {
  const [json, fits] = TYPES[type] ?? [
    +type ? "number" : type,
    (number) => !+type || (Number.isInteger(number) && number > 0 && number <= +type),
  ];
  const found = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  if (found !== json) refuse("wrong-type", path, sentence`must be of type ${json}`);
  if (!fits(value)) refuse("out-of-range", path, sentence`must be a ${type} within the limits of the format`);
}

/**
 * Exactly these fields, each of its type; a question mark is optional.
 * @param {string} where
 * @param {Record<string, any>} table
 * @param {string} fields
 */
function checkFields(where, table, fields) {
  checkType(where, table, "object");
  const prefix = where && `${where}.`;
  const known = new Map(fields.split(" ").map((field) => /** @type {[string, string]} */ (field.split(":"))));
  for (const [name, value] of Object.entries(table)) {
    const type = known.get(name) ?? known.get(`${name}?`);
    if (!type) refuse("unknown-field", prefix + name, sentence`is not a field of the format`);
    checkType(prefix + name, value, type);
  }
  for (const name of known.keys()) {
    if (!name.endsWith("?") && !Object.hasOwn(table, name)) {
      refuse("missing-field", prefix + name, sentence`is missing; export the definition again`);
    }
  }
}

/** @template Result @param {string} path @param {() => Result} action @param {string} [code] @returns {Result} */
function consistent(path, action, code = "contradiction") {
  try {
    return action();
  } catch (error) {
    return refuse(code, path, /** @type {Error} */ (error).message);
  }
}

/**
 * A JSON text without repeated keys: outside of texts there is a colon for each key.
 * @param {string} text
 */
function parse(text) {
  let keys = 0;
  const value = JSON.parse(text, function (_, part) {
    keys += +!Array.isArray(this); // the value itself counts as one, under the key ""
    return part;
  });
  if (text.replace(/"(\\.|[^"\\])*"/g, "").split(":").length !== keys) {
    throw new RapporError("params", sentence`a key is repeated`);
  }
  return value;
}

/**
 * @param {any} given a parsed document, or its text
 * @param {import("./signal.js").Dialects} [dialects]
 * @returns {Promise<Collection>}
 */
export async function checkCollection(given, dialects = {}) {
  const document = typeof given === "string" ? consistent("", () => parse(given), "invalid-json") : given;
  checkType("", document, "object");
  const { format, ...table } = document;
  if (format !== "rappor-collection-v1") {
    refuse(
      "unknown-format",
      "format",
      sentence`must be "rappor-collection-v1": export it again, or update this client`,
    );
  }
  checkFields(
    "",
    table,
    "name:name version:65535 kind:kind params:object description:text dialect:dialect period:period " +
      "dimensions:object reports_per_period:10000 max_values:1000000 max_epsilon:positive " +
      "null_reports:boolean one_time:boolean budget:boolean schedule:array clients_per_person:10000 " +
      "categories?:strings ranges?:object fields?:array views?:array group?:name expires?:day",
  );
  checkFields("params", table.params, "k:4096 h:16 m:1024 f:share p:share q:share");
  if (table.params.f === 1) refuse("out-of-range", "params.f", sentence`must be below 1`);
  const params = consistent("params", () => fitParams(table.params));
  const { schedule, dimensions, one_time, budget } = table;
  const edges = checkRanges("ranges", table.ranges);
  const fields = table.fields && checkTuple(table.fields, table.views ?? []);
  const names = Object.keys(dimensions);
  if (names.length > 8) refuse("out-of-range", "dimensions", sentence`must be at most 8 names`);
  for (const name of names) {
    checkType(`dimensions.${name}`, dimensions[name], "cells");
    checkType(`dimensions.${name}`, name, "fieldname");
  }
  schedule.forEach((/** @type {any} */ phase, /** @type {number} */ number) => {
    const path = `schedule[${number}]`;
    checkFields(path, phase, "from:string p:share q:share");
    const days = daysOf(phase.from);
    if (!days || periodOf(table.period, days[0]) !== phase.from) {
      refuse("out-of-range", `${path}.from`, sentence`must be a ${table.period}`);
    }
    consistent(path, () => fitParams({ ...params, p: phase.p, q: phase.q }));
    if (number && phase.from <= schedule[number - 1].from) {
      refuse("contradiction", path, sentence`the periods must come in order`);
    }
  });
  if (table.dialect !== "rappor-v1" && !own(dialects, table.dialect)) {
    refuse("unsupported", "dialect", sentence`pass it as dialects, from rappor/dialects`);
  }
  // A copy: an application may change its own later.
  const collection = structuredClone({ ...table, params, edges, fields });
  consistent("", () => signalOf(collection, 0, dialects));
  if (
    ((one_time || budget) && table.reports_per_period > 1) ||
    (one_time &&
      ((params.f && (params.p || params.q < 1)) || budget || table.null_reports || schedule.length))
  ) {
    refuse(
      "contradiction",
      "",
      sentence`one_time and budget allow one report in a period; one_time excludes budget, null_reports and schedule, and needs f = 0, or p = 0 with q = 1, so that a single randomization is left`,
    );
  }
  return {
    ...collection,
    digest: await memoDigest(collection),
    lastDay: startOf(table.expires ?? "9999-12-31") - 1,
  };
}

/**
 * The edges of the ranges of a collection or a field, if it has any.
 * @param {string} path
 * @param {any} ranges
 * @returns {import("./signal.js").Edge[] | undefined}
 */
function checkRanges(path, ranges) {
  if (ranges === undefined) return;
  checkFields(path, ranges, "edges:edges");
  return consistent(`${path}.edges`, () => checkEdges(ranges.edges), "out-of-range");
}

/**
 * The fields of a tuple with their edges; how fields and views fit together is checked by `signalOf`.
 * @param {any[]} fields
 * @param {any[]} views
 */
function checkTuple(fields, views) {
  if (fields.length < 2 || fields.length > 4)
    refuse("out-of-range", "fields", sentence`must be two to four fields`);
  views.forEach((view, number) => {
    const path = `views[${number}]`;
    checkFields(path, view, "fields:fieldnames cohorts:1024");
    if (!isView(view)) refuse("contradiction", path, sentence`each field is listed once`);
  });
  return fields.map((field, number) => {
    const path = `fields[${number}]`;
    checkFields(path, field, "name:fieldname kind:fieldkind categories?:strings ranges?:object");
    const whole = { ...field, edges: checkRanges(`${path}.ranges`, field.ranges) };
    consistent(path, () => partOf(whole));
    return whole;
  });
}

/**
 * The parameters of reports in a period, with p and q of the schedule.
 * @param {Collection} collection
 * @param {string} period
 * @returns {import("./params.js").Params}
 */
export function paramsFor({ params, schedule }, period) {
  // Text order is time order for periods of one kind.
  const phase = schedule.filter(({ from }) => from <= period).at(-1);
  return phase ? { ...params, p: phase.p, q: phase.q } : params;
}
