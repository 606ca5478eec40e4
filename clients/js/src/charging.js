/**
 * Charging: may this report be made, and what does it cost? Decided before the report exists.
 *
 * A pure function from ledger to ledger. The caller stores the new ledger before it makes the report:
 * a crash can lose a report, but never a charge. The rules, and the format, are those of Python.
 */

import { hex, own } from "./bytes.js";
import { paramsFor } from "./collection.js";
import { addUp, epsilonOf } from "./epsilon.js";
import { endOf, inOrder, periodOf, startOf } from "./periods.js";

/** @typedef {import("./collection.js").Collection} Collection */

/**
 * Consecutive periods with the same p and q.
 * @typedef {object} Term
 * @property {number} p
 * @property {number} q
 * @property {string | null} period in budget mode the period, which has its own B'
 * @property {number} limit how many reports the client may make in this term
 * @property {number} charged the n of ε_n: the limit, times the devices that share the secret
 * @property {number} made so far, of all values together
 */

/**
 * All charges under one memo digest of a collection. `values` has, for each fingerprint or "null", the
 * numbers of the terms that it is charged for.
 * @typedef {object} Account
 * @property {string} collection
 * @property {string} memo
 * @property {string} kind
 * @property {import("./params.js").Params} params
 * @property {Term[]} terms
 * @property {Record<string, number[]>} values
 */

/**
 * Everything that a client remembers.
 * @typedef {object} Ledger
 * @property {string} secret the check value of the secret that it belongs to
 * @property {string | null} since the day from which periods without a value get null reports
 * @property {number} batches how many reports were made in all
 * @property {Record<string, number | "inf">} carried ε of forgotten secrets and closed periods
 * @property {Account[]} accounts
 * @property {Record<string, Record<string, number>>} used collection -> period -> reports made
 * @property {Record<string, string>} groups collection -> its correlated group
 * @property {Record<string, string>} floors collection -> a period; up to it, nothing more is reported
 */

/**
 * Limits that go beyond a single collection.
 * @typedef {object} Caps
 * @property {number} total the largest ε over all collections of the client
 * @property {boolean} shared whether the devices of an account share the secret
 * @property {Record<string, number>} groups the largest ε of each correlated group
 */

export const MADE = "made";
export const FULL = "the reports of this period are made";
export const CAPPED = "the limit on values or ε is reached";
export const EXPIRED = "the collection has expired";
export const NULL = "null";
const WITHOUT_END = 10 ** 6; // reports if a collection never expires; ε_n is almost ε∞
const KEPT_PERIODS = 128;

/** @returns {Ledger} */
export const emptyLedger = () => ({
  secret: "",
  since: null,
  batches: 0,
  carried: {},
  accounts: [],
  used: {},
  groups: {},
  floors: {},
});

/**
 * The same table in the order of its keys, of which none begins with another one.
 * @template Value
 * @param {Record<string, Value>} table
 * @returns {Record<string, Value>}
 */
const sorted = (table) => Object.fromEntries(Object.entries(table).sort());

/** @param {Account} account @returns {number} */
export const distinctValues = ({ values }) => Object.keys(values).length - (NULL in values ? 1 : 0);

/** @param {Ledger} ledger @param {Collection} collection @returns {Account | undefined} */
export const findAccount = (ledger, { name, digest }) =>
  ledger.accounts.find(({ collection, memo }) => collection === name && memo === hex(digest));

/**
 * Each ε that was charged to an account, in the given terms or all of them.
 * @param {Account} account
 * @param {(term: Term) => boolean} [wanted]
 * @returns {[number, number][]}
 */
function losses({ params, kind, terms, values }, wanted = () => true) {
  /** @type {Record<string, number>} */
  const counted = {}; // how many values have each history
  for (const numbers of Object.values(values)) {
    // Terms of one B' are one joint history; in budget mode each period has its own.
    /** @type {Record<string, number[]>} */
    const histories = {};
    for (const number of numbers) {
      if (wanted(terms[number])) (histories[String(terms[number].period)] ??= []).push(number);
    }
    for (const key of Object.values(histories).map(String)) counted[key] = (counted[key] ?? 0) + 1;
  }
  return Object.entries(counted).map(([key, times]) => [
    epsilonOf(
      params,
      kind,
      key.split(",").map((number) => terms[+number]),
    ),
    times,
  ]);
}

