/**
 * Storage in Node.js: a folder, in which a crash leaves each file old or new, never half-written.
 *
 * A file is written under another name, synced and renamed; then the folder is synced. Only its owner
 * can read it. The operating system ends a lock with the process that holds it: an abstract socket on
 * Linux, a lock on an open file elsewhere.
 */

import { constants, fstatSync } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Stopped } from "./storage.js";

const UNFINISHED = ".new-";
// Open for this process alone: O_EXLOCK of macOS, UV_FS_O_EXLOCK of Windows.
const EXCLUSIVE = process.platform === "win32" ? 0x10000000 : 0x20 | constants.O_NONBLOCK;
let unfinished = 0;

/** @param {unknown} error @param {...string} codes */
const is = (error, ...codes) => codes.includes(String(/** @type {{ code?: string }} */ (error).code));

/**
 * The same action; what fails in it stops the client.
 * @template {unknown[]} Given
 * @template Result
 * @param {(...given: Given) => Promise<Result>} action
 * @returns {(...given: Given) => Promise<Result>}
 */
const stopping =
  (action) =>
  async (...given) => {
    try {
      return await action(...given);
    } catch (error) {
      if (!/^E[A-Z]+$/.test(Object(error).code)) throw error; // not an error of the file system
      throw new Stopped(is(error, "ENOSPC", "EDQUOT", "EFBIG") ? "disk-full" : "directory-unusable");
    }
  };

/** @param {string} folder */
async function syncFolder(folder) {
  if (process.platform === "win32") return; // folders cannot be synced there; renames are journalled
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * @param {string} given with ~ for the home folder
 * @returns {import("./storage.js").Storage}
 */
export function openFolder(given) {
  const root = resolve(given.replace(/^~(?=\/|$)/, homedir()));
  /** @param {string} name */
  const path = (name) => join(root, name);
  /** @param {string} folder */
  const make = async (folder) => {
    const first = await mkdir(folder, { recursive: true, mode: 0o700 });
    if (first) await syncFolder(dirname(first));
  };

  /**
   * Try to take a lock; how to release it, or null if another process holds it.
   * @param {string} name
   * @returns {Promise<(() => Promise<unknown>) | null>}
   */
  const tryLock = async (name) => {
    if (process.platform !== "linux") {
      try {
        const handle = await open(path(name), constants.O_RDWR | constants.O_CREAT | EXCLUSIVE, 0o600);
        return () => handle.close();
      } catch (error) {
        if (is(error, "EAGAIN", "EWOULDBLOCK", "EBUSY", "EACCES")) return null;
        throw error;
      }
    }
    const { dev, ino } = await stat(root);
    const server = createServer((stranger) => stranger.destroy()).unref(); // or close() waits for it
    return new Promise((taken, failed) => {
      server.once("error", (error) => (is(error, "EADDRINUSE") ? taken(null) : failed(error)));
      server.listen(`\0rappor/${dev}/${ino}/${name}`, () =>
        taken(() => new Promise((closed) => server.close(closed))),
      );
    });
  };

  return {
    read: stopping(async (name) => {
      let handle;
      try {
        handle = await open(path(name), constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
        const { uid, mode } = fstatSync(handle.fd);
        const user = process.geteuid?.();
        if (user && uid !== user && uid !== 0) throw new Stopped("directory-unusable");
        if (user === uid && mode & 0o077) await handle.chmod(0o600).catch(() => {});
        return new Uint8Array(await handle.readFile());
      } catch (error) {
        if (is(error, "ENOENT")) return null;
        throw error;
      } finally {
        await handle?.close();
      }
    }),
    names: stopping(async (folder) => {
      try {
        const entries = await readdir(path(folder), { withFileTypes: true });
        return entries
          .filter((entry) => entry.isFile() && !entry.name.startsWith(UNFINISHED))
          .map((entry) => `${folder}/${entry.name}`)
          .sort();
      } catch (error) {
        if (is(error, "ENOENT")) return [];
        throw error;
      }
    }),
    write: stopping(async (name, data) => {
      const target = path(name);
      await make(dirname(target));
      const temporary = join(dirname(target), `${UNFINISHED}${process.pid}-${unfinished++}`);
      try {
        const handle = await open(temporary, "w", 0o600);
        try {
          await handle.writeFile(data);
          await handle.sync();
        } finally {
          await handle.close();
        }
        await rename(temporary, target);
      } catch (error) {
        await rm(temporary, { force: true }).catch(() => {});
        throw error;
      }
      await syncFolder(dirname(target));
    }),
    move: stopping(async (old, name) => {
      await make(dirname(path(name)));
      try {
        await rename(path(old), path(name));
      } catch (error) {
        if (!is(error, "ENOENT")) throw error;
      }
      await syncFolder(dirname(path(name)));
    }),
    remove: stopping(async (name) => {
      await rm(path(name), { force: true });
      if (await stat(dirname(path(name))).catch(() => null)) await syncFolder(dirname(path(name)));
    }),
    lock: stopping(async (name, wait, action) => {
      await make(root);
      const ends = performance.now() + wait;
      let release = await tryLock(name);
      for (let rest = 1; !release; rest = Math.min(2 * rest, 20)) {
        if (performance.now() >= ends) throw new Stopped("directory-busy");
        await pause(rest);
        release = await tryLock(name);
      }
      try {
        return await action();
      } finally {
        await release();
      }
    }),
    witness: async () => false, // the files themselves are witnesses
    sweep: stopping(async () => {
      for (const folder of ["", "outbox", "sent", "once"]) {
        for (const name of await readdir(path(folder)).catch(() => [])) {
          if (name.startsWith(UNFINISHED)) await rm(path(join(folder, name)), { force: true });
        }
      }
    }),
    onStop: () => {},
    sayStop: () => {},
    close: () => {},
  };
}
