/**
 * Sender: uploads the batches of the outbox, each at a random moment, until they are stored.
 *
 * After each failure it waits longer, with jitter, and obeys Retry-After, over all tabs and processes.
 * Consent is checked last, under the lock, just before a batch is sent (see consent.js).
 */

import { CONTENT_TYPE } from "./batch.js";
import { same } from "./bytes.js";
import { LOCK, marked, SENDING_LOCK, UPLOAD_LOCK } from "./consent.js";
import { randomBytes } from "./entropy.js";
import { acceptedUntil, isDue } from "./outbox.js";
import { dayOf } from "./periods.js";
import { problemOf, readJson, writeJson } from "./storage.js";

/** @typedef {{ status: number, code?: string, retry?: boolean, after?: number }} Answer after: in seconds */
/** @typedef {(body: Uint8Array, signal: AbortSignal) => Promise<Answer>} Transport */
/** @typedef {{ after: number, failures: number, reasons: Record<string, string> }} Retry after: Unix seconds */

const FIRST_WAIT = 30; // seconds
const MAX_WAIT = 6 * 3600;
const LONGEST_WAIT = 24 * 3600;
const TIMEOUT = 10000; // ms
const PATIENT = 3; // after this many failures in a row, a short Retry-After is not enough
const PERMANENT = [400, 410, 413, 414, 415, 422]; // if the answer is not a problem document

const STOP = "the person opted out";

/** A number in [0, 1), of the platform's generator. */
const uniform = () => randomBytes(6).reduce((sum, byte) => (sum + byte) / 256, 0);

/**
 * The transport over HTTP: one batch a request, without cookies, never redirected.
 * @param {string} address
 * @param {string} [key]
 * @returns {Transport}
 */
export const httpTransport = (address, key) => async (body, signal) => {
  const response = await fetch(address, {
    method: "POST",
    body: /** @type {BodyInit} */ (body),
    headers: { "Content-Type": CONTENT_TYPE, ...(key && { Authorization: `Bearer ${key}` }) },
    credentials: "omit", // `cache` keeps its default: without, Chromium repeats each preflight
    redirect: "error",
    referrerPolicy: "no-referrer",
    keepalive: true,
    signal,
  });
  const wait = String(response.headers.get("Retry-After"));
  const seconds = /^\d+$/.test(wait) ? +wait : (Date.parse(wait) - Date.now()) / 1000; // NaN if there is none
  const after = seconds >= 0 ? Math.min(seconds, LONGEST_WAIT) : undefined;
  const { type, code, retry } = Object(await response.json().catch(() => null));
  const ours =
    /^urn:rappor:problem:/.test(type) && typeof code === "string" && /^[a-z][a-z0-9-]{0,63}$/.test(code);
  return { status: response.status, after, ...(ours && { code, retry }) };
};

/**
 * @param {import("./recorder.js").Context} context
 * @param {Transport | null} transport null: batches stay in the outbox
 * @param {number} jitter seconds
 */
