/**
 * BLAKE2s and BLAKE2b (RFC 7693), which browsers lack; without salt or personalisation.
 *
 * JavaScript has 32-bit integer operations only: a 64-bit word of BLAKE2b is a pair of them, the lower
 * half first. BLAKE2s runs in the same code: its words are lower halves, and the higher ones are ignored.
 */

import { join } from "./bytes.js";

// The message schedule, a hex digit for each word and a row for each round; rounds 10 and 11 of
// BLAKE2b use the first two rows again.
const SCHEDULE = Uint8Array.from(
  "0123456789abcdefea489fd61c02b753b8c052fdae3671947931dcbe265a40f8905724afe1bc683d" +
    "2c6a0b834d75fe19c51fed4a0763928bdb7ec13950f4862a6fe9b308c2d714a5a2847615fb9e3cd0",
  (digit) => parseInt(digit, 16),
);

// The initial values of BLAKE2b are the fractional parts of the square roots of the first eight primes:
// a BigUint64Array keeps the last 64 bits of a number. Those of BLAKE2s are the higher halves of them.
const INITIAL_WIDE = new Uint32Array(
  BigUint64Array.of(2n, 3n, 5n, 7n, 11n, 13n, 17n, 19n).map((prime) => {
    let root = 0n;
    for (let next = 1n << 70n; next !== root; next = (root + (prime << 128n) / root) >> 1n) root = next;
    return root; // by Newton's method
  }).buffer,
);
const INITIAL = [INITIAL_WIDE.map((_, half) => INITIAL_WIDE[half | 1]), INITIAL_WIDE];

const ROTATIONS = [
  [16, 12, 8, 7],
  [32, 24, 16, 63],
];

const v = new Uint32Array(32); // the working vector, of one compression at a time
const m = new Uint32Array(34); // the message block, and a word that is always 0
const block = new Uint8Array(m.buffer); // the same, as bytes; every platform in use is little-endian
const NOTHING = 32;

/**
 * v[a] += v[b] + m[x]; all arguments are offsets of lower halves.
 * @param {number} a
 * @param {number} b
 * @param {number} x
 */
function add(a, b, x) {
  const low = v[a] + v[b] + m[x];
  v[a + 1] += v[b + 1] + m[x + 1] + Math.floor(low / 2 ** 32);
  v[a] = low;
}

/**
 * v[d] = (v[d] xor v[a]) rotated to the right by n bits. Shifts take their count modulo 32.
 * @param {0 | 1} wide
 * @param {number} d
 * @param {number} a
 * @param {number} n
 */
function rotate(wide, d, a, n) {
  const swapped = n >> 5; // by 32 bits or more: the halves change places
  const low = v[d + swapped] ^ v[a + swapped];
  const high = wide ? v[d + 1 - swapped] ^ v[a + 1 - swapped] : low;
  v[d] = (low >>> n) | ((high << 1) << (31 - n));
  v[d + 1] = (high >>> n) | ((low << 1) << (31 - n));
}

/**
 * Compress the block in `m` into the chain value.
 * @param {0 | 1} wide
 * @param {Uint32Array} h
 * @param {number} count bytes so far, this block included; below 2^32
 * @param {boolean} last
 */
function compress(wide, h, count, last) {
  v.set(h);
  v.set(INITIAL[wide], 16);
  v[24] ^= count; // the higher words of the count stay
  if (last) {
    v[28] = ~v[28];
    v[29] = ~v[29];
  }
  const [r0, r1, r2, r3] = ROTATIONS[wide];
  for (let step = 0; step < (wide ? 96 : 80); step++) {
    const column = step & 3;
    const turn = (step >> 2) & 1; // the second four mix diagonals
    const a = 2 * column;
    const b = 8 + 2 * ((column + turn) & 3);
    const c = 16 + 2 * ((column + 2 * turn) & 3);
    const d = 24 + 2 * ((column + 3 * turn) & 3);
    const at = (2 * step) % 160;
    add(a, b, SCHEDULE[at] << wide);
    rotate(wide, d, a, r0);
    add(c, d, NOTHING);
    rotate(wide, b, c, r1);
    add(a, b, SCHEDULE[at + 1] << wide);
    rotate(wide, d, a, r2);
    add(c, d, NOTHING);
    rotate(wide, b, c, r3);
  }
  for (let half = 0; half < 16; half++) h[half] ^= v[half] ^ v[16 + half];
}

/**
 * @param {0 | 1} wide 1 for BLAKE2b, 0 for BLAKE2s
 * @param {Uint8Array} message
 * @param {number} length of the digest, in bytes
 * @param {Uint8Array} [key]
 * @returns {Uint8Array}
 */
function hash(wide, message, length, key = new Uint8Array(0)) {
  const size = 64 << wide;
  const data = key.length ? join(key, new Uint8Array(size - key.length), message) : message;
  const h = INITIAL[wide].slice();
  h[0] ^= 0x01010000 ^ (key.length << 8) ^ length;
  let at = 0;
  do {
    block.fill(0);
    block.set(data.subarray(at, (at += size)));
    compress(wide, h, Math.min(at, data.length), at >= data.length);
  } while (at < data.length);
  return new Uint8Array((wide ? h : h.filter((_, half) => !(half & 1))).buffer).slice(0, length);
}

/**
 * BLAKE2s of a message.
 * @type {(message: Uint8Array, length?: number, key?: Uint8Array) => Uint8Array}
 */
export const blake2s = (message, length = 32, key) => hash(0, message, length, key);

/**
 * BLAKE2b of a message.
 * @type {(message: Uint8Array, length?: number, key?: Uint8Array) => Uint8Array}
 */
export const blake2b = (message, length = 64, key) => hash(1, message, length, key);
