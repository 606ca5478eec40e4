/**
 * Recorder: from a value to a report in the outbox; each step is durable before the next.
 *
 * It holds the lock, checks consent, reads secret and ledger, and stores the charge; only then it draws
 * the report and writes it to the outbox. A crash between two steps loses a report, never a charge.
 */

import { encodeBatch } from "./batch.js";
import { hex } from "./bytes.js";
import { decide, FULL, MADE, NULL, usedUp } from "./charging.js";
import { paramsFor } from "./collection.js";
import { epochOf, finishClearing, LOCK, mark, marked, optedOut } from "./consent.js";
import { makeEncoder } from "./encoder.js";
import { randomBytes } from "./entropy.js";
import { RapporError } from "./errors.js";
import { fingerprint, loadIdentity, loadLedger, saveLedger } from "./identity.js";
import { readBatch } from "./outbox.js";
import { dayOf, daysOf, dayText, endOf, periodOf } from "./periods.js";
import { signalOf } from "./signal.js";
import { problemOf, Stopped, seal } from "./storage.js";

/** @typedef {import("./collection.js").Collection} Collection */
/** @typedef {import("./charging.js").Ledger} Ledger */

const WAIT = 10000; // ms for the lock

/**
 * What the parts of a client share.
 * @typedef {object} Context
 * @property {import("./storage.js").Storage} storage
 * @property {import("./outbox.js").Outbox} outbox
 * @property {Collection[]} collections with distinct names
 * @property {Record<string, unknown>} dimensions
 * @property {Uint8Array} [accountSecret]
 * @property {import("./charging.js").Caps} caps
 * @property {import("./signal.js").Dialects} [dialects]
 * @property {() => number} now
 * @property {import("./messages.js").State | null} refusal why nothing is recorded or sent; null: it is
 */

/**
 * The cell of a client: each declared dimension with an allowed value, or "other".
 * @param {Collection} collection
 * @param {Record<string, unknown>} given
 * @returns {[string, string][]}
 */
export const cellOf = ({ dimensions }, given) =>
  Object.keys(dimensions)
    .sort()
    .map((name) => {
      const value = given[name];
      return [name, typeof value === "string" && dimensions[name].includes(value) ? value : "other"];
    });

