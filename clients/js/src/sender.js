/**
 * Sender: uploads the batches of the outbox, each at a random moment, until they are stored.
 *
 * After each failure it waits longer, with jitter, and obeys Retry-After, over all tabs and processes.
 * Consent is checked last, under the lock, just before a batch is sent (see consent.js).
 */

import { CONTENT_TYPE } from "./batch.js";
import { same } from "./bytes.js";
import { LOCK, marked, optedOut, SENDING_LOCK, UPLOAD_LOCK } from "./consent.js";
import { randomBytes } from "./entropy.js";
import { acceptedUntil, isDue } from "./outbox.js";
import { dayOf } from "./periods.js";
import { problemOf, readJson, writeJson } from "./storage.js";

/** @typedef {{ status: number, code?: string, retry?: boolean, after?: number }} Answer after: in seconds */
/** @typedef {(body: Uint8Array, signal: AbortSignal) => Promise<Answer>} Transport */
/**
 * What is known about failed uploads. Python keeps the first three; all times are Unix seconds.
 * @typedef {object} Retry
 * @property {number} after nothing is tried before
 * @property {number} failures in a row
 * @property {Record<string, string>} reasons by collection; "" for all of them
 * @property {Record<string, number>} [postponed] by collection: its reports are not tried before
 * @property {Record<string, number>} [moments] by batch: the random moment from which it may be sent
 */

const FIRST_WAIT = 30; // seconds
const MAX_WAIT = 6 * 3600;
const LONGEST_WAIT = 24 * 3600;
const TIMEOUT = 10000; // ms
const MAX_ANSWER = 2 ** 16; // bytes that are read of an answer
const LATE = 60; // seconds after its moment; a client that runs looks more often
const PATIENT = 3; // after this many failures in a row, a short Retry-After is not enough
const PERMANENT = [400, 410, 413, 414, 415, 422]; // if the answer is not a problem document

const STOP = "the person opted out";
/** @type {Retry} */
const NO_FAILURE = { after: 0, failures: 0, reasons: {} };

/** A number in [0, 1), of the platform's generator. */
const uniform = () => randomBytes(6).reduce((sum, byte) => (sum + byte) / 256, 0);

/**
 * The JSON document that an answer holds; an error if it is too long.
 * @param {Response} response
 */
