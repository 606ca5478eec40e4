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
   * @param {IDBTransactionMode} mode
   * @param {(files: IDBObjectStore) => IDBRequest<Result> | void} action
   * @returns {Promise<Result>}
   */
  const transact = async (mode, action) => {
    try {
      const database = await open();
      return await new Promise((resolve, reject) => {
        const transaction = database.transaction("files", mode, { durability: "strict" });
        const request = action(transaction.objectStore("files"));
        transaction.oncomplete = () => resolve(/** @type {Result} */ (request?.result));
        transaction.onabort = () => reject(transaction.error ?? new DOMException("", "AbortError"));
      });
    } catch (error) {
      if (!(error instanceof Stopped)) forget(); // try again next time
      throw error instanceof DOMException ? error : new Stopped("directory-unusable");
    }
  };

  return {
    read: async (file) => (await transact("readonly", (files) => files.get(file))) ?? null,
    names: async (folder) =>
      /** @type {string[]} */ (
        await transact("readonly", (files) => files.getAllKeys(IDBKeyRange.bound(`${folder}/`, `${folder}0`)))
      ),
    write: async (file, data) => {
      await transact("readwrite", (files) => files.put(data, file));
    },
    move: async (old, file) => {
      await transact("readwrite", (files) => {
        const request = files.get(old);
        request.onsuccess = () => {
          if (!request.result) return;
          files.put(request.result, file);
          files.delete(old);
        };
      });
    },
    remove: async (file) => {
      await transact("readwrite", (files) => files.delete(file));
    },
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
