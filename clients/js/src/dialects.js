/**
 * The dialects of other clients: `google`, `google-java` (MD5) and `chromium` (CityHash 1.0.3). They
 * are separate from the encoder, because most applications need none of them:
 *
 *     import { dialects } from "rappor/dialects";
 *     await Client.open({ dialects, … });
 *
 * Neither hash is cryptographic any more; a dialect is public and hides nothing.
 */

import { be32, join } from "./bytes.js";
import { checkArgument, sentence } from "./errors.js";

const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const SINES = Uint32Array.from({ length: 64 }, (_, step) => Math.abs(Math.sin(step + 1)) * 2 ** 32);

/**
 * MD5 (RFC 1321).
 * @param {Uint8Array} message
 * @returns {Uint8Array}
 */
function md5(message) {
  const padded = new Uint8Array(((message.length + 72) >> 6) << 6);
  padded.set(message);
  padded[message.length] = 128;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, message.length << 3, true);
  view.setUint32(padded.length - 4, message.length >>> 29, true);
  const state = Uint32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let at = 0; at < padded.length; at += 64) {
    let [a, b, c, d] = state;
    for (let step = 0; step < 64; step++) {
      const round = step >> 4;
      const mixed = [(b & c) | (~b & d), (b & d) | (c & ~d), b ^ c ^ d, c ^ (b | ~d)][round];
      const word = [step, 5 * step + 1, 3 * step + 5, 7 * step][round] & 15;
      const sum = (a + mixed + SINES[step] + view.getUint32(at + 4 * word, true)) | 0;
      const shift = SHIFTS[4 * round + (step & 3)];
      [a, b, c, d] = [d, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0, b, c];
    }
    [a, b, c, d].forEach((word, place) => {
      state[place] += word;
    });
  }
  return new Uint8Array(state.buffer); // every platform with typed arrays in use is little-endian
}

/**
 * @param {(digest: Uint8Array, index: number, k: number) => number} word
 * @param {(k: number) => boolean} twoBytes whether each hash function takes two of the 16 bytes
 * @param {string} name
 * @returns {import("./placement.js").Dialect}
 */
const fromMd5 =
  (word, twoBytes, name) =>
  (cohort, { k, h }) => {
    checkArgument(
      !twoBytes(k) || h <= 8,
      sentence`h must be at most 8 in dialect '${name}' with k = ${k}, got h = ${h}: it takes two of MD5's 16 bytes for each hash`,
    );
    return (value) => {
      const digest = md5(join(be32(cohort), value));
      return Array.from({ length: h }, (_, index) => word(digest, index, k) % k);
    };
  };

const K0 = 0xc3a5c85c97cb3127n;
const K1 = 0xb492b66fbe98f273n;
const K2 = 0x9ae16a3b2f90404fn;
const K3 = 0xc949d7c7509e6557n;
const MULTIPLIER = 0x9ddfea08eb382d69n;

/** @param {bigint} value */
const low64 = (value) => BigInt.asUintN(64, value);

/** @param {bigint} value */
const shiftMix = (value) => low64(value) ^ (low64(value) >> 47n);

/** @param {bigint} value @param {bigint} shift */
const rotate = (value, shift) => low64((low64(value) >> shift) | (low64(value) << (64n - shift)));

/** @param {bigint} low @param {bigint} high */
function combine(low, high) {
  const a = shiftMix((low64(low) ^ low64(high)) * MULTIPLIER);
  return low64(shiftMix((low64(high) ^ a) * MULTIPLIER) * MULTIPLIER);
}

/**
 * CityHash64WithSeed of release 1.0.3.
 * @param {Uint8Array} data
 * @param {bigint} seed
 * @returns {bigint}
 */
export function cityHash64WithSeed(data, seed) {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  /** @param {number} at */
  const word = (at) => view.getBigUint64(at, true);
  return combine(low64(cityHash64(data, word, view) - K2), seed);
}

/**
 * @param {Uint8Array} data
 * @param {(at: number) => bigint} word eight bytes, the lowest first
 * @param {DataView} view
 * @returns {bigint}
 */
