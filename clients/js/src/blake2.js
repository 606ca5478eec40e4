/**
 * BLAKE2s and BLAKE2b (RFC 7693), which browsers lack; without salt or personalisation.
 *
 * JavaScript has 32-bit integer operations only: a 64-bit word of BLAKE2b is a pair of them, the
 * lower half first. The initial values of BLAKE2s are the higher halves of those of BLAKE2b.
 */

// The message schedule, a hex digit for each word and a row for each round; rounds 10 and 11 of
// BLAKE2b use the first two rows again.
const SCHEDULE = Uint8Array.from(
  "0123456789abcdefea489fd61c02b753b8c052fdae3671947931dcbe265a40f8905724afe1bc683d" +
    "2c6a0b834d75fe19c51fed4a0763928bdb7ec13950f4862a6fe9b308c2d714a5a2847615fb9e3cd0" +
    "0123456789abcdefea489fd61c02b753",
  (digit) => parseInt(digit, 16),
);

// Lower half, higher half, of each 64-bit word.
const INITIAL = Uint32Array.of(
  ...[0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a],
  ...[0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19],
);

const INITIAL_SHORT = INITIAL.filter((_, word) => word & 1);

const v = new Uint32Array(32); // the working vector, of one compression at a time
const m = new Uint32Array(32); // the message block
const block = new Uint8Array(m.buffer); // the same, as bytes

/**
 * Read a block of little-endian words, padded with zeros. Every platform that runs JavaScript today is
 * little-endian, as the vectors show wherever they run.
 * @param {Uint8Array} data
 * @param {number} at
 * @param {number} size
 */
function load(data, at, size) {
  block.fill(0);
  block.set(data.subarray(at, at + size));
}

/**
 * The mixing function of BLAKE2s.
 * @param {number} a
 * @param {number} b
 * @param {number} c
 * @param {number} d
 * @param {number} x
 * @param {number} y
 */
function mix32(a, b, c, d, x, y) {
  let t;
  v[a] += v[b] + x;
  t = v[d] ^ v[a];
  v[d] = (t << 16) | (t >>> 16);
  v[c] += v[d];
  t = v[b] ^ v[c];
  v[b] = (t << 20) | (t >>> 12);
  v[a] += v[b] + y;
  t = v[d] ^ v[a];
  v[d] = (t << 24) | (t >>> 8);
  v[c] += v[d];
  t = v[b] ^ v[c];
  v[b] = (t << 25) | (t >>> 7);
}

/**
 * v[a] += v[b] + m[x], 64 bits each.
 * @param {number} a
 * @param {number} b
 * @param {number} x
 */
function add3(a, b, x) {
  const low = v[a] + v[b] + m[x];
  v[a + 1] += v[b + 1] + m[x + 1] + Math.floor(low / 2 ** 32);
  v[a] = low;
}

/**
 * v[c] += v[d], 64 bits each.
 * @param {number} c
 * @param {number} d
 */
function add(c, d) {
  const low = v[c] + v[d];
  v[c + 1] += v[d + 1] + (low > 0xffffffff ? 1 : 0);
  v[c] = low;
}

/**
 * v[d] = (v[d] xor v[a]) rotated to the right by n bits, n below 32, or by 32 + n if `halves`.
 * @param {number} d
 * @param {number} a
 * @param {number} n
 * @param {0 | 1} halves
 */
function rotate(d, a, n, halves) {
  const low = v[d + halves] ^ v[a + halves];
  const high = v[d + 1 - halves] ^ v[a + 1 - halves];
  v[d] = n ? (low >>> n) | (high << (32 - n)) : low;
  v[d + 1] = n ? (high >>> n) | (low << (32 - n)) : high;
}

/**
 * The mixing function of BLAKE2b; all arguments are offsets.
 * @param {number} a
 * @param {number} b
 * @param {number} c
 * @param {number} d
 * @param {number} x
 * @param {number} y
 */
function mix64(a, b, c, d, x, y) {
  add3(a, b, x);
  rotate(d, a, 0, 1);
  add(c, d);
  rotate(b, c, 24, 0);
  add3(a, b, y);
  rotate(d, a, 16, 0);
  add(c, d);
  rotate(b, c, 31, 1);
}

/**
 * Compress the block in `m` into the chain value.
 * @param {Uint32Array} h
 * @param {number} count bytes so far, this block included; below 2^32
 * @param {boolean} last
 */
function compress(h, count, last) {
  const wide = h.length >> 4; // 1: BLAKE2b
  const words = h.length;
  const initial = wide ? INITIAL : INITIAL_SHORT;
  for (let word = 0; word < words; word++) {
    v[word] = h[word];
    v[words + word] = initial[word];
  }
  const at = 12 << wide; // a message is shorter than 2^32 bytes: the higher words stay
  v[at] ^= count;
  if (last) {
    const end = 14 << wide;
    v[end] = ~v[end];
    if (wide) v[end + 1] = ~v[end + 1];
  }
  const rounds = wide ? 12 : 10;
  for (let round = 0; round < rounds; round++) {
    for (let step = 0; step < 8; step++) {
      const column = step & 3;
      const turn = step >> 2; // the second four mix diagonals
      const x = SCHEDULE[16 * round + 2 * step];
      const y = SCHEDULE[16 * round + 2 * step + 1];
      const b = 4 + ((column + turn) & 3);
      const c = 8 + ((column + 2 * turn) & 3);
      const d = 12 + ((column + 3 * turn) & 3);
      if (wide) mix64(2 * column, 2 * b, 2 * c, 2 * d, 2 * x, 2 * y);
      else mix32(column, b, c, d, m[x], m[y]);
    }
  }
  for (let word = 0; word < words; word++) h[word] ^= v[word] ^ v[words + word];
}

/**
 * A hash function under one key. The block of the key is compressed once for all messages.
 * @param {0 | 1} wide 1 for BLAKE2b, 0 for BLAKE2s
 * @param {number} length of the digest, in bytes
 * @param {Uint8Array} key empty: no key
 * @returns {(message: Uint8Array) => Uint8Array}
 */
function keyed(wide, length, key) {
  const size = 64 << wide;
  const start = (wide ? INITIAL : INITIAL_SHORT).slice();
  start[0] ^= 0x01010000 ^ (key.length << 8) ^ length;
  const before = start.slice();
  if (key.length) {
    load(key, 0, size);
    compress(start, size, false);
  }
  return (message) => {
    const alone = key.length && !message.length; // then the block of the key is the last one
    const h = (alone ? before : start).slice();
    const already = key.length && !alone ? size : 0;
    const data = alone ? key : message;
    const total = alone ? size : message.length;
    let at = 0;
    do {
      load(data, at, size);
      at += size;
      compress(h, already + Math.min(at, total), at >= total);
    } while (at < total);
    return new Uint8Array(h.buffer).slice(0, length);
  };
}

const NO_KEY = new Uint8Array(0);

/**
 * BLAKE2s of a message.
 * @type {(message: Uint8Array, length?: number, key?: Uint8Array) => Uint8Array}
 */
export const blake2s = (message, length = 32, key = NO_KEY) => keyed(0, length, key)(message);

/**
 * BLAKE2b of a message.
 * @type {(message: Uint8Array, length?: number, key?: Uint8Array) => Uint8Array}
 */
export const blake2b = (message, length = 64, key = NO_KEY) => keyed(1, length, key)(message);

/**
 * BLAKE2b under one key, for many messages.
 * @type {(key: Uint8Array, length?: number) => (message: Uint8Array) => Uint8Array}
 */
export const keyedBlake2b = (key, length = 64) => keyed(1, length, key);
