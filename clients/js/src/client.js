/**
 * Client: report values from an application without disturbing it.
 *
 * `report()` puts the call into a queue and returns; the rest happens later, in the background. Only
 * `open()` throws, and only for wrong arguments; `forget()` throws if not everything was deleted.
 */

import { own } from "./bytes.js";
import { emptyLedger, FULL, groupLimits, raiseFloor, spent } from "./charging.js";
import { checkCollection } from "./collection.js";
import {
  clearOutbox,
  LOCK,
  mark,
  marked,
  optedOut,
  PATIENCE,
  requestClearing,
  SENDING_LOCK,
} from "./consent.js";
import { addUp } from "./epsilon.js";
import { checkArgument, sentence } from "./errors.js";
import { findLedger, REPORTS, wasUsed } from "./identity.js";
import { explainForgotten } from "./messages.js";
import { makeOutbox } from "./outbox.js";
import { inRange } from "./params.js";
import { dayOf, periodOf } from "./periods.js";
import { makeRecorder } from "./recorder.js";
import { httpTransport, makeSender } from "./sender.js";
import { makePreview, makeStatus } from "./status.js";
import { problemOf, readJson, writeJson } from "./storage.js";

/** @typedef {import("../types/index.js").ClientOptions} ClientOptions */
/** @typedef {import("./collection.js").Collection} Collection */
/** @typedef {import("./storage.js").Storage} Storage */

/**
 * What the platform gives a client.
 * @typedef {object} Platform
 * @property {(options: ClientOptions) => Promise<Storage>} openStorage never rejects
 * @property {() => boolean} doNotTrack
 * @property {import("./storage.js").Problem | null} problem why this platform cannot report at all
 * @property {(timer: any) => void} release let the process end although the timer runs
 */

const QUEUE_LIMIT = 1000;
const MAX_VALUE_SIZE = 2 ** 14; // characters, bytes or bits; more would hold up the page for too long
const TICK = 30000; // ms between checks for periods that have ended
const MAX_TIMEOUT = 2 ** 31 - 1; // ms; a timer that is longer ends at once

/**
 * The address of the collector, with its path.
 * @param {unknown} given
 * @returns {string}
 */