/** @param {Context} context */
export function makeRecorder(context) {
  const { storage, outbox, collections, caps, dialects } = context;
  /** @type {{ check: string, batches: number } | null} */
  let known = null; // what this process has seen: neither may go back

  const open = async () => {
    const identity = await loadIdentity(storage, context.accountSecret, !known);
    if (!identity) throw new Stopped("secret-missing");
    const ledger = await loadLedger(storage, identity);
    if (known && known.check !== identity.check) throw new Stopped("secret-changed");
    if (known && ledger.batches < known.batches) throw new Stopped("ledger-outdated");
    known = { check: identity.check, batches: ledger.batches };
    return { identity, ledger };
  };

  /** @param {Ledger} ledger */
  const commit = async (ledger) => {
    await saveLedger(storage, ledger);
    known = { check: ledger.secret, batches: ledger.batches };
  };

  /** @param {Collection} collection @param {import("./identity.js").Identity} identity @param {string} period */
  const encoderOf = (collection, { root }, period) =>
    makeEncoder({
      ...collection,
      params: paramsFor(collection, period),
      collection: collection.name,
      period: collection.budget ? period : null,
      root,
      dialects,
    });

  /** @param {Collection} collection @param {string} period @param {import("./encoder.js").Report} report */
  const batchOf = (collection, period, report) =>
    encodeBatch({
      token: randomBytes(16),
      collection: collection.name,
      version: collection.version,
      period,
      dimensions: cellOf(collection, context.dimensions),
      k: collection.params.k,
      reports: [report],
    });

  /** @param {Collection} collection the file of its one report */
  const slotOf = ({ name, digest }) => `once/${name}-${hex(digest).slice(0, 16)}`;

  /**
   * Queue the one report of a one-time collection, if it is stored and not queued yet.
   * @param {Collection} collection
   */
  const queueOnce = async (collection) => {
    const slot = slotOf(collection);
    if ((await marked(storage, `${slot}.queued`)) || !(await storage.read(slot))) return;
    const stored = await readBatch(storage, slot);
    if (!stored) throw new Stopped("slot-damaged"); // a second one is never drawn
    await outbox.put(stored.batch.token, stored.body);
    await mark(storage, `${slot}.queued`);
  };

  /** @param {Collection} collection @param {any} value @param {number} day @param {number} calledIn */
  const make = async (collection, value, day, calledIn) => {
    if (await optedOut(storage)) return "opted out";
    if (context.refusal) return "not made";
    await finishClearing(storage, outbox);
    recorder.epoch = await epochOf(storage);
    if (calledIn !== recorder.epoch) return "opted out"; // the person may have opted out since the call
    randomBytes(1); // before anything is charged: is there randomness?
    let { identity, ledger } = await open();
    const period = periodOf(collection.period, day);
    const encoder = encoderOf(collection, identity, period);
    const { memo } = signalOf(collection, encoder.cohort, dialects)(value);
    const [answer, charged] = decide(ledger, collection, day, fingerprint(identity, collection, memo), caps);
    if (answer === MADE) {
      await commit(charged);
      ledger = charged;
      if (!collection.one_time) {
        const body = batchOf(collection, period, encoder.encode(value));
        await outbox.put(charged.batches, body, collection.null_reports);
      } else {
        if (!(await storage.read(slotOf(collection)))) {
          const body = batchOf(collection, period, encoder.encode(value));
          await storage.write(slotOf(collection), await seal("batch", body));
        }
        await queueOnce(collection);
      }
    }
    if (usedUp(ledger, collection, period)) {
      recorder.closed.set(collection.name, daysOf(period) ?? [0, 0]);
    }
    return answer;
  };

  /**
   * Make the null reports that past periods lack, as many as a client with values would have made.
   * @param {Collection} collection
   * @param {Ledger} before
   * @param {import("./identity.js").Identity} identity
   * @param {number} today
   */
  const fill = async (collection, before, identity, today) => {
    let ledger = before;
    let day = Math.max(daysOf(ledger.since)?.[0] ?? today, today - 14);
    for (
      let period = "";
      endOf((period = periodOf(collection.period, day))) < today;
      day = endOf(period) + 1
    ) {
      for (let number = 0; number < collection.reports_per_period; number++) {
        const [answer, charged] = decide(ledger, collection, day, NULL, caps);
        if (answer !== MADE) break;
        await commit(charged);
        const report = encoderOf(collection, identity, period).encodeNull();
        await outbox.put(charged.batches, batchOf(collection, period, report), true);
        recorder.count(NULL);
        ledger = charged;
      }
    }
    return ledger;
  };

  /** Run an action under the lock; a failure becomes a problem of the status. @param {() => Promise<void>} action */
  const guarded = async (action) => {
    try {
      await storage.lock(LOCK, WAIT, action);
      recorder.problem = null;
    } catch (error) {
      if (error instanceof RapporError && error.code === "value") {
        recorder.count("value refused");
        recorder.problem = null;
        return;
      }
      const problem = problemOf(error);
      if (problem !== recorder.problem) console.warn("rappor:", problem, Object(error).name);
      recorder.problem = problem;
    }
  };

  const recorder = {
    epoch: 0,
    /** @type {import("./storage.js").Problem | null} */
    problem: null,
    /** @type {Record<string, number>} */
    counts: {},
    /** @type {Map<string, [number, number]>} the days of which all reports are made */
    closed: new Map(),
    /** @param {string} what */
    count(what) {
      recorder.counts[what] = (recorder.counts[what] ?? 0) + 1;
    },
    /** Whether calls of this day change nothing. @param {string} name @param {number} day */
    isClosed(name, day) {
      const [first, last] = recorder.closed.get(name) ?? [1, 0];
      return first <= day && day <= last;
    },
    /**
     * Make the report of one call to report(), if it is allowed.
     * @param {string} name
     * @param {unknown} value
     * @param {number} day of the call
     * @param {number} calledIn the epoch of consent at the time of the call
     */
    async record(name, value, day, calledIn) {
      const collection = collections.find((one) => one.name === name);
      if (!collection) return recorder.count("unknown collection");
      if (recorder.isClosed(name, day)) return recorder.count(FULL);
      await guarded(async () => recorder.count(await make(collection, value, day, calledIn)));
      if (recorder.problem) recorder.count("not made");
    },
    /** Read the epoch of consent; calls from now on belong to it. */
    async readEpoch() {
      recorder.epoch = await epochOf(storage).catch(() => recorder.epoch);
    },
    /** Make null reports for past periods, and queue one-time reports that a crash held up. */
    async tick() {
      await recorder.readEpoch();
      const filling = collections.filter((collection) => collection.null_reports);
      const once = collections.filter((collection) => collection.one_time);
      const clearing = await marked(storage, "clearing").catch(() => false);
      if (!filling.length && !once.length && !clearing) return;
      await guarded(async () => {
        if (context.refusal || (await optedOut(storage))) return;
        await finishClearing(storage, outbox);
        recorder.epoch = await epochOf(storage);
        const today = dayOf(context.now());
        if (filling.length) {
          let { identity, ledger } = await open();
          if (ledger.since === null || (await marked(storage, "paused"))) {
            ledger = { ...ledger, since: dayText(today) };
            await commit(ledger);
            await storage.remove("paused");
          }
          for (const collection of filling) ledger = await fill(collection, ledger, identity, today);
        }
        for (const collection of once) await queueOnce(collection);
      });
    },
  };
  return recorder;
}

/** @typedef {ReturnType<typeof makeRecorder>} Recorder */
