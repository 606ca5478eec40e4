/**
 * Consent in the storage: the mark of opting out, and the outbox cleared permanently.
 *
 * Clearing is requested before it is done. While the mark of the request exists, nothing is sent, and
 * whoever holds the lock next finishes what a crash left undone. Each clearing starts a new epoch:
 * calls to report() from an earlier epoch are discarded.
 *
 * A batch is sent in this order: take the sending lock; check under the main lock that the batch still
 * waits; send it; release the sending lock. Opting out clears the outbox under the main lock and then
 * takes the sending lock once. By then nothing that was checked before is still on its way.
 */

import { textOf, utf8 } from "./bytes.js";

/** @typedef {import("./storage.js").Storage} Storage */

export const LOCK = "lock";
export const UPLOAD_LOCK = "upload.lock"; // one tab or process uploads at a time
export const SENDING_LOCK = "sending.lock"; // from the last check of a batch until its answer
export const PATIENCE = 1000; // ms that opting out and forgetting wait for a lock

/** @param {Storage} storage @param {string} name */
export const mark = (storage, name) => storage.write(name, new Uint8Array(0));

/** @param {Storage} storage @param {string} name */
export const marked = async (storage, name) => (await storage.read(name)) !== null;

/**
 * Whether the person opted out. If the storage had no room for the mark, it is outside of it.
 * @param {Storage} storage
 */
export const optedOut = async (storage) =>
  (await marked(storage, "opted-out")) || storage.witness("opted-out");

/** @param {Storage} storage @returns {Promise<number>} how many times the outbox was cleared */
export const epochOf = async (storage) =>
  parseInt(textOf((await storage.read("epoch")) ?? undefined), 10) || 0;

/**
 * Clear the outbox if that was requested. Call it while holding the lock.
 * @param {Storage} storage
 * @param {import("./outbox.js").Outbox} outbox
 */
export async function finishClearing(storage, outbox) {
  if (!(await marked(storage, "clearing"))) return;
  await outbox.clear();
  const slots = await storage.names("once"); // one-time reports that are not in the outbox yet
  for (const name of slots) {
    if (!name.endsWith(".queued") && !slots.includes(`${name}.queued`)) await mark(storage, `${name}.queued`);
  }
  await storage.write("epoch", utf8(`${(await epochOf(storage)) + 1}\n`));
  await storage.remove("clearing");
}

/**
 * Request that nothing waiting now is ever sent, and note that the time until the next tick is never
 * reported on; durable when the promise resolves.
 * @param {Storage} storage
 */
export async function requestClearing(storage) {
  await mark(storage, "clearing");
  await mark(storage, "paused");
}

/**
 * Request clearing and do it. If false, nothing is sent until a later call has done it. Without room for
 * the request, what waits is deleted all the same.
 * @param {Storage} storage
 * @param {import("./outbox.js").Outbox} outbox
 * @returns {Promise<boolean>}
 */
export async function clearOutbox(storage, outbox) {
  const requested = await requestClearing(storage).then(
    () => true,
    () => false,
  );
  try {
    await storage.lock(LOCK, PATIENCE, async () => {
      if (requested) return finishClearing(storage, outbox);
      for (const name of await outbox.names()) await storage.remove(name);
    });
    return true;
  } catch {
    return false;
  }
}
