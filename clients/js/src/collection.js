/**
 * A collection's definition, as `rappor collection export --format json` writes it, checked as every
 * client checks it: an error has the same code and the same path in all of them (docs/clients.md).
 */

import { encodable } from "./bytes.js";
import { RapporError, sentence } from "./errors.js";
import { memoDigest } from "./memo.js";
import { checkParams } from "./params.js";
import { daysOf, periodOf } from "./periods.js";
import { checkEdges, exact, isFieldName, isView, KINDS, partOf, signalOf } from "./signal.js";

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

export class DefinitionError extends RapporError {
  /**
   * @param {string} definitionCode
   * @param {string} path
   * @param {string} message
   */
  constructor(definitionCode, path, message) {
    super("params", path ? `${path}: ${message}` : message);
    this.definitionCode = definitionCode;
    this.path = path;
  }
}

/** @param {string} code @param {string} path @param {string} message @returns {never} */
function refuse(code, path, message) {
  throw new DefinitionError(code, path, message);
}

/** @param {boolean} holds @param {string} path @param {string} message */
function within(holds, path, message) {
  if (!holds) refuse("out-of-range", path, sentence`must be ${message}`);
}

// The fields of the format with their types; int is a whole number, a question mark is optional.
const FIELDS =
  "name:string version:int kind:string params:object description:string dialect:string period:string " +
  "dimensions:object reports_per_period:int max_values:int max_epsilon:number null_reports:boolean " +
  "one_time:boolean budget:boolean schedule:array clients_per_person:int categories?:array " +
  "ranges?:object fields?:array views?:array group?:string expires?:string";
const NAME = /^[a-z][a-z0-9_-]{0,62}$/;
const EDGE = /^-?(0|[1-9]\d{0,308})(\/[1-9]\d{0,308})?$/;
const CELL = /^[A-Za-z0-9](?:[A-Za-z0-9 ._+/:()-]{0,62}[A-Za-z0-9._+()-])?$/;
const CONTROL = /[\0-\x08\x0b-\x1f\x7f]/;

/**
 * @param {string} path
 * @param {any} value
 * @param {string} type
 */
function typed(path, value, type) {
  const found = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  if (found !== (type === "int" ? "number" : type))
    refuse("wrong-type", path, sentence`must be of type ${type}`);
  if (found === "number") within(Number.isFinite(value), path, sentence`a finite number`);
  if (type === "int") within(Number.isSafeInteger(value), path, sentence`a whole number`);
}

/**
 * Exactly these fields, each of its type.
 * @param {string} where
 * @param {Record<string, any>} table
 * @param {string} fields
 */
function checkFields(where, table, fields) {
  const known = new Map(fields.split(" ").map((field) => /** @type {[string, string]} */ (field.split(":"))));
  for (const [name, value] of Object.entries(table)) {
    const type = known.get(name) ?? known.get(`${name}?`);
    if (!type) refuse("unknown-field", where + name, sentence`is not a field of the format`);
    else typed(where + name, value, type);
  }
  for (const name of known.keys()) {
    if (!name.endsWith("?") && !Object.hasOwn(table, name)) {
      refuse("missing-field", where + name, sentence`is missing; export the definition again`);
    }
  }
}

/** @param {string} path @param {Record<string, any>} table @param {string} names */
function checkProbabilities(path, table, names) {
  for (const name of names) {
    within(
      table[name] >= 0 && table[name] <= 1 && (name !== "f" || table[name] < 1),
      path + name,
      sentence`from 0 to 1`,
    );
  }
}

/** @template Result @param {string} path @param {() => Result} action @returns {Result} */
function consistent(path, action) {
  try {
    return action();
  } catch (error) {
    return refuse("contradiction", path, /** @type {Error} */ (error).message);
  }
}

/** @param {any} value parsed JSON @returns {number} how many keys it has at all depths */
const countKeys = (value) =>
  value && typeof value === "object"
    ? Object.values(value).reduce(
        (sum, part) => sum + countKeys(part),
        Array.isArray(value) ? 0 : Object.keys(value).length,
      )
    : 0;

