/** The dialect rappor-v1: a string -> h distinct bits of k, by the hash functions of its cohort. */

import { blake2s } from "./blake2.js";
import { be32, join, utf8 } from "./bytes.js";

/** @typedef {(value: Uint8Array) => number[]} Place a value's h bit numbers, in hash order */
/** @typedef {(cohort: number, params: import("./params.js").Params) => Place} Dialect */

/**
 * The first three words of the BLAKE2s of a label and some bytes.
 * @param {string} label
 * @param {...Uint8Array} parts
 */
function threeWords(label, ...parts) {
  const view = new DataView(blake2s(join(utf8(`rappor-v1 ${label}\0`), ...parts)).buffer);
  return [0, 4, 8].map((at) => view.getUint32(at)); // big-endian
}

/** @type {Dialect} */
export function rapporV1(cohort, { k, h }) {
  const constants = Array.from({ length: h }, (_, index) => threeWords("hash", be32(cohort), be32(index)));
  return (value) => {
    const [a, b, c] = threeWords("value", value);
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
