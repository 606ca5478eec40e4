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
  /** @type {Promise<IDBDatabase> | null} */
  let opened = null;
  /** @type {BroadcastChannel | undefined} */
  let channel;
  try {
    channel = new BroadcastChannel(label);
  } catch {} // blocked, and so is the rest

  const forget = () => {
    opened = null;
  };
  const open = () =>
    (opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(label, 1); // missing, or throws, if storage is blocked
      setTimeout(() => reject(new Stopped("directory-unusable")), WAIT);
      setTimeout(() => request.readyState === "done" || forget(), 4 * WAIT); // until then, no caller waits
      request.onupgradeneeded = () => request.result.createObjectStore("files");
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        database.onclose = forget; // the browser cleared it
        database.onversionchange = () => {
          forget();
          database.close();
        };
        resolve(database);
      };
    }));

  /**
   * One transaction; resolved when it is on disk.
   * @template Result
   * @param {(files: IDBObjectStore) => IDBRequest<Result> | void} action
   * @param {IDBTransactionMode} [mode]
   * @returns {Promise<Result>}
   */
  const transact = async (action, mode = "readwrite") => {
    try {
      const database = await open();
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
      /** @type {string[]} */ (
        await transact((files) => files.getAllKeys(IDBKeyRange.bound(`${folder}/`, `${folder}0`)), "readonly")
      ),
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
    witness: async (used) => {
      let found = false;
      try {
        if (used) localStorage.setItem(label, "used");
        else if (used === false) localStorage.removeItem(label);
        found = localStorage.getItem(label) !== null;
      } catch {} // a worker, or blocked
      try {
        if (used) await caches.open(label);
        else if (used === false) await caches.delete(label);
        found ||= await caches.has(label);
      } catch {} // blocked
      return found;
    },
    sweep: async () => {}, // a transaction leaves nothing behind
    onStop: (stop) => {
      if (channel) channel.onmessage = stop;
    },
    sayStop: () => channel?.postMessage("stop"),
  };
}