/**
 * A JSON text without repeated keys: outside of texts there is a colon for each key.
 * @param {string} text
 */
function parse(text) {
  const value = JSON.parse(text);
  if (text.replace(/"(\\.|[^"\\])*"/g, "").split(":").length - 1 !== countKeys(value)) throw Error();
  return value;
}

/**
 * @param {any} given a parsed document, or its text
 * @param {import("./signal.js").Dialects} [dialects]
 * @returns {Promise<Collection>}
 */
export async function checkCollection(given, dialects = {}) {
  let document = given;
  if (typeof given === "string") {
    try {
      document = parse(given);
    } catch {
      refuse("invalid-json", "", sentence`not valid JSON, or a key is repeated`);
    }
  }
  typed("", document, "object");
  const { format, ...table } = document;
  if (format !== "rappor-collection-v1") {
    refuse(
      "unknown-format",
      "format",
      'must be "rappor-collection-v1": export it again, or update this client',
    );
  }
  checkFields("", table, FIELDS);
  checkFields("params.", table.params, "k:int h:int m:int f:number p:number q:number");
  const sizes = { k: 4096, h: 16, m: 1024 };
  for (const [name, most] of Object.entries(sizes)) {
    within(
      table.params[name] > 0 && table.params[name] <= most,
      `params.${name}`,
      sentence`from 1 to ${most}`,
    );
  }
  checkProbabilities("params.", table.params, "fpq");
  const params = consistent("params", () => checkParams(table.params));
  const limits = {
    version: 65535,
    reports_per_period: 10000,
    max_values: 1000000,
    clients_per_person: 10000,
  };
  for (const [name, most] of Object.entries(limits)) {
    within(table[name] > 0 && table[name] <= most, name, sentence`from 1 to ${most}`);
  }
  const choices = {
    kind: KINDS,
    dialect: ["rappor-v1", "google", "google-java", "chromium"],
    period: ["day", "week"],
  };
  for (const [name, allowed] of Object.entries(choices)) {
    within(allowed.includes(table[name]), name, sentence`one of ${allowed.join(", ")}`);
  }
  within(table.max_epsilon > 0, "max_epsilon", sentence`above 0`);
  for (const name of ["name", "group"]) {
    within(NAME.test(table[name] ?? "a"), name, sentence`1 to 63 of a-z, 0-9, _ and -, a letter first`);
  }
  const { description, expires, schedule, dimensions } = table;
  within(
    [...description].length <= 4096 && encodable(description) && !CONTROL.test(description),
    "description",
    sentence`at most 4096 characters of sentence`,
  );
  const end = daysOf(expires ?? "9999-12-31");
  within(!!end && !/W/.test(expires), "expires", sentence`a day such as 2027-11-16`);
  const edges = checkListed("", table);
  const fields = table.fields && checkTuple(table.fields, table.views ?? []);
  within(Object.keys(dimensions).length <= 8, "dimensions", sentence`at most 8 names`);
  for (const [name, listed] of Object.entries(dimensions)) {
    const path = `dimensions.${name}`;
    typed(path, listed, "array");
    const values = new Set(listed);
    within(
      /^[a-z][a-z0-9_]{0,31}$/.test(name) &&
        values.size === listed.length &&
        values.size > 0 &&
        values.size <= 256,
      path,
      sentence`1 to 256 different values of a name`,
    );
    within(
      listed.every(
        (/** @type {any} */ value) => typeof value === "string" && CELL.test(value) && value !== "other",
      ),
      path,
      sentence`values of letters, digits, spaces and ._+/:()-`,
    );
  }
  schedule.forEach((/** @type {any} */ phase, /** @type {number} */ number) => {
    const path = `schedule[${number}]`;
    typed(path, phase, "object");
    checkFields(`${path}.`, phase, "from:string p:number q:number");
    const days = daysOf(phase.from);
    within(
      !!days && periodOf(table.period, days[0]) === phase.from,
      `${path}.from`,
      sentence`a ${table.period}`,
    );
    checkProbabilities(`${path}.`, phase, "pq");
    consistent(path, () => checkParams({ ...params, p: phase.p, q: phase.q }));
    if (number && phase.from <= schedule[number - 1].from) {
      refuse("contradiction", path, sentence`the periods must come in order`);
    }
  });
  if (table.dialect !== "rappor-v1" && !Object.hasOwn(dialects, table.dialect)) {
    refuse("unsupported", "dialect", sentence`pass it as dialects, from rappor/dialects`);
  }
  // A copy: an application may change its own later.
  const collection = structuredClone({ ...table, params, edges, fields });
  consistent("", () => signalOf(collection, 0, dialects));
  checkModes(collection);
  return {
    ...collection,
    digest: await memoDigest(collection),
    lastDay: (end?.[0] ?? 0) - 1,
  };
}

