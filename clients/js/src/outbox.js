/**
 * Outbox: reports that wait to be sent, and those that were sent, as exact bytes.
 *
 * Each report is one file and one request: two reports in one batch would tell that one client made
 * both. A file never changes; a retry sends the same bytes with the same token, which count once.
 */

import { decodeBatch } from "./batch.js";
import { hex } from "./bytes.js";
import { dayOf, daysOf, endOf, startOf } from "./periods.js";
import { readJson, seal, unseal, writeJson } from "./storage.js";

/** @typedef {import("./storage.js").Storage} Storage */
/** @typedef {{ name: string, batch: import("./batch.js").Batch, body: Uint8Array }} Waiting */

const HOLD = 36e5; // ms after the end of a period; by then null reports are in the outbox too
const ACCEPTANCE_DAYS = 14;

/** @param {string} name @returns {string} folder and ending, as a code for messages.js */
export const batchState = (name) => name.replace(/\/.*\./, "/");

/**
 * The batch in a file, or null if the file is gone or damaged.
 * @param {Storage} storage
 * @param {string} name
 * @returns {Promise<Waiting | null>}
 */
export async function readBatch(storage, name) {
  const body = await unseal("batch", await storage.read(name));
  try {
    const batch = body && decodeBatch(body);
    return batch && daysOf(batch.period) ? { name, batch, body } : null;
  } catch {
    return null;
  }
}

/**
 * Whether a batch is no longer held, and a collector accepts its period now.
 * @param {Waiting} waiting
 * @param {number} now
 */
export function isDue({ name, batch }, now) {
  const { period } = batch;
  return name.endsWith(".held") ? endOf(period) < dayOf(now - HOLD) : startOf(period) <= dayOf(now) + 1;
}

/** @param {string} period the last day on which a collector takes its reports */
export const acceptedUntil = (period) => endOf(period) + ACCEPTANCE_DAYS;

/** @param {string} name @param {string} folder @param {string} end */
const renamed = (name, folder, end) => `${folder}/${name.replace(/.*\/|\.[^.]*$/g, "")}.${end}`;

/**
 * The highest number of a waiting or sent batch; 0 if there is none.
 * @param {Storage} storage
 */
export async function newest(storage) {
  const names = [...(await storage.names("outbox")), ...(await storage.names("sent"))];
  return Math.max(0, ...names.map((name) => +(/\/(\d+)\./.exec(name)?.[1] ?? 0)));
}

/**
 * @param {Storage} storage
 * @param {number} limit how many batches may wait, and how many sent ones are kept
 */
export function makeOutbox(storage, limit) {
  /** @param {string} what @param {number} [times] */
  const count = async (what, times = 1) => {
    const counts = await readJson(storage, "counts", /** @type {Record<string, number>} */ ({}));
    counts[what] = (counts[what] ?? 0) + times;
    await writeJson(storage, "counts", counts).catch(() => {}); // losing a count does no harm
  };
  /** @param {string} name @param {string} end */
  const keep = async (name, end) => {
    await storage.move(name, renamed(name, "sent", end));
    for (const old of (await storage.names("sent")).slice(0, -limit)) await storage.remove(old);
  };
  /** @param {string} name */
  const takeOut = (name) => (name.endsWith(".tried") ? keep(name, "tried") : storage.remove(name));
  const outbox = {
    names: () => storage.names("outbox"),
    /**
     * Write a batch; drop the oldest to make room.
     * @param {number | Uint8Array} number of the report; or the token of a one-time report, of which a
     *   second copy replaces the first
     * @param {Uint8Array} body
     * @param {boolean} [held] until an hour after its period
     */
    async put(number, body, held) {
      const stem =
        typeof number === "number" ? String(number).padStart(10, "0") : `once-${hex(number).slice(0, 16)}`;
      const names = await outbox.names();
      const surplus = names.slice(0, Math.max(0, names.length + 1 - limit));
      for (const old of surplus) await takeOut(old);
      await storage.write(`outbox/${stem}.${held ? "held" : "batch"}`, await seal("batch", body));
      if (surplus.length) await count("dropped: outbox full", surplus.length);
    },
    /** @param {string} name @returns {Promise<Waiting | null>} null: gone, or damaged and dropped now */
    async read(name) {
      const waiting = await readBatch(storage, name);
      if (!waiting && (await storage.read(name))) {
        await storage.remove(name);
        await count("dropped: damaged");
      }
      return waiting;
    },
    /** @param {string} name @returns {Promise<string>} its new name: marked as tried, before it is sent */
    async trying(name) {
      const tried = renamed(name, "outbox", "tried");
      if (tried !== name) await storage.move(name, tried);
      return tried;
    },
    /** @param {string} name @param {string} why */
    async drop(name, why) {
      await takeOut(name);
      await count(`dropped: ${why}`);
    },
    /** @param {string} name @param {string} [refusal] a code, if the collector will never take it */
    async finish(name, refusal) {
      await keep(name, refusal ? "refused" : "batch");
      await count(refusal ? `dropped: refused (${refusal})` : "sent");
    },
    async clear() {
      for (const name of await outbox.names()) await outbox.drop(name, "opted out");
    },
  };
  return outbox;
}

/** @typedef {ReturnType<typeof makeOutbox>} Outbox */
