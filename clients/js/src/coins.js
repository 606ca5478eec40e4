/**
 * Exact coins, k at a time: bit i of the outcome is 1 with exactly the stated probability.
 *
 * A uniform number U in [0, 1) is drawn for every bit, binary digit by binary digit: one word of
 * ceil(k/8) bytes holds one digit of every U, inverted (a 1 in the word is the digit 0 of U). U is
 * compared with the binary digits of the probability, so that no number is ever rounded.
 */

/**
 * The binary digits after the point of a double in [0, 1). Doubling it and subtracting 1 are exact.
 * @param {number} probability
 * @returns {boolean[]}
 */
export function binaryDigits(probability) {
  const digits = [];
  for (let rest = probability; rest > 0; rest %= 1) {
    rest *= 2;
    digits.push(rest >= 1);
  }
  return digits;
}

/**
 * The bits whose U is below each threshold; all thresholds are compared with the same U.
 *
 * The number of words that are read does not depend on anything secret, except in fewer than 1 of
 * 1,024 draws: each word leaves a bit undecided with probability 1/2, and reading only stops early
 * after 10 + log2(k) words.
 *
 * @param {boolean[][]} thresholds binary digits of each; those that it lacks are 0
 * @param {number} k
 * @param {(count: number) => Uint8Array} read gives the next random bytes
 * @returns {Uint8Array[]} packed bits for each threshold
 */
export function below(thresholds, k, read) {
  const size = (k + 7) >> 3;
  const lanes = thresholds.map((digits) => ({ digits, found: new Uint8Array(size), open: allBits(k) }));
  const all = Math.max(...thresholds.map((digits) => digits.length));
  const always = Math.min(all, 10 + (32 - Math.clz32(k)));
  let words = read(always * size);
  for (let place = 0, at = 0; place < all; place++, at += size) {
    if (place >= always) {
      if (lanes.every(({ open }) => open.every((byte) => !byte))) break;
      words = read(size);
      at = 0;
    }
    for (const { digits, found, open } of lanes) {
      for (let byte = 0; byte < size; byte++) {
        const hit = open[byte] & words[at + byte]; // U is below here if the digit is 1, else still open
        if (digits[place]) found[byte] |= hit;
        open[byte] = digits[place] ? open[byte] ^ hit : hit;
      }
    }
  }
  return lanes.map(({ found }) => found);
}

/**
 * K bits, all 1, packed.
 * @param {number} k
 * @returns {Uint8Array}
 */
export function allBits(k) {
  const bits = new Uint8Array((k + 7) >> 3).fill(255);
  if (k & 7) bits[k >> 3] = (1 << (k & 7)) - 1;
  return bits;
}
