/**
 * Randomness: the platform's cryptographic generator, and a stream that a client's secret keys.
 * There is no weaker substitute: if the generator fails, there is no report.
 */

import { blake2b } from "./blake2.js";
import { be32, frame, join, utf8 } from "./bytes.js";
import { RapporError, sentence } from "./errors.js";

/** @typedef {(count: number) => Uint8Array} Entropy gives that many random bytes, new in every call */

/** @type {Entropy} */
export function randomBytes(count) {
  const data = new Uint8Array(count);
  try {
    crypto.getRandomValues(data);
    return data;
  } catch {
    throw new RapporError(
      "entropy",
      sentence`the platform gave no randomness, and there is no safe substitute`,
    );
  }
}

/**
 * The same source, with a check: too few bytes would leave bits without noise.
 * @param {Entropy} entropy
 * @returns {Entropy}
 */
export const checked = (entropy) => (count) => {
  const data = entropy(count);
  if (!(data instanceof Uint8Array) || data.length !== count) {
    throw new RapporError("entropy", sentence`the source of randomness gave the wrong number of bytes`);
  }
  return data;
};

/**
 * The root of everything that is derived from a secret: HMAC-SHA-512("rappor-v1 secret", secret).
 * @param {Uint8Array} secret
 * @returns {Promise<Uint8Array>}
 */
export async function rootOf(secret) {
  const copy = new Uint8Array(secret); // the caller may wipe it at once
  const algorithm = { name: "HMAC", hash: "SHA-512" };
  const label = /** @type {BufferSource} */ (utf8("rappor-v1 secret"));
  const key = await crypto.subtle.importKey("raw", label, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, copy));
}

/**
 * A 64-byte key for one purpose.
 * @param {Uint8Array} root
 * @param {...(Uint8Array | string)} labels
 * @returns {Uint8Array}
 */
export const derive = (root, ...labels) => blake2b(frame(labels), 64, root);

/**
 * The pseudo-random stream of a message under a key: block n is BLAKE2b-512(key, BE32(n) || message).
 * @param {Uint8Array} key
 * @returns {(message: Uint8Array) => Entropy} for each message, a function that reads its stream
 */
export const keyedStream = (key) => (message) => {
  /** @type {Uint8Array} */
  let made = new Uint8Array(0);
  let block = 0;
  return (count) => {
    while (made.length < count) made = join(made, blake2b(join(be32(block++), message), 64, key));
    const taken = made.slice(0, count);
    made = made.slice(count);
    return taken;
  };
};
