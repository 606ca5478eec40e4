/**
 * What the client does over time and in several tabs, with a storage in memory and a clock that each
 * scenario moves. Nothing depends on how busy the machine is: hash functions answer at once, so after a
 * turn of the event loop the client only waits for its timers.
 *
 *     node scenarios.js NAME SOURCES [DEFINITION …]
 *
 * prints what the scenario found, as JSON.
 */

import { createHash, createHmac } from "node:crypto";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { createConnection } from "node:net";
import { pathToFileURL } from "node:url";

const [name, folder, ...collections] = process.argv.slice(2);
const sources = pathToFileURL(`${folder}/`);

// Time.
let time = Date.UTC(2026, 10, 17, 12);
const timers = new Map();
globalThis.setTimeout = (action, wait = 0, ...given) => {
  const timer = { unref: () => timer };
  const after = wait <= 2 ** 31 - 1 ? Math.max(wait, 1) : 1; // as the platforms do
  timers.set(timer, { at: time + after, action: () => action(...given) });
  return timer;
};
globalThis.clearTimeout = (timer) => timers.delete(timer);
Object.defineProperty(performance, "now", { value: () => time });
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Let time pass, and the timers end in their order. */
async function pass(milliseconds) {
  const ends = time + milliseconds;
  for (;;) {
    await turn();
    const due = [...timers]
      .filter(([, { at }]) => at <= ends)
      .sort(([, one], [, other]) => one.at - other.at);
    if (!due.length) break;
    const [[timer, { at, action }]] = due;
    timers.delete(timer);
    time = Math.max(time, at);
    action();
  }
  time = ends;
  await turn();
}
const SECOND = 1000;
const MINUTE = 60 * SECOND;

// Hash functions.
const answers = {
  digest: async (_, data) => new Uint8Array(createHash("sha256").update(data).digest()),
  importKey: async (_, key) => key,
  sign: async (_, key, data) => new Uint8Array(createHmac("sha512", key).update(data).digest()),
};
for (const [method, value] of Object.entries(answers))
  Object.defineProperty(crypto.subtle, method, { value });

const { openClient } = await import(new URL("client.js", sources));
const { openFolder } = await import(new URL("folder.js", sources));
const { openIndexedDb } = await import(new URL("indexed-db.js", sources));
const { Stopped } = await import(new URL("storage.js", sources));

/** A storage that tabs share; `before` may wait or throw, `touched` has the time of each access. */
const newDisk = () => ({
  files: new Map(),
  marks: new Set(),
  locks: new Map(),
  tabs: new Set(),
  touched: [],
  before: async (_what, _file) => {},
});

function openStorage(disk) {
  const tab = { stop: () => {} };
  disk.tabs.add(tab);
  const access =
    (what, action) =>
    async (...given) => {
      disk.touched.push(time);
      await disk.before(what, given[0]);
      return action(...given);
    };
  return {
    read: access("read", (file) => disk.files.get(file) ?? null),
    names: access("names", (of) => [...disk.files.keys()].filter((file) => file.startsWith(`${of}/`)).sort()),
    write: access("write", (file, data) => disk.files.set(file, data)),
    move: access("move", (old, file) => {
      if (disk.files.has(old)) disk.files.set(file, disk.files.get(old));
      disk.files.delete(old);
    }),
    remove: access("remove", (file) => disk.files.delete(file)),
    async lock(lock, wait, action) {
      const ends = time + wait;
      while (disk.locks.has(lock)) {
        if (time >= ends) throw new Stopped("directory-busy");
        let timer;
        const late = new Promise((resolve) => {
          timer = setTimeout(resolve, ends - time);
        });
        await Promise.race([disk.locks.get(lock), late]);
        clearTimeout(timer);
      }
      let free;
      disk.locks.set(lock, new Promise((resolve) => (free = resolve)));
      try {
        return await action();
      } finally {
        disk.locks.delete(lock);
        free();
      }
    },
    async witness(mark, set) {
      if (set && !disk.nowhereElse) disk.marks.add(mark);
      if (set === false) disk.marks.delete(mark);
      return disk.marks.has(mark);
    },
    sweep: async () => {},
    onStop: (stop) => {
      tab.stop = stop;
    },
    sayStop: () => {
      for (const other of disk.tabs) if (other !== tab) other.stop();
    },
    close: () => {},
  };
}

