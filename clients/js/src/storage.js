/**
 * What a client needs from its storage, and the seal that tells a damaged file from a sound one.
 *
 * Names and formats are those of the Python client: `rappor client inspect` reads a folder of Node.js.
 */

import { hex, join, same, sha256, textOf, utf8 } from "./bytes.js";
import { RapporError } from "./errors.js";
import { explain } from "./messages.js";

/**
 * Every write is durable and atomic when its promise resolves; what fails rejects with Stopped. Names have
 * / between their parts.
 * @typedef {object} Storage
 * @property {(name: string) => Promise<Uint8Array | null>} read null: there is no such file
 * @property {(folder: string) => Promise<string[]>} names the files of a folder, sorted
 * @property {(name: string, data: Uint8Array) => Promise<unknown>} write
 * @property {(old: string, name: string) => Promise<unknown>} move nothing happens if it is gone
 * @property {(name: string) => Promise<unknown>} remove
 * @property {<Result>(name: string, wait: number, action: () => Promise<Result>) => Promise<Result>} lock
 *   run an action while no other tab, worker or process holds this lock; Stopped("directory-busy") after `wait` ms
 * @property {(mark: "used" | "opted-out", set?: boolean) => Promise<boolean>} witness whether there is a
 *   mark outside of the storage proper, if the platform has such a place; first set or remove it
 * @property {() => Promise<unknown>} sweep remove files that crashes left unfinished
 * @property {(stop: () => void) => void} onStop call `stop` when another tab or worker says so
 * @property {() => void} sayStop tell the other tabs and workers to stop sending
 * @property {() => void} close end connections; another call opens them again
 */

/** @typedef {import("./messages.js").Problem} Problem */

/** Nothing can be reported; the problem says why. */
export class Stopped extends RapporError {
  /** @param {Problem} problem */
  constructor(problem) {
    super("stopped", explain(problem));
    this.problem = problem;
  }
}

/**
 * What an error of any kind means for a client; a storage says itself what is wrong with it.
 * @param {any} error
 * @returns {Problem}
 */
export const problemOf = (error) => error?.problem ?? (error?.code === "entropy" ? "no-entropy" : "internal");

/**
 * The body under a line that names its kind and its SHA-256.
 * @param {string} kind
 * @param {Uint8Array | string} content
 * @returns {Promise<Uint8Array>}
 */
export async function seal(kind, content) {
  const body = typeof content === "string" ? utf8(content) : content;
  const checksum = hex(await sha256(join(utf8(`rappor ${kind} `), body)));
  return join(utf8(`rappor-${kind}-v1 ${checksum}\n`), body);
}

/**
 * The body, or null if a single bit is wrong, missing or too many.
 * @param {string} kind
 * @param {Uint8Array | null} data
 * @returns {Promise<Uint8Array | null>}
 */
export async function unseal(kind, data) {
  const body = data?.slice(data.indexOf(10) + 1);
  return body && same(data, await seal(kind, body)) ? body : null;
}

/**
 * A sealed JSON document; `fallback` if there is none, or if it is damaged.
 * @template Document
 * @param {Storage} storage
 * @param {string} name
 * @param {Document} fallback
 * @returns {Promise<Document>}
 */
export async function readJson(storage, name, fallback) {
  const body = await unseal(name, await storage.read(name));
  return body ? JSON.parse(textOf(body)) : fallback;
}

/**
 * @param {Storage} storage
 * @param {string} name
 * @param {unknown} document
 */
export const writeJson = async (storage, name, document) =>
  storage.write(
    name,
    await seal(
      name,
      JSON.stringify(document, (_, value) => (value === Infinity ? "inf" : value)),
    ),
  );
