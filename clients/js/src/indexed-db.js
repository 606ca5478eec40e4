/**
 * Storage in a browser: one IndexedDB database for all tabs and workers of an origin, kept apart by Web
 * Locks. A mark in localStorage, which pages have, outlives a database that was cleared alone.
 */

import { Stopped } from "./storage.js";

/**
 * @param {string} name of the database
 * @returns {import("./storage.js").Storage}
 */
export function openIndexedDb(name) {
  const label = `rappor/${name}`;
  /** @type {Promise<IDBDatabase> | null} */
  let opened = null;
  const channel = new BroadcastChannel(label);

  const open = () =>
    (opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(label, 1); // throws if storage is blocked
      request.onupgradeneeded = () => request.result.createObjectStore("files");
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        const forget = () => {
          opened = null;
        };
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
        transaction.onabort = transaction.onerror = () =>
          reject(transaction.error ?? new DOMException("the transaction was aborted", "AbortError"));
      });
    } catch (error) {
      opened = null; // try again next time
      throw error;
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
        throw held ? error : new Stopped("directory-busy");
      }
    },
    witness: (used) => {
      try {
        if (used) localStorage.setItem(label, "used");
        else if (used === false) localStorage.removeItem(label);
        return localStorage.getItem(label) !== null;
      } catch {
        return false; // a worker, or blocked
      }
    },
    onStop: (stop) => {
      channel.onmessage = stop;
    },
    sayStop: () => channel.postMessage("stop"),
  };
}
