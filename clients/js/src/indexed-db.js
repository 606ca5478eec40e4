/**
 * Storage in a browser: one IndexedDB database for all tabs and workers of an origin, kept apart by Web
 * Locks. Marks in localStorage, which pages have, and in the cache storage, which workers have too,
 * outlive a database that was cleared alone.
 */

import { Stopped } from "./storage.js";

const WAIT = 5000; // ms for the database to open

/**
 * @param {string} name of the database
 * @returns {import("./storage.js").Storage}
 */
export function openIndexedDb(name) {
  const label = `rappor/${name}`;
  /** @type {Promise<IDBDatabase | null> | null} */
  let opened = null;
  let writing = false; // only then is a missing database created
  const join = () => {
    try {
      return new BroadcastChannel(label);
    } catch {} // blocked, and so is the rest
  };
  let channel = join();

  const forget = () => {
    opened = null;
  };
  /** The database; null if there is none, and nothing is to be written. */
  const open = () =>
    (opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(label, 1); // missing, or throws, if storage is blocked
      let absent = false;
      setTimeout(() => reject(new Stopped("directory-unusable")), WAIT);
      setTimeout(() => request.readyState === "done" || forget(), 4 * WAIT); // until then, no caller waits
      request.onupgradeneeded = () => {
        absent = !writing;
        if (absent) request.transaction?.abort();
        else request.result.createObjectStore("files");
      };
      request.onerror = () => {
        forget(); // a later call tries again
        if (absent) resolve(null);
        else reject(request.error);
      };
      request.onsuccess = () => {
        const database = request.result;
        database.onclose = forget; // the browser cleared it
        database.onversionchange = () => {
          forget();
          database.close();
        };
        resolve(database);
        opened = Promise.resolve(database); // it may have come too late for this call
      };
    }));

  /**
   * One transaction; resolved when it is on disk.
   * @template Result
   * @param {(files: IDBObjectStore) => IDBRequest<Result> | void} action
   * @param {IDBTransactionMode} [mode]
   * @returns {Promise<Result | null>} null: there is no database yet
   */
  const transact = async (action, mode = "readwrite") => {
    try {
      writing ||= mode === "readwrite";
      const database = (await open()) ?? (writing ? await open() : null);
      if (!database && mode === "readonly") return null;
      if (!database) throw new Stopped("directory-unusable");
      return await new Promise((resolve, reject) => {
        const transaction = database.transaction("files", mode, { durability: "strict" });
        const request = action(transaction.objectStore("files"));
        transaction.oncomplete = () => resolve(/** @type {Result} */ (request?.result));
        transaction.onabort = () => reject(transaction.error);
      });
    } catch (error) {
      if (error instanceof Stopped) throw error;
      forget(); // try again next time
      const { name } = Object(error);
      throw new Stopped(name === "QuotaExceededError" ? "disk-full" : "directory-unusable");
    }
  };

  return {
    read: async (file) => (await transact((files) => files.get(file), "readonly")) ?? null,
    names: async (folder) =>
      /** @type {string[] | null} */ (
        await transact((files) => files.getAllKeys(IDBKeyRange.bound(`${folder}/`, `${folder}0`)), "readonly")
      ) ?? [],
    write: (file, data) => transact((files) => files.put(data, file)),
    move: (old, file) =>
      transact((files) => {
        const request = files.get(old);
        request.onsuccess = () => {
          if (!request.result) return;
          files.put(request.result, file);
          files.delete(old);
        };
      }),
    remove: (file) => transact((files) => files.delete(file)),
    lock: async (lock, wait, action) => {
      let held = false;
      try {
        return await navigator.locks.request(
          `${label}/${lock}`,
          wait ? { signal: AbortSignal.timeout(wait) } : { ifAvailable: true },
          async (granted) => {
            if (!granted) throw new Stopped("directory-busy");
            held = true;
            return action();
          },
        );
      } catch (error) {
        if (held || error instanceof Stopped) throw error;
        const { name } = /** @type {Error} */ (error);
        throw new Stopped(name === "TimeoutError" ? "directory-busy" : "directory-unusable");
      }
    },
    witness: async (mark, set) => {
      const key = mark === "used" ? label : `${label}/${mark}`;
      let found = false;
      try {
        if (set) localStorage.setItem(key, mark);
        else if (set === false) localStorage.removeItem(key);
        found = localStorage.getItem(key) !== null;
      } catch {} // a worker, or blocked
      try {
        if (set) await caches.open(key);
        else if (set === false) await caches.delete(key);
        found ||= await caches.has(key);
      } catch {} // blocked
      return found;
    },
    sweep: async () => {}, // a transaction leaves nothing behind
    onStop: (stop) => {
      if (channel) channel.onmessage = stop;
    },
    sayStop: () => (channel ??= join())?.postMessage("stop"),
    close: () => {
      channel?.close();
      channel = undefined;
      opened?.then(
        (database) => database?.close(),
        () => {},
      );
      forget();
    },
  };
}
