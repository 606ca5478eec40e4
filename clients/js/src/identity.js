/**
 * Identity and ledger: the secret, drawn once and kept permanently, and what was charged to it.
 *
 * If the secret is missing after its first use, or damaged, the client stops: a new secret would draw
 * a second B' for every value, at the cost of another ε∞. Call everything while holding the lock.
 */

import { blake2b } from "./blake2.js";
import { fromHex, hex, same, textOf } from "./bytes.js";
import { emptyLedger } from "./charging.js";
import { derive, randomBytes, rootOf } from "./entropy.js";
import { newest } from "./outbox.js";
import { readJson, Stopped, seal, unseal, writeJson } from "./storage.js";

/** @typedef {import("./storage.js").Storage} Storage */
/** @typedef {import("./charging.js").Ledger} Ledger */
/** @typedef {{ root: Uint8Array, check: string }} Identity what is derived from the secret */

export const REPORTS = ["outbox", "sent", "once"]; // the folders that hold reports

/**
 * Whether a report was ever made here: something exists that only reports leave. A mark outside of the
 * storage tells that this was cleared; what forget() leaves tells that it was not, and a worker cannot
 * remove the mark of pages.
 * @param {Storage} storage
 */
export async function wasUsed(storage) {
  if (await storage.read("used")) return true;
  if ((await storage.witness("used")) && !(await storage.read("forgotten"))) return true;
  for (const folder of REPORTS) {
    if ((await storage.names(folder)).length) return true;
  }
  return false;
}

/**
 * @param {Uint8Array} secret
 * @returns {Promise<Identity>}
 */
async function identityOf(secret) {
  const root = await rootOf(secret);
  return { root, check: hex(derive(root, "client check").subarray(0, 16)) };
}

/** @param {string} check */
const usedMark = (check) => seal("used", `${check}\n`);

/**
 * The identity; its secret is drawn and stored on first use.
 * @param {Storage} storage
 * @param {Uint8Array | undefined} accountSecret that no file holds
 * @param {boolean} create whether this can be the first use
 * @returns {Promise<Identity | null>} null: there was no first use yet
 */
export async function loadIdentity(storage, accountSecret, create) {
  let secret = accountSecret ?? null;
  if (!secret) {
    let data = await storage.read("secret");
    if (!data) {
      if ((await wasUsed(storage)) || (await storage.read("ledger"))) throw new Stopped("secret-missing");
      if (!create) return null;
      await storage.write("secret", await seal("secret", `${hex(randomBytes(32))}\n`));
      data = await storage.read("secret");
    }
    const body = await unseal("secret", data);
    secret = body && fromHex(textOf(body).trim());
    if (!secret || secret.length < 16) throw new Stopped("secret-damaged");
  }
  const identity = await identityOf(secret);
  const mark = await storage.read("used");
  if (mark && !same(mark, await usedMark(identity.check))) {
    throw new Stopped((await unseal("used", mark)) ? "secret-changed" : "marker-damaged");
  }
  return identity;
}

/**
 * The ledger, or what forgotten secrets have cost if there is none.
 * @param {Storage} storage
 * @returns {Promise<Ledger>}
 */
export async function findLedger(storage) {
  const load = async (/** @type {string} */ name) => {
    const found = await readJson(storage, name, /** @type {Partial<Ledger> | null} */ (null));
    if (!found && (await storage.read(name))) throw new Stopped("ledger-damaged");
    return found;
  };
  const stored = await load("ledger");
  if (!stored && (await wasUsed(storage))) throw new Stopped("ledger-missing");
  const ledger = { ...emptyLedger(), ...(stored ?? (await load("forgotten"))) };
  // Restored from a backup: later charges are not in it.
  if (ledger.batches < (await newest(storage))) throw new Stopped("ledger-outdated");
  return ledger;
}

/**
 * The ledger of this identity.
 * @param {Storage} storage
 * @param {Identity} identity
 * @returns {Promise<Ledger>}
 */
export async function loadLedger(storage, { check }) {
  const ledger = await findLedger(storage);
  if (ledger.secret && ledger.secret !== check) throw new Stopped("secret-changed");
  return { ...ledger, secret: check };
}

/**
 * Store the ledger, then the mark of first use: both before the report exists.
 * @param {Storage} storage
 * @param {Ledger} ledger
 */
export async function saveLedger(storage, ledger) {
  await writeJson(storage, "ledger", ledger);
  if (!(await storage.read("used"))) await storage.write("used", await usedMark(ledger.secret));
  await storage.witness("used", true);
}

/**
 * The 128-bit fingerprint of a value's memo input: all that the ledger holds of it.
 * @param {Identity} identity
 * @param {import("./collection.js").Collection} collection
 * @param {Uint8Array} memo
 */
export const fingerprint = ({ root }, { name, digest }, memo) =>
  hex(blake2b(memo, 16, derive(root, "client fingerprint", name, digest)));