export function makeSender(context, transport, jitter) {
  const { storage, outbox, now } = context;
  /** @type {Map<string, number>} */
  const moments = new Map();
  /** @type {Map<string, number>} */
  const postponed = new Map();
  /** @type {Retry} */
  let failed = { after: 0, failures: 0, reasons: {} }; // as in the storage, if that cannot be written
  /** @type {AbortController | null} */
  let sending = null;
  const monotonic = () => performance.now();

  const readRetry = async () => {
    if (!transport) return failed;
    const stored = await readJson(storage, "retry", failed).catch(() => failed);
    return stored.after >= failed.after ? stored : failed;
  };
  /** @param {Retry} retry */
  const writeRetry = (retry) => {
    failed = retry;
    return writeJson(storage, "retry", { ...retry, after: Math.round(retry.after) }).catch(() => {});
  };
  /** Seconds until the next attempt after a failure; more than a day: the clock was set back. */
  const waits = async () => {
    const left = (await readRetry()).after - now() / 1000;
    return left > 0 && left <= LONGEST_WAIT ? left : 0;
  };

  /** @param {string} reason @param {number} [asked] */
  const backOff = async (reason, asked) => {
    sender.error = reason;
    const { failures: before, reasons } = await readRetry();
    const failures = Math.min(before + 1, 30);
    let wait = Math.min(FIRST_WAIT * 2 ** (failures - 1), MAX_WAIT) * (0.5 + uniform());
    if (asked !== undefined) {
      wait = Math.max(!asked || failures > PATIENT ? wait : 0, asked * (1 + 0.1 * uniform()));
    }
    moments.clear(); // draw new moments, or all waiting batches would be sent at once
    await writeRetry({
      after: now() / 1000 + Math.min(wait, LONGEST_WAIT),
      failures,
      reasons: { ...reasons, "": reason },
    });
  };

  const forbidden = async () =>
    context.refusal || (await marked(storage, "opted-out")) || (await marked(storage, "clearing"));

  /**
   * Act on an answer; whether the batch is finished.
   * @param {string} name
   * @param {string} collection
   * @param {Answer} answer
   */
  const answered = async (name, collection, { status, code, retry, after }) => {
    const reason = code ?? String(status);
    if (status === 204) {
      await outbox.finish(name);
      sender.error = null;
      const { "": _, [collection]: __, ...reasons } = (await readRetry()).reasons;
      failed = { after: 0, failures: 0, reasons };
      if (Object.keys(reasons).length) await writeRetry(failed);
      else await storage.remove("retry");
      return true;
    }
    if (retry === undefined ? PERMANENT.includes(status) : !retry) {
      sender.error = reason;
      await outbox.finish(name, reason);
      return true;
    }
    if (code === "forbidden" || code === "unknown-collection") {
      sender.error = reason; // batches of other collections need not wait
      const wait = Math.max(after ?? 0, MAX_WAIT) * (0.5 + uniform());
      postponed.set(name, monotonic() + 1000 * wait);
      const known = await readRetry();
      await writeRetry({ ...known, reasons: { ...known.reasons, [collection]: reason } });
    } else {
      await backOff(reason, after);
    }
    return false;
  };

  /** @param {import("./outbox.js").Waiting} waiting */
  const post = (waiting) =>
    storage.lock(SENDING_LOCK, TIMEOUT, async () => {
      const tried = await storage.lock(LOCK, TIMEOUT, async () => {
        // forget() restarts the numbers of batches: the bytes are compared, not only the name.
        const still = (await forbidden()) ? null : await outbox.read(waiting.name);
        return still && same(still.body, waiting.body) ? outbox.trying(waiting.name) : null;
      });
      if (!tried || !transport || context.refusal) return false;
      const controller = (sending = new AbortController());
      const timer = setTimeout(() => controller.abort(), TIMEOUT);
      try {
        const answer = await transport(waiting.body, controller.signal);
        return await answered(tried, waiting.batch.collection, answer);
      } catch (error) {
        if (controller.signal.reason !== STOP)
          await backOff(`no answer (${/** @type {Error} */ (error)?.name})`);
        return false;
      } finally {
        clearTimeout(timer);
        sending = null;
      }
    });

  /** @param {boolean} atOnce @param {number} until */
  const sendAll = async (atOnce, until) => {
    let done = true;
    const names = await outbox.names();
    for (const times of [moments, postponed]) {
      for (const name of times.keys()) if (!names.includes(name)) times.delete(name);
    }
    const order = names.map((name) => ({ name, at: uniform() })).sort((one, other) => one.at - other.at);
    for (const { name } of order) {
      const waiting = await outbox.read(name);
      if (!waiting) continue;
      if (acceptedUntil(waiting.batch.period) < dayOf(now())) {
        await outbox.drop(name, "too old");
        continue;
      }
      if (!isDue(waiting, now())) continue;
      if (monotonic() >= until || (await waits()) || (await forbidden())) return false;
      if (!moments.has(name)) moments.set(name, monotonic() + 1000 * jitter * uniform());
      const moment = Math.max(atOnce ? 0 : (moments.get(name) ?? 0), postponed.get(name) ?? 0);
      if (monotonic() < moment) done = false;
      else done = (await post(waiting)) && done;
    }
    return done;
  };

  const sender = {
    /** @type {string | null} the code, status or error of the last failed upload */
    error: null,
    /** @type {import("./storage.js").Problem | null} */
    problem: null,
    readRetry,
    waits,
    /**
     * Send what is due; true if nothing that is due is left.
     * @param {boolean} atOnce do not wait for the random moment of each batch
     * @param {number} within ms
     */
    async send(atOnce, within) {
      const until = monotonic() + within;
      try {
        if (!transport || !(await outbox.names()).length) return true;
        const done = await storage.lock(UPLOAD_LOCK, atOnce ? within : 0, () => sendAll(atOnce, until));
        sender.problem = null;
        return done;
      } catch (error) {
        const problem = problemOf(error);
        sender.problem = problem === "directory-busy" ? null : problem; // another tab is sending
        return false;
      }
    },
    /** Milliseconds until there may be something to do. */
    async nextMoment() {
      const ahead = [...moments].map(
        ([name, moment]) => Math.max(moment, postponed.get(name) ?? 0) - monotonic(),
      );
      return Math.max(1000 * (await waits()), Math.min(30000, ...ahead), 50);
    },
    /** End the request that is under way; whether there is another one, the storage says. */
    interrupt() {
      sending?.abort(STOP);
    },
  };
  return sender;
}

/** @typedef {ReturnType<typeof makeSender>} Sender */
