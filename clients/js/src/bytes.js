/** Byte strings: text, hex, numbers, joining; and packed bits, in which bit i is bit i % 8 of byte i >> 3. */

import { checkValue, sentence } from "./errors.js";

const encoder = new TextEncoder();

/**
 * Whether a value is a text that UTF-8 can encode: it has no half of a surrogate pair.
 * @param {unknown} text
 * @returns {text is string}
 */
export const encodable = (text) => typeof text === "string" && !/\p{Surrogate}/u.test(text);

/**
 * The UTF-8 of a text, without normalisation.
 * @param {string} text
 * @returns {Uint8Array}
 */
export function utf8(text) {
  checkValue(encodable(text), sentence`value is not Unicode text: it holds half a surrogate pair`);
  return encoder.encode(text);
}

/**
 * The text that UTF-8 bytes stand for.
 * @param {Uint8Array} [data]
 * @returns {string}
 */
export const textOf = (data) => new TextDecoder().decode(data);

/**
 * @param {Uint8Array} data
 * @returns {string}
 */
export const hex = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * The bytes of a text of hex digits, or null if it is not one.
 * @param {string} text
 * @returns {Uint8Array | null}
 */
export const fromHex = (text) =>
  /^([0-9a-f]{2})*$/i.test(text)
    ? Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16))
    : null;

/**
 * What a table holds under a name of its own: `constructor` is a good name for a collection.
 * @template Value
 * @param {Record<string, Value>} table
 * @param {string} name
 * @returns {Value | undefined}
 */
export const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);

/**
 * A number in four bytes, the highest first.
 * @param {number} value
 * @returns {Uint8Array}
 */
export const be32 = (value) => Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value);

/**
 * @param {...Uint8Array} parts
 * @returns {Uint8Array}
 */
export function join(...parts) {
  const joined = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/**
 * Parts joined, each after BE32(length): two different lists never give the same bytes. Texts are in UTF-8.
 * @param {(Uint8Array | string)[]} parts
 * @returns {Uint8Array}
 */
export const frame = (parts) =>
  join(
    ...parts.flatMap((part) => {
      const data = typeof part === "string" ? utf8(part) : part;
      return [be32(data.length), data];
    }),
  );

/**
 * Whether two byte strings are equal; not in constant time.
 * @param {Uint8Array | null} one
 * @param {Uint8Array | null} other
 */
export const same = (one, other) => String(one) === String(other);

/**
 * The SHA-256 of some bytes.
 * @param {Uint8Array} data
 * @returns {Promise<Uint8Array>}
 */
export const sha256 = async (data) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {BufferSource} */ (data)));