/**
 * ε over the collections of which `wanted` holds; never below the true sum.
 * @param {Ledger} ledger
 * @param {(name: string) => boolean} [wanted]
 * @returns {number}
 */
export function spent({ accounts, carried }, wanted = () => true) {
  return addUp([
    ...accounts.filter(({ collection }) => wanted(collection)).flatMap((account) => losses(account)),
    ...Object.entries(carried)
      .filter(([name]) => wanted(name))
      .map(
        ([, epsilon]) => /** @type {[number, number]} */ ([+String(epsilon).replace("inf", "Infinity"), 1]),
      ),
  ]);
}

/** @param {Ledger} ledger @param {string} group @param {string} name */
export const groupSpent = (ledger, group, name) =>
  spent(ledger, (collection) => collection === name || own(ledger.groups, collection) === group);

/**
 * The largest ε of each correlated group: the smallest limit of its collections (§6.1).
 * @param {Iterable<Collection>} collections
 */
export function groupLimits(collections) {
  /** @type {Record<string, number>} */
  const limits = {};
  for (const { group, max_epsilon } of collections) {
    if (group) limits[group] = Math.min(max_epsilon, own(limits, group) ?? Infinity);
  }
  return limits;
}

/**
 * Whether all reports of a period were made; setting the clock back does not undo that.
 * @param {Ledger} ledger
 * @param {Collection} collection
 * @param {string} period
 */
export function usedUp(ledger, { name, one_time, reports_per_period }, period) {
  const used = own(ledger.used, name) ?? {};
  const floor = own(ledger.floors, name);
  if (one_time) return !!floor || Object.keys(used).length > 0;
  return (!!floor && endOf(period) <= endOf(floor)) || (used[period] ?? 0) >= reports_per_period;
}

/**
 * Whether a report may be made, and the ledger to store before it is made.
 * @param {Ledger} before
 * @param {Collection} collection
 * @param {number} day of the call to report()
 * @param {string} value its fingerprint, or NULL
 * @param {Caps} caps
 * @returns {[string, Ledger]}
 */
export function decide(before, collection, day, value, caps) {
  const { name, group } = collection;
  const period = periodOf(collection.period, day);
  if (day > collection.lastDay) return [EXPIRED, before];
  if (usedUp(before, collection, period)) return [FULL, before];
  const ledger = structuredClone(before);
  let account = findAccount(ledger, collection);
  if (!account) {
    const { kind, params, digest } = collection;
    account = { collection: name, memo: hex(digest), kind, params, terms: [], values: {} };
    ledger.accounts.push(account);
    ledger.accounts.sort((one, other) =>
      one.collection + one.memo < other.collection + other.memo ? -1 : 1,
    );
  }
  if (value !== NULL && !account.values[value] && distinctValues(account) >= collection.max_values) {
    return [CAPPED, before];
  }
  const number = openTerm(account, collection, day, period, caps);
  account.terms[number].made++;
  // With null reports both are charged now, so that null reports are possible at the limit too.
  for (const mark of collection.null_reports ? [value, NULL] : [value]) {
    const charged = (account.values[mark] ??= []);
    if (!charged.includes(number)) charged.push(number);
  }
  account.values = sorted(account.values); // their order must not tell which came first
  delete ledger.groups[name];
  if (group) ledger.groups[name] = group;
  const most = Math.min(collection.max_epsilon, (group && own(caps.groups, group)) || Infinity);
  const cost = group ? groupSpent(ledger, group, name) : spent(ledger, (other) => other === name);
  if (cost > most || spent(ledger) > caps.total) return [CAPPED, before];
  count(ledger, name, period);
  return [MADE, ledger];
}

/**
 * The number of a term that has room for one more report.
 * @param {Account} account
 * @param {Collection} collection
 * @param {number} day
 * @param {string} period
 * @param {Caps} caps
 */
