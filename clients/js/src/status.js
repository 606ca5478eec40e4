/** Status and preview: the state of a client, and exactly what it sends; never a value or a secret. */

import { CONTENT_TYPE } from "./batch.js";
import { hex, own } from "./bytes.js";
import {
  distinctValues,
  emptyLedger,
  findAccount,
  groupLimits,
  groupSpent,
  spent,
  usedUp,
} from "./charging.js";
import { paramsFor } from "./collection.js";
import { optedOut } from "./consent.js";
import { epsilonOf } from "./epsilon.js";
import { findLedger, loadIdentity } from "./identity.js";
import { explain } from "./messages.js";
import { acceptedUntil, batchState, readBatch } from "./outbox.js";
import { dayOf, dayText, inOrder, periodOf } from "./periods.js";
import { cellOf } from "./recorder.js";
import { problemOf, readJson, Stopped } from "./storage.js";

/** @typedef {import("../types/index.js").Status} Status */
/** @typedef {import("../types/index.js").Preview} Preview */
/** @typedef {import("../types/index.js").PreviewedReport} PreviewedReport */

/**
 * @param {import("./recorder.js").Context} context
 * @param {import("./recorder.js").Recorder} recorder
 * @param {import("./sender.js").Sender} sender
 * @returns {Promise<Status>}
 */
export async function makeStatus(context, recorder, sender) {
  const { storage, collections, refusal } = context;
  const calls = { ...recorder.counts };
  const day = dayOf(context.now());
  let problem = recorder.problem ?? sender.problem;
  let out = false;
  let ledger = emptyLedger();
  /** @type {Record<string, number>} */
  let batches = {};
  /** @type {Map<string, string[]>} */
  const periods = new Map();
  let waiting = 0;
  try {
    if (problem === "insecure-context") throw new Stopped(problem);
    out = await optedOut(storage);
    batches = await readJson(storage, "counts", {});
    for (const name of await storage.names("outbox")) {
      waiting++;
      const found = await readBatch(storage, name);
      if (found) {
        const { collection, period } = found.batch;
        periods.set(collection, [...(periods.get(collection) ?? []), period]);
      }
    }
    await loadIdentity(storage, context.accountSecret, false);
    ledger = await findLedger(storage);
  } catch (error) {
    problem = problemOf(error);
  }
  const state = refusal ?? (out ? "opted out" : problem ? "stopped" : "on");
  const { reasons } = await sender.readRetry();
  const limits = groupLimits(collections);
  return {
    state,
    problem,
    explanation: explain(state === "stopped" && problem ? problem : state),
    collections: collections.map((collection) => {
      const { name, version, group, max_values: maxValues } = collection;
      const period = periodOf(collection.period, day);
      const account = findAccount(ledger, collection);
      const values = account ? distinctValues(account) : 0;
      return {
        name,
        version,
        period,
        reports: own(ledger.used, name)?.[period] ?? 0,
        values,
        maxValues,
        epsilon: spent(ledger, (other) => other === name),
        epsilonGroup: group ? groupSpent(ledger, group, name) : null,
        maxEpsilon: (group && own(limits, group)) || collection.max_epsilon,
        state:
          day > collection.lastDay
            ? "expired"
            : usedUp(ledger, collection, period)
              ? "made"
              : values >= maxValues
                ? "values at the limit"
                : "on",
        atLimit: collection.null_reports ? "null reports" : "silence",
      };
    }),
    epsilon: spent(ledger),
    calls,
    waiting,
    batches,
    waitingReports: Array.from(periods, ([collection, listed]) => {
      const [since] = inOrder(listed);
      const until = dayText(acceptedUntil(since));
      return {
        collection,
        reports: listed.length,
        since,
        until,
        reason: own(reasons, collection) ?? reasons[""] ?? null,
      };
    }),
    upload: reasons[""] ?? sender.error,
    nextAttempt: await sender.waits(),
  };
}

/** @param {Uint8Array} packed @param {number} k */
const bitText = (packed, k) =>
  Array.from({ length: k }, (_, at) => (packed[at >> 3] >> (at & 7)) & 1)
    .reverse()
    .join("");

/**
 * Exactly what was sent and what will be sent, to show to the person.
 * @param {import("./recorder.js").Context} context
 * @param {string | null} uploadTo
 * @param {boolean} withKey
 * @returns {Promise<Preview>}
 */
export async function makePreview({ storage, collections, dimensions }, uploadTo, withKey) {
  /** @param {string} folder @returns {Promise<PreviewedReport[]>} */
  const all = async (folder) => {
    const names = await storage.names(folder).catch(() => []);
    const found = await Promise.all(names.map((name) => readBatch(storage, name).catch(() => null)));
    return found.flatMap((waiting) => {
      if (!waiting) return [];
      const { batch, body, name } = waiting;
      const { collection, version, period, k, token } = batch;
      return batch.reports.map(({ cohort, bits }) => ({
        state: explain(batchState(name)),
        collection,
        version,
        period,
        dimensions: Object.fromEntries(batch.dimensions),
        cohort,
        bits: bitText(bits, k),
        token: hex(token),
        body: hex(body),
      }));
    });
  };
  return {
    uploadTo,
    headers: { "Content-Type": CONTENT_TYPE, ...(withKey && { Authorization: "Bearer (the ingest key)" }) },
    sent: await all("sent"),
    waiting: await all("outbox"),
    next: collections.map((collection) => ({
      collection: collection.name,
      version: collection.version,
      description: collection.description,
      dimensions: Object.fromEntries(cellOf(collection, dimensions)),
      bits: collection.params.k,
      maxReports: collection.one_time ? 1 : collection.reports_per_period,
      period: collection.period,
      epsilonOne: Math.max(
        ...["", ...collection.schedule.map(({ from }) => from)].map((from) => {
          const { p, q } = paramsFor(collection, from);
          return epsilonOf(collection.params, collection.kind, [{ p, q, charged: 1 }]);
        }),
      ),
      maxEpsilon: collection.max_epsilon,
    })),
  };
}