/**
 * The categories and ranges of a collection or a field; the edges of the ranges, if it has any.
 * @param {string} where
 * @param {Record<string, any>} table
 * @returns {import("./signal.js").Edge[] | undefined}
 */
function checkListed(where, { categories, ranges }) {
  within(
    !categories ||
      (categories.length &&
        categories.every((/** @type {any} */ text) => typeof text === "string" && encodable(text))),
    `${where}categories`,
    sentence`a list of texts`,
  );
  if (!ranges) return;
  const path = `${where}ranges.edges`;
  checkFields(`${where}ranges.`, ranges, "edges:array");
  const fine = ranges.edges.every((/** @type {any} */ edge) => {
    const point = typeof edge === "string" && EDGE.test(edge) && exact(edge);
    return point && !(point.above >> 1024n && -point.above >> 1024n) && !(point.below >> 1024n);
  });
  within(fine, path, 'texts such as "18" or "-1/2", of at most 1024 bits');
  try {
    return checkEdges(ranges.edges);
  } catch {
    return refuse("out-of-range", path, sentence`must be increasing`);
  }
}

/**
 * The fields of a tuple with their edges; how fields and views fit together is checked by `signalOf`.
 * @param {any[]} fields
 * @param {any[]} views
 */
function checkTuple(fields, views) {
  within(fields.length > 1 && fields.length < 5, "fields", sentence`two to four fields`);
  const made = fields.map((field, number) => {
    const path = `fields[${number}]`;
    typed(path, field, "object");
    checkFields(`${path}.`, field, "name:string kind:string categories?:array ranges?:object");
    within(isFieldName(field.name), `${path}.name`, sentence`1 to 32 of a-z, 0-9 and _, a letter first`);
    within(KINDS.slice(0, 4).includes(field.kind), `${path}.kind`, sentence`a kind of fields`);
    const whole = { ...field, edges: checkListed(`${path}.`, field) };
    consistent(path, () => partOf(whole));
    return whole;
  });
  views.forEach((view, number) => {
    const path = `views[${number}]`;
    typed(path, view, "object");
    checkFields(`${path}.`, view, "fields:array cohorts:int");
    const named = view.fields.every((/** @type {any} */ name) => isFieldName(name));
    within(named, `${path}.fields`, sentence`names of fields`);
    within(view.cohorts > 0 && view.cohorts <= 1024, `${path}.cohorts`, sentence`from 1 to 1024`);
    if (!isView(view)) refuse("contradiction", path, sentence`each field is listed once`);
  });
  return made;
}

/** @param {any} collection */
function checkModes({ params: { f, p, q }, one_time, budget, null_reports, schedule, reports_per_period }) {
  if (one_time && f && (p || q < 1)) {
    refuse(
      "contradiction",
      "",
      sentence`one_time needs f = 0, or p = 0 with q = 1, so that a single randomization is left`,
    );
  }
  if (one_time && (budget || null_reports || schedule.length)) {
    refuse(
      "contradiction",
      "",
      sentence`one_time excludes budget, null_reports and schedule: there is one report`,
    );
  }
  if ((one_time || budget) && reports_per_period > 1) {
    refuse("contradiction", "", sentence`one_time and budget allow one report in a period`);
  }
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