function cityHash64(data, word, view) {
  const size = data.length;
  const length = BigInt(size);
  if (size > 64) return longHash(size, word);
  if (size > 32) {
    const [t0, t1, t2, t3] = [32, 24, 16, 8].map((back) => word(size - back));
    const [headSum, headMix] = fold(word(0) + (length + t2) * K0, word(8), word(16), word(24));
    const [tailSum, tailMix] = fold(word(16) + t0, t1, t2, t3);
    const mixed = shiftMix((headSum + tailMix) * K2 + (tailSum + headMix) * K0);
    return low64(shiftMix(mixed * K0 + headMix) * K2);
  }
  if (size > 16) {
    const a = word(0) * K1;
    const b = word(8);
    const c = word(size - 8) * K2;
    const d = word(size - 16) * K0;
    return combine(rotate(a - b, 43n) + rotate(c, 30n) + d, a + rotate(b ^ K3, 20n) - c + length);
  }
  if (size > 8) {
    const last = word(size - 8);
    return combine(word(0), rotate(last + length, length)) ^ last;
  }
  if (size > 3) {
    const first = BigInt(view.getUint32(0, true));
    return combine(length + (first << 3n), BigInt(view.getUint32(size - 4, true)));
  }
  if (!size) return K2;
  const y = BigInt(data[0] + (data[size >> 1] << 8));
  const z = BigInt(size + (data[size - 1] << 2));
  return low64(shiftMix(low64(y * K2) ^ low64(z * K3)) * K2);
}

/**
 * @param {number} size
 * @param {(at: number) => bigint} word
 * @returns {bigint}
 */
function longHash(size, word) {
  /** @param {number} at @param {bigint} a @param {bigint} b @returns {[bigint, bigint]} */
  const weak = (at, a, b) => {
    const first = a + word(at);
    const total = first + word(at + 8) + word(at + 16);
    const mixed = rotate(b + first + word(at + 24), 21n) + rotate(total, 44n) + first;
    return [low64(total + word(at + 24)), low64(mixed)];
  };
  let x = word(size - 40);
  let y = word(size - 16) + word(size - 56);
  let z = combine(word(size - 48) + BigInt(size), word(size - 24));
  let [v0, v1] = weak(size - 64, BigInt(size), z);
  let [w0, w1] = weak(size - 32, y + K1, x);
  x = x * K1 + word(0);
  // A last block of exactly 64 bytes is already in the state.
  for (let at = 0; at < size - 64; at += 64) {
    x = low64(rotate(x + y + v0 + word(at + 8), 37n) * K1) ^ w1;
    y = rotate(y + v1 + word(at + 48), 42n) * K1 + v0 + word(at + 40);
    z = rotate(z + w0, 33n) * K1;
    [v0, v1] = weak(at, v1 * K1, x + w0);
    [w0, w1] = weak(at + 32, z + w1, y + word(at + 16));
    [x, z] = [low64(z), x];
    y = low64(y);
  }
  return combine(combine(v0, w0) + shiftMix(y) * K1 + z, combine(v1, w1) + x);
}

/**
 * @param {bigint} a
 * @param {bigint} second
 * @param {bigint} third
 * @param {bigint} z
 * @returns {[bigint, bigint]}
 */
function fold(a, second, third, z) {
  const mixed = rotate(a + z, 52n) + rotate(a, 37n) + rotate(a + second, 7n);
  const total = a + second + third;
  return [low64(total + z), low64(mixed + rotate(total, 31n))];
}

/** @type {import("./signal.js").Dialects} */
export const dialects = {
  google: fromMd5(
    (digest, index, k) => (k > 256 ? digest[2 * index] | (digest[2 * index + 1] << 8) : digest[index]),
    (k) => k > 256,
    "google",
  ),
  "google-java": fromMd5(
    (digest, index) => (digest[2 * index] << 8) | digest[2 * index + 1],
    () => true,
    "google-java",
  ),
  chromium: (cohort, { k, h, m }) => {
    const first = (cohort % m) * h;
    return (value) =>
      Array.from({ length: h }, (_, index) => {
        const hash = cityHash64WithSeed(value, BigInt(first + index));
        return Number(hash & 0xffffffffn) % k;
      });
  },
};