function documentOf({ body }) {
  let left = MAX_ANSWER;
  const limit = new TransformStream({
    transform(chunk, stream) {
      left -= chunk.length;
      if (left < 0) stream.error();
      else stream.enqueue(chunk);
    },
  });
  return new Response(body?.pipeThrough(limit)).json();
}

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
  const { type, code, retry } = Object(await documentOf(response).catch(() => null));
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
  let failed = NO_FAILURE; // what could not be written to the storage
  /** @type {AbortController | null} */
  let sending = null;

  const readRetry = async () => {
    if (!transport) return failed;
    const stored = await readJson(storage, "retry", failed).catch(() => failed);
    return stored.after >= failed.after ? stored : failed;
  };
  /** @param {Retry} retry */
  const writeRetry = async (retry) => {
    const after = Math.floor(retry.after); // not more than the longest wait from now
    const empty = !after && !Object.keys({ ...retry.reasons, ...retry.moments }).length;
    const written = empty ? storage.remove("retry") : writeJson(storage, "retry", { ...retry, after });
    failed = await written.then(
      () => NO_FAILURE,
      () => retry,
    );
  };
  /** Seconds until a time; more than a day: the clock was set back. @param {number} [time] Unix seconds */
  const secondsTo = (time = 0) => {
    const left = time - now() / 1000;
    return left > 0 && left <= LONGEST_WAIT ? left : 0;
  };
  /** Seconds until the next attempt after a failure. */
  const waits = async () => secondsTo((await readRetry()).after);

  /** @param {string} reason @param {number} [asked] */
  const backOff = async (reason, asked) => {
    const known = await readRetry();
    const failures = Math.min(known.failures + 1, 30);
    let wait = Math.min(FIRST_WAIT * 2 ** (failures - 1), MAX_WAIT) * (0.5 + uniform());
    if (asked !== undefined) {
      wait = Math.max(!asked || failures > PATIENT ? wait : 0, asked * (1 + 0.1 * uniform()));
    }
    await writeRetry({
      ...known,
      after: now() / 1000 + Math.min(wait, LONGEST_WAIT),
      failures,
      reasons: { ...known.reasons, "": reason },
      moments: {}, // draw new ones, or all waiting batches would be sent at once
    });
  };

  const forbidden = async () =>
    context.refusal || (await optedOut(storage)) || (await marked(storage, "clearing"));

  /**
   * Act on an answer; whether the batch is finished.
   * @param {import("./outbox.js").Waiting} waiting
   * @param {string} tried the present name of the batch
   * @param {Answer} answer
   */
  const answered = async ({ batch: { collection } }, tried, { status, code, retry, after }) => {
    const reason = code ?? String(status);
    const known = await readRetry();
    if (status === 204) {
      await outbox.finish(tried);
      sender.error = null;
      const { "": _, [collection]: __, ...reasons } = known.reasons;
      await writeRetry({ ...known, ...NO_FAILURE, reasons });
      return true;
    }
    if (retry === undefined ? PERMANENT.includes(status) : !retry) {
      sender.error = reason;
      await outbox.finish(tried, reason);
      return true;
    }
    if (code === "forbidden" || code === "unknown-collection") {
      sender.error = reason; // batches of other collections need not wait
      const wait = Math.min(Math.max(after ?? 0, MAX_WAIT) * (0.5 + uniform()), LONGEST_WAIT);
      await writeRetry({
        ...known,
        reasons: { ...known.reasons, [collection]: reason },
        postponed: { ...known.postponed, [collection]: Math.floor(now() / 1000 + wait) },
      });
    } else {
      await backOff(reason, after);
    }
    return false;
  };

  /**
   * The answer to a batch, or why there is none.
   * @param {Transport} send
   * @param {Uint8Array} body
   * @param {AbortController} controller
   */
  const exchange = async (send, body, controller) => {
    const timer = setTimeout(() => controller.abort(), TIMEOUT);
    try {
      return /** @type {Answer} */ (Object(await send(body, controller.signal)));
    } catch (error) {
      return `no answer (${Object(error).name})`;
    } finally {
      clearTimeout(timer);
    }
  };

  /** @param {import("./outbox.js").Waiting} waiting */
  const post = (waiting) =>
    storage.lock(SENDING_LOCK, TIMEOUT, async () => {
      // Before the check: whoever opts out after it finds a request to end.
      const controller = (sending = new AbortController());
      const { signal } = controller;
      try {
        const tried = await storage.lock(LOCK, TIMEOUT, async () => {
          // forget() restarts the numbers of batches: the bytes are compared, not only the name.
          const still = (await forbidden()) ? null : await outbox.read(waiting.name);
          return still && same(still.body, waiting.body) ? outbox.trying(waiting.name) : null;
        });
        if (!tried || !transport || context.refusal || signal.aborted) return false;
        const answer = await exchange(transport, waiting.body, controller);
        if (typeof answer === "object") {
          return await answered(waiting, tried, answer).catch(async (error) => {
            await backOff(problemOf(error)); // or the same bytes would be sent again and again
            throw error;
          });
        }
        if (signal.reason !== STOP) await backOff(answer);
        return false;
      } finally {
        sending = null;
      }
    });

  /**
   * The moments of batches in a random order: those that an earlier page drew, and new ones, which are
   * stored. One that is too far ahead is drawn again: the clock was set back. Of those that passed while
   * nobody looked one stays: the others would be sent together with it.
   * @param {import("./outbox.js").Waiting[]} due
   */
  const momentsOf = async (due) => {
    const known = await readRetry();
    const time = now() / 1000;
    let late = 0;
    /** @type {Record<string, number>} */
    const moments = {};
    for (const { name } of due) {
      const moment = known.moments?.[name] ?? Infinity;
      const holds = moment <= time + jitter && (moment > time - LATE || !late++);
      moments[name] = holds ? moment : Math.floor(time + jitter * uniform());
    }
    if (due.some(({ name }) => moments[name] !== known.moments?.[name])) {
      await writeRetry({ ...known, moments });
    }
    return moments;
  };

  /** @param {boolean} atOnce @param {number} until */
  const sendAll = async (atOnce, until) => {
    const due = [];
    for (const name of await outbox.names()) {
      const waiting = await outbox.read(name);
      if (!waiting) continue;
      if (acceptedUntil(waiting.batch.period) < dayOf(now())) await outbox.drop(name, "too old");
      else if (isDue(waiting, now())) due.push({ waiting, at: uniform() });
    }
    due.sort((one, other) => one.at - other.at);
    const moments = atOnce ? {} : await momentsOf(due.map(({ waiting }) => waiting));
    let done = true;
    for (const { waiting } of due) {
      if (performance.now() >= until || (await waits()) || (await forbidden())) return false;
      const { name, batch } = waiting;
      const { postponed = {} } = await readRetry();
      if (secondsTo(postponed[batch.collection]) || secondsTo(moments[name])) {
        done = false;
        continue;
      }
      done = (await post(waiting)) && done;
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
      const until = performance.now() + within;
      try {
        const empty = !transport || !(await outbox.names()).length;
        sender.problem = null;
        if (empty) return true;
        return await storage.lock(UPLOAD_LOCK, atOnce ? within : 0, () => sendAll(atOnce, until));
      } catch (error) {
        const problem = problemOf(error);
        sender.problem = problem === "directory-busy" ? null : problem; // another tab is sending
        return false;
      }
    },
    /** Milliseconds until there may be something to do. */
    async nextMoment() {
      const { after, moments = {} } = await readRetry();
      const ahead = Object.values(moments).map(secondsTo).filter(Boolean); // past ones were looked at
      return 1000 * Math.max(secondsTo(after), Math.min(30, ...ahead), 0.05);
    },
    /** End the request that is under way; whether there is another one, the storage says. */
    interrupt() {
      sending?.abort(STOP);
    },
  };
  return sender;
}

/** @typedef {ReturnType<typeof makeSender>} Sender */
