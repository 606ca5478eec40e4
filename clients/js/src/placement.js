/** The dialect rappor-v1: a string -> h distinct bits of k, by the hash functions of its cohort. */

import { blake2s } from "./blake2.js";
import { be32, join, utf8 } from "./bytes.js";

/** @typedef {(value: Uint8Array) => number[]} Place a value's h bit numbers, in hash order */
/** @typedef {(cohort: number, params: import("./params.js").Params) => Place} Dialect */

/** @param {Uint8Array} message */
function threeWords(message) {
  const digest = blake2s(message);
  const view = new DataView(digest.buffer);
  return [view.getUint32(0), view.getUint32(4), view.getUint32(8)]; // big-endian
}

const VALUE = utf8("rappor-v1 value\0");
const HASH = utf8("rappor-v1 hash\0");

/** @type {Dialect} */
export function rapporV1(cohort, { k, h }) {
  const constants = Array.from({ length: h }, (_, index) =>
    threeWords(join(HASH, be32(cohort), be32(index))),
  );
  return (value) => {
    const [a, b, c] = threeWords(join(VALUE, value));
    /** @type {number[]} */
    const chosen = [];
    constants.forEach(([ka, kb, kc], index) => {
      // All products fit: Math.imul keeps the low 32 bits, and the second one is below 2^44.
      const mixed = (Math.imul(a ^ ka, b ^ kb) + (c ^ kc)) >>> 0;
      let position = Math.floor((mixed * (k - index)) / 2 ** 32);
      for (const taken of [...chosen].sort((one, other) => one - other)) {
        if (position >= taken) position++;
      }
      chosen.push(position);
    });
    return chosen;
  };
}