/** A tab: a client, and what it sent, with the time. */
async function openTab(disk, options = {}) {
  const sent = [];
  const given = [];
  const transport = async (body) => {
    sent.push({ time, number: body.join() });
    return given.shift() ?? { status: 204 };
  };
  const platform = {
    openStorage: async () => openStorage(disk),
    doNotTrack: () => false,
    problem: null,
    release: () => {},
  };
  const asked = { collections, consent: true, now: () => time, transport, jitter: 10, ...options };
  const client = await openClient(asked, platform);
  return { client, sent, answers: given, report: (value = "x") => client.report("homepage", value) };
}

/** End all tabs at once, as a browser does; what they stored stays. */
function closeBrowser(disk) {
  timers.clear();
  disk.tabs.clear();
  disk.locks.clear();
}

/** At how many moments the storage was touched within a time. */
async function touches(disk, milliseconds) {
  disk.touched = [];
  await pass(milliseconds);
  return new Set(disk.touched).size;
}

const codeOf = (action) =>
  action.then(
    () => null,
    (error) => error.problem ?? error.code ?? error.name,
  );

const scenarios = {
  /** How often an idle client wakes in ten minutes: after its upload, that of another tab, an opt-out. */
  async idle() {
    const disk = newDisk();
    const one = await openTab(disk);
    one.report();
    await pass(MINUTE);
    const afterUpload = await touches(disk, 10 * MINUTE);
    const other = await openTab(disk);
    one.report();
    other.report();
    await pass(MINUTE);
    const twoTabs = await touches(disk, 10 * MINUTE);
    one.report();
    await pass(SECOND / 10);
    await other.client.optOut();
    await pass(MINUTE);
    const afterOptOut = await touches(disk, 10 * MINUTE);
    return { sent: one.sent.length + other.sent.length, afterUpload, twoTabs, afterOptOut };
  },

  /** Another tab opts out after the last check of a batch, and before its request begins. */
  async stopBeforeTheRequest() {
    const disk = newDisk();
    const [sender, other] = [await openTab(disk), await openTab(disk)];
    let out;
    disk.before = async (what, file) => {
      if (what !== "move" || !file.startsWith("outbox/") || out) return;
      out = other.client.optOut();
      while (!disk.files.has("clearing")) await null; // it has said twice that others stop
    };
    sender.report();
    const flushed = sender.client.flush();
    await pass(20 * SECOND);
    const waiting = (await other.client.preview()).waiting.length;
    return { out: await out, flushed: await flushed, sent: sender.sent.length, waiting };
  },

  /** The database opens, or fails, after the client gave up waiting for it. */
  async slowDatabase() {
    const opening = [];
    const files = { get: () => ({ result: Uint8Array.of(7) }) };
    const database = {
      transaction() {
        const made = { objectStore: () => files };
        queueMicrotask(() => made.oncomplete());
        return made;
      },
      close() {},
    };
    globalThis.indexedDB = {
      open() {
        const request = { readyState: "pending", error: new DOMException("", "UnknownError") };
        opening.push(request);
        return request;
      },
    };
    const end = async (event) => {
      const request = opening.at(-1);
      request.readyState = "done";
      request.result = database;
      request[event]();
      await turn();
    };
    const storage = openIndexedDb("slow");
    const read = async () => {
      const found = storage.read("file").then(
        (data) => data[0],
        ({ problem }) => problem,
      );
      await pass(6 * SECOND);
      return found;
    };
    const first = await read();
    await end("onerror");
    await pass(MINUTE);
    const second = await read(); // opens it again, and gives up again
    await end("onsuccess");
    await pass(MINUTE);
    const third = await read();
    storage.close();
    return [first, second, third, opening.length];
  },

  /** Visits of five seconds, an hour apart, with one report at the first. */
  async shortVisits() {
    const disk = newDisk();
    let sent = 0;
    for (let visit = 0; visit < 2; visit++) {
      const tab = await openTab(disk, { jitter: 300 });
      if (!visit) tab.report();
      await pass(5 * SECOND);
      sent += tab.sent.length;
      closeBrowser(disk);
      time += 60 * MINUTE;
    }
    return sent;
  },

  /** Many reports wait for the next visit; how many its first look sends. */
  async manyWait() {
    const disk = newDisk();
    const first = await openTab(disk, { jitter: 300 });
    for (let number = 0; number < 40; number++) first.report();
    await pass(SECOND / 10);
    closeBrowser(disk);
    time += 60 * MINUTE;
    const second = await openTab(disk, { jitter: 300 });
    await pass(SECOND / 10);
    return second.sent.length;
  },

  /** When and in which order reports are sent: at their moments, and by flush(). */
  async moments() {
    const found = {};
    for (const flushed of [false, true]) {
      const disk = newDisk();
      const tab = await openTab(disk, { jitter: flushed ? 0 : 300, outboxLimit: 1000, transport: undefined });
      for (let number = 0; number < 100; number++) tab.report();
      await pass(SECOND / 1000);
      closeBrowser(disk);
      const numbers = new Map();
      for (const [file, data] of disk.files) {
        if (file.startsWith("outbox/")) numbers.set(data.slice(data.indexOf(10) + 1).join(), file);
      }
      const began = time;
      const sending = await openTab(disk, { jitter: flushed ? 0 : 300, outboxLimit: 1000 });
      if (flushed) await sending.client.flush(MINUTE);
      else await pass(10 * MINUTE);
      const order = [...numbers.values()].sort();
      found[flushed ? "flushed" : "background"] = sending.sent.map((one) => [
        (one.time - began) / SECOND,
        order.indexOf(numbers.get(one.number)),
      ]);
    }
    return found;
  },

  /** The storage has no room for the marks of an opt-out. */
  async optOutWithoutRoom() {
    const found = [];
    for (const nowhereElse of [false, true]) {
      const disk = newDisk();
      const tab = await openTab(disk, { jitter: 300 });
      tab.report();
      await pass(SECOND / 10);
      const before = (await tab.client.status()).waiting;
      Object.assign(disk, { nowhereElse });
      disk.before = async (what) => {
        if (what === "write" || what === "move") throw new Stopped("disk-full");
      };
      const out = await tab.client.optOut();
      disk.before = async () => {};
      const next = await openTab(disk, { jitter: 0 });
      await next.client.flush();
      const { state, waiting } = await next.client.status();
      found.push({ before, out, state, waiting, sent: next.sent.length, in: await next.client.optIn() });
      found.at(-1).later = (await (await openTab(disk)).client.status()).state;
    }
    return found;
  },

  /** Another tab opted out and in again: what is reported a minute later, or after opting in here, counts. */
  async outAndInElsewhere() {
    const calls = [];
    for (const wait of [() => pass(MINUTE), (/** @type {any} */ one) => one.client.optIn()]) {
      const disk = newDisk();
      const [one, other] = [await openTab(disk), await openTab(disk)];
      one.report();
      await one.client.flush();
      await other.client.optOut();
      await other.client.optIn();
      await wait(one);
      one.report();
      await one.client.flush();
      calls.push((await one.client.status()).calls);
    }
    return calls;
  },

  async optInWhileOn() {
    const disk = newDisk();
    const tab = await openTab(disk, { jitter: 300 });
    tab.report();
    await pass(SECOND / 10);
    return [await tab.client.optIn(), (await tab.client.status()).waiting];
  },

  /** Opened without consent while another tab holds the lock. */
  async noConsentWhileLocked() {
    const disk = newDisk();
    const tab = await openTab(disk, { jitter: 300 });
    tab.report();
    await pass(SECOND / 10);
    closeBrowser(disk);
    disk.locks.set("lock", new Promise(() => {}));
    const opening = openTab(disk, { consent: false });
    await pass(2 * SECOND);
    await opening;
    return ["clearing", "paused"].map((file) => disk.files.has(file));
  },

  /** forget() fails while another tab sends, and then succeeds. */
  async forgetWhileSending() {
    const disk = newDisk();
    const tab = await openTab(disk);
    tab.report();
    await tab.client.flush();
    disk.locks.set("sending.lock", new Promise(() => {}));
    const failing = codeOf(tab.client.forget());
    await pass(2 * SECOND);
    const failed = await failing;
    const then = await tab.client.status();
    const secret = disk.files.has("secret");
    disk.locks.clear();
    const done = await codeOf(tab.client.forget());
    return [failed, then.state, then.problem, secret, done, (await tab.client.status()).state];
  },

  async waitForEver() {
    const disk = newDisk();
    const tab = await openTab(disk);
    disk.locks.set("upload.lock", new Promise(() => {}));
    tab.report();
    const flushing = tab.client.flush(Infinity);
    await pass(MINUTE);
    disk.locks.clear();
    tab.answers.push({ status: 204 });
    return [await Promise.race([flushing, turn().then(() => "waits")])];
  },

  /** What is wrong is no longer said once another tab has sent, or the storage works again. */
  async problemsEnd() {
    const disk = newDisk();
    const [one, other] = [await openTab(disk), await openTab(disk)];
    one.answers.push({ status: 503, code: "overloaded", retry: true });
    one.report();
    await one.client.flush();
    const said = (await one.client.status()).upload;
    time += 2 * MINUTE;
    await other.client.flush();
    const { upload, nextAttempt } = await one.client.status();
    disk.before = async (what, file) => {
      if (what === "names" && file === "outbox") throw new Stopped("directory-unusable");
    };
    await pass(MINUTE);
    disk.before = async () => {};
    await pass(MINUTE);
    return [said, upload, nextAttempt, (await one.client.status()).problem];
  },

  /** Values that would take long to copy are refused at once, without a look at all of them. */
  async hugeValues() {
    const tab = await openTab(newDisk());
    let looked = 0;
    const keys = Array.from({ length: 1e5 }, (_, at) => `key${at}`);
    const huge = new Proxy(
      {},
      {
        ownKeys: () => keys,
        getOwnPropertyDescriptor: () => {
          looked++;
          return { value: 1, enumerable: true, configurable: true };
        },
      },
    );
    for (const value of [huge, 2n ** 20000n, new Float64Array(1e5), "x".repeat(1e5)]) tab.report(value);
    const { calls } = await tab.client.status();
    return [calls, looked];
  },

  async wrongSecrets() {
    const found = [];
    for (const accountSecret of ["", null, 0, new Uint8Array(15), new Uint8Array(16), undefined]) {
      found.push(await codeOf(openTab(newDisk(), { accountSecret })));
    }
    return found;
  },

  /** A transport that answers with nothing, or throws at once, is not asked again at once. */
  async oddTransports() {
    const found = [];
    for (const odd of [() => undefined, () => null.x]) {
      let asked = 0;
      const transport = () => {
        asked++;
        return odd();
      };
      const tab = await openTab(newDisk(), { transport });
      tab.report();
      await tab.client.flush();
      await tab.client.flush();
      found.push([asked, (await tab.client.status()).problem]);
    }
    return found;
  },

  /** The storage fails when an answer is noted; a stranger connects to the lock of a folder. */
  async answerCannotBeNoted() {
    const disk = newDisk();
    const tab = await openTab(disk);
    disk.before = async (what, file) => {
      if (what === "move" && file.endsWith(".tried")) throw new Stopped("disk-full");
    };
    tab.report();
    await tab.client.flush();
    const { upload, problem } = await tab.client.status();
    await tab.client.flush();
    return [upload, problem, tab.sent.length];
  },

  async strangerAtTheLock() {
    const [directory] = collections;
    const storage = openFolder(directory);
    return storage.lock("lock", 0, async () => {
      const { dev, ino } = await stat(directory);
      const stranger = createConnection(`\0rappor/${dev}/${ino}/lock`).on("error", () => {});
      await once(stranger, "connect");
      return "released";
    });
  },
};

console.log(JSON.stringify(await scenarios[name]()));
process.exit(0);