function checkAddress(given) {
  let address = "";
  try {
    address = new URL(String(given)).href;
  } catch {}
  checkArgument(
    /^https?:\/\/[^@/]+\/[^?#]*$/.test(address),
    sentence`uploadTo must be an address such as https://reports.example.org, without user, password, query or fragment`,
  );
  checkArgument(
    /^(https|http:\/\/(localhost|127\.0\.0\.1|\[::1])[:/])/.test(address),
    sentence`uploadTo must be https, so that reports are encrypted in transit; http is for localhost only`,
  );
  return address.replace(/^([^/]+\/\/[^/]+)\/+$/, "$1/v1/reports");
}

/** @param {number} value @param {number} low @param {number} high @param {string} name */
function checkNumber(value, low, high, name) {
  checkArgument(inRange(value, low, high), sentence`${name} must be a number from ${low} to ${high}`);
}

/** @param {any} given @param {import("./signal.js").Dialects} [dialects] @returns {Promise<Collection[]>} */
async function gather(given, dialects) {
  checkArgument(
    Array.isArray(given) && given.length,
    sentence`collections must be a list of at least one definition`,
  );
  /** @type {Collection[]} */
  const collections = [];
  for (const definition of given) {
    const collection = await checkCollection(definition, dialects);
    checkArgument(
      collections.every(({ name }) => name !== collection.name),
      sentence`collections must have distinct names: ${collection.name} twice`,
    );
    collections.push(collection);
  }
  return collections;
}

/** @param {any} given @param {Collection[]} collections @returns {Record<string, string>} */
function checkDimensions(given, collections) {
  for (const [name, value] of Object.entries(given)) {
    checkArgument(
      typeof value === "string" && collections.some(({ dimensions }) => Object.hasOwn(dimensions, name)),
      sentence`dimensions must be texts that a collection declares, got ${name}`,
    );
  }
  return { ...given };
}

/** @param {any} part of a value; `slice` of a Buffer is not a copy */
const copyOf = (part) =>
  part instanceof Uint8Array ? new Uint8Array(part) : Array.isArray(part) ? [...part] : part;

/** @param {any} part of a value */
const isLarge = (part) =>
  part?.length > MAX_VALUE_SIZE || (typeof part === "bigint" && BigInt.asIntN(MAX_VALUE_SIZE, part) !== part);

/**
 * A copy of what the application could change after the call, an object of any class included; null: too
 * large.
 * @param {any} value
 */
function snapshot(value) {
  if (isLarge(value)) return null;
  if (Object(value) !== value || Array.isArray(value) || ArrayBuffer.isView(value)) {
    return { value: copyOf(value) };
  }
  const copies = [];
  for (const name in value) {
    if (!Object.hasOwn(value, name)) continue;
    const part = value[name];
    if (copies.length > 3 || isLarge(part)) return null;
    copies.push([name, copyOf(part)]);
  }
  return { value: Object.fromEntries(copies) };
}

/**
 * @param {ClientOptions} options
 * @param {Platform} platform
 * @returns {Promise<import("../types/index.js").Client>}
 */
export async function openClient(options, platform) {
  const { consent, ingestKey, maxEpsilon = Infinity, dialects, now = Date.now } = options;
  checkArgument(typeof consent === "boolean", sentence`consent must be true or false`);
  const given = options.accountSecret;
  checkArgument(
    given === undefined || (given instanceof Uint8Array && given.length >= 16),
    sentence`accountSecret must be at least 16 random bytes; newSecret() makes 32`,
  );
  const accountSecret = copyOf(given); // an application may wipe its own
  checkArgument(
    ingestKey === undefined || /^[!-~]+$/.test(ingestKey),
    sentence`ingestKey must be a text of visible ASCII characters`,
  );
  // An insecure context has no hash functions to check a definition with.
  const collections = platform.problem ? [] : await gather(options.collections, dialects);
  const dimensions = platform.problem ? {} : checkDimensions(options.dimensions ?? {}, collections);
  const uploadTo = options.uploadTo === undefined ? null : checkAddress(options.uploadTo);
  const jitter = options.jitter ?? 300;
  const outboxLimit = options.outboxLimit ?? 100;
  checkNumber(maxEpsilon, 0, Infinity, sentence`maxEpsilon`);
  checkNumber(jitter, 0, 86400, sentence`jitter`);
  checkNumber(outboxLimit, 1, 1e5, sentence`outboxLimit`);
  const storage = await platform.openStorage(options);
  /** @type {import("./recorder.js").Context} */
  const context = {
    storage,
    outbox: makeOutbox(storage, outboxLimit),
    collections,
    dimensions,
    accountSecret,
    caps: { total: maxEpsilon, shared: !!accountSecret, groups: groupLimits(collections) },
    dialects,
    now,
    refusal: null,
  };
  const { outbox } = context;
  const recorder = makeRecorder(context);
  recorder.problem = platform.problem;
  const transport = options.transport ?? (uploadTo ? httpTransport(uploadTo, ingestKey) : null);
  const sender = makeSender(context, transport, jitter);

  /** @type {[string, unknown, number, number][]} */
  let queue = [];
  /** @type {Promise<void>} */
  let recording = Promise.resolve();
  let busy = false;
  /** @type {any} */
  let timer;

  const drain = async () => {
    while (queue.length) {
      const call = /** @type {[string, unknown, number, number]} */ (queue.shift());
      await recorder.record(...call).catch(() => recorder.count("not made"));
    }
    busy = false;
    schedule(50);
  };
  let due = Infinity; // when the timer ends
  /** Work after a while, or earlier if that is planned: calls in a row do not put it off. @param {number} wait ms */
  const schedule = (wait) => {
    const moment = performance.now() + wait;
    if (context.refusal || moment >= due) return;
    clearTimeout(timer);
    due = moment;
    timer = setTimeout(work, wait);
    platform.release(timer);
  };
  let ticked = -Infinity;
  const work = async () => {
    due = Infinity;
    try {
      if (performance.now() - ticked >= TICK) {
        ticked = performance.now();
        await recorder.tick();
      }
      if (!context.refusal) await sender.send(false, 60000);
    } catch (error) {
      console.warn("rappor:", Object(error).name);
    }
    schedule(Math.min(await sender.nextMoment(), TICK));
  };
  const interrupt = () => {
    queue = [];
    sender.interrupt();
  };
  const halt = (/** @type {import("./messages.js").State} */ state) => {
    context.refusal = state;
    interrupt();
    recorder.closed.clear();
    clearTimeout(timer);
    due = Infinity;
  };
  const resume = async () => {
    await recorder.readEpoch();
    context.refusal = null;
    schedule(0);
  };
  /** Wait until nothing is being sent any more. */
  const nothingSends = () => storage.lock(SENDING_LOCK, PATIENCE, async () => {});

  const client = {
    report(/** @type {string} */ name, /** @type {unknown} */ value) {
      try {
        if (context.refusal) return;
        const day = dayOf(now());
        if (recorder.isClosed(name, day)) return recorder.count(FULL);
        const copy = snapshot(value);
        if (!copy) return recorder.count("value refused");
        if (queue.length >= QUEUE_LIMIT) return recorder.count("queue full");
        queue.push([name, copy.value, day, recorder.epoch]);
        if (!busy) {
          busy = true;
          recording = Promise.resolve().then(drain);
        }
      } catch {
        recorder.count("not made");
      }
    },
    status: () => makeStatus(context, recorder, sender),
    preview: () => makePreview(context, uploadTo, !!ingestKey),
    async flush(given = 2000) {
      if (context.refusal) return false;
      const timeout = Math.min(given, MAX_TIMEOUT);
      const ends = performance.now() + timeout;
      const late = new Promise((resolve) => platform.release(setTimeout(resolve, timeout, false)));
      const sent = recording.then(async () => {
        await recorder.tick();
        const done = await sender.send(true, Math.max(0, ends - performance.now()));
        return done && !recorder.problem;
      });
      return Promise.race([sent, late]);
    },
    async optOut() {
      halt("opted out");
      storage.sayStop();
      // Without room for the mark in the storage, it is outside of it.
      const noted = await mark(storage, "opted-out").then(
        () => true,
        () => storage.witness("opted-out", true),
      );
      storage.sayStop(); // again: another tab may have begun a request before it saw the mark
      const cleared = await clearOutbox(storage, outbox);
      return nothingSends().then(
        () => noted && cleared,
        () => false,
      );
    },
    async optIn() {
      if (!["opted out", "no consent", null].includes(context.refusal)) return false;
      if (platform.problem || platform.doNotTrack()) return false;
      try {
        if (!context.refusal && !(await optedOut(storage)) && !(await marked(storage, "clearing"))) {
          await recorder.readEpoch(); // another tab may have opted out and in again
          return true;
        }
        // First: nothing that was recorded before the opt-out is ever sent.
        await requestClearing(storage);
        await storage.remove("opted-out");
        await storage.witness("opted-out", false);
      } catch {
        return false;
      }
      await clearOutbox(storage, outbox);
      await resume();
      return true;
    },
    async forget() {
      halt("stopped");
      storage.sayStop();
      try {
        const done = await storage.lock(SENDING_LOCK, PATIENCE, () =>
          storage.lock(LOCK, PATIENCE, () => forget(storage, collections, dayOf(now()))),
        );
        context.refusal = "forgotten";
        storage.close();
        return done;
      } catch (error) {
        recorder.problem = problemOf(error);
        throw error;
      }
    },
    async close(timeout = 1000) {
      if (context.refusal === "closed") return true;
      const done = !!context.refusal || (await client.flush(timeout));
      halt("closed");
      storage.close();
      return done;
    },
  };

  storage.onStop(interrupt);
  await recorder.readEpoch();
  if (platform.problem) halt("stopped");
  else if (await optedOut(storage).catch(() => false)) halt("opted out");
  else if (consent && !platform.doNotTrack()) schedule(0);
  else {
    halt(consent ? "do not track" : "no consent");
    if (await wasUsed(storage).catch(() => false)) await clearOutbox(storage, outbox);
  }
  return Object.freeze(client);
}

/**
 * Delete everything but the ε that it cost, and the last reported period of each collection: a new
 * secret gives a second look at the same values. Call it while holding the lock.
 * @param {Storage} storage
 * @param {Collection[]} collections
 * @param {number} today
 * @returns {Promise<import("../types/index.js").Forgotten>}
 */
async function forget(storage, collections, today) {
  let ledger;
  let complete = true;
  try {
    ledger = await findLedger(storage);
  } catch {
    complete = false; // lost or too old: assume that every limit was reached
    const found = await readJson(storage, "ledger", await readJson(storage, "forgotten", {}));
    ledger = { ...emptyLedger(), ...found };
  }
  /** @type {Record<string, number>} */
  const carried = {};
  const { accounts, groups, floors, used } = ledger;
  const names = [...accounts.map(({ collection }) => collection), ...Object.keys(ledger.carried)];
  for (const name of new Set(names)) carried[name] = spent(ledger, (other) => other === name);
  for (const [name, periods] of Object.entries(used)) raiseFloor(ledger, name, Object.keys(periods));
  for (const collection of complete ? [] : collections) {
    const { name } = collection;
    carried[name] = Math.max(own(carried, name) ?? 0, collection.max_epsilon);
    if (collection.group) groups[name] = collection.group;
    raiseFloor(ledger, name, [periodOf(collection.period, today)]);
  }
  await writeJson(storage, "forgotten", { carried, groups, floors });
  for (const folder of REPORTS) {
    for (const name of await storage.names(folder)) await storage.remove(name);
  }
  // The ledger goes last: until then, forget() can be repeated.
  for (const name of ["counts", "retry", "secret", "used"]) await storage.remove(name);
  await storage.sweep();
  await storage.witness("used", false);
  await storage.remove("ledger");
  const epsilon = addUp(Object.values(carried).map((loss) => [loss, 1]));
  return { epsilon, text: explainForgotten(epsilon) };
}