function openTerm({ terms }, collection, day, period, caps) {
  const { p, q } = paramsFor(collection, period);
  const own = collection.budget ? period : null;
  const devices = caps.shared ? collection.clients_per_person : 1;
  const times = collection.one_time ? 1 : devices;
  const fitting = terms.findIndex(
    (term) =>
      term.p === p &&
      term.q === q &&
      term.period === own &&
      term.made < term.limit &&
      term.charged >= times * term.limit, // else it was charged for fewer devices
  );
  if (fitting >= 0) return fitting;
  const limit = termLimit(collection, day, { p, q }, devices);
  return terms.push({ p, q, period: own, limit, charged: limit * times, made: 0 }) - 1;
}

/**
 * The most reports of a term: all until its last period, or as many as ε allows.
 * @param {Collection} collection
 * @param {number} day
 * @param {{ p: number, q: number }} noise
 * @param {number} devices
 */
function termLimit(collection, day, { p, q }, devices) {
  const { reports_per_period, max_values, null_reports, max_epsilon, params, kind } = collection;
  if (collection.one_time || collection.budget) return reports_per_period;
  /** @param {number} n */
  const fits = (n) =>
    addUp([[epsilonOf(params, kind, [{ p, q, charged: n * devices }]), max_values + +null_reports]]) <=
    max_epsilon;
  let high = Math.min(WITHOUT_END, reports_per_period * periodsLeft(collection, day));
  if (fits(high)) return high;
  let low = 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * Periods from this day to the end of the phase or collection, the current one included.
 * @param {Collection} collection
 * @param {number} day
 */
function periodsLeft({ period: kind, schedule, lastDay, expires }, day) {
  const period = periodOf(kind, day);
  const ends = schedule.filter(({ from }) => from > period).map(({ from }) => startOf(from) - 1);
  if (expires) ends.push(lastDay);
  if (!ends.length) return WITHOUT_END;
  const last = periodOf(kind, Math.min(...ends));
  return Math.floor((endOf(last) - endOf(period)) / (kind === "day" ? 1 : 7)) + 1;
}

/**
 * Count one more report in a period. Old periods are dropped: up to a floor, nothing more is reported.
 * @param {Ledger} ledger
 * @param {string} name
 * @param {string} period
 */
function count(ledger, name, period) {
  ledger.batches++;
  const used = (ledger.used[name] = own(ledger.used, name) ?? {});
  used[period] = (used[period] ?? 0) + 1;
  const old = inOrder(Object.keys(used)).slice(0, -KEPT_PERIODS);
  for (const dropped of old) delete used[dropped];
  ledger.used[name] = sorted(used);
  raiseFloor(ledger, name, old);
  if (old.length) settle(ledger, name);
}

/**
 * Up to the last of these periods, and of an earlier call, nothing more is reported.
 * @param {{ floors: Record<string, string> }} ledger
 * @param {string} name
 * @param {string[]} periods
 */
export function raiseFloor({ floors }, name, periods) {
  const last = inOrder([own(floors, name) ?? "", ...periods]).at(-1);
  if (last) floors[name] = last;
}

/**
 * Move the ε of closed budget periods into one sum.
 * @param {Ledger} ledger
 * @param {string} name
 */
function settle(ledger, name) {
  const floor = endOf(ledger.floors[name]);
  /** @param {Term} term */
  const closed = ({ period }) => period !== null && endOf(period) <= floor;
  for (const account of ledger.accounts) {
    if (account.collection !== name || !account.terms.some(closed)) continue;
    const { terms, values } = account;
    const before = spent({ ...ledger, accounts: [] }, (other) => other === name);
    ledger.carried[name] = addUp([[before, 1], ...losses(account, closed)]);
    const kept = terms.flatMap((term, number) => (closed(term) ? [] : [number]));
    account.terms = kept.map((number) => terms[number]);
    for (const [value, numbers] of Object.entries(values)) {
      values[value] = numbers.map((number) => kept.indexOf(number)).filter((number) => number >= 0);
    }
  }
}
