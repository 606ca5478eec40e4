/**
 * ε of any history of reports on one unchanged value (docs/theory/epsilon-n.md), rounded up.
 *
 * For reports with probabilities (p_t, q_t), let t1 = Π p_t/q_t, t0 = Π (1-q_t)/(1-p_t), a = f/2 and
 * g(t) = ln[((1-a) + a t) / (a + (1-a) t)]; then ε = max over the kind's (u, d) of u g(t1) + d g(t0).
 *
 * Doubles would round in both directions. Logarithms are whole numbers here, in units of 2^-P; the
 * result is the smallest double that is not below the true value plus 1e-60, as in Python.
 */

import { binaryDigits } from "./coins.js";
import { exact } from "./signal.js";

/** @typedef {{ p: number, q: number, charged: number }} Step reports with the same p and q */

const P = 400n; // binary places
const ONE = 1n << P;
const SCALE = 1n << 1074n; // every double is a whole number of 2^-1074

/** @param {bigint} value */
const bits = (value) => BigInt(value.toString(2).length);

/**
 * ln(above / below), of positive whole numbers.
 * @param {bigint} above
 * @param {bigint} below
 * @returns {bigint}
 */
function ln(above, below) {
  const shift = bits(above) - bits(below);
  const [top, bottom] = shift > 0n ? [above, below << shift] : [above << -shift, below];
  // 2 artanh((r - 1) / (r + 1)) of r in (1/2, 2)
  const y = ((top - bottom) * ONE) / (top + bottom);
  const square = (y * y) >> P;
  let sum = 0n;
  for (let power = y, odd = 1n; power; power = (power * square) >> P, odd += 2n) {
    sum += power / odd;
    if (power === -1n) break; // -1 >> P stays -1
  }
  return 2n * sum + (shift ? shift * LN2 : 0n);
}

/** @type {bigint} */
const LN2 = (() => {
  let sum = 0n;
  for (let power = ONE / 3n, odd = 1n; power; power /= 9n, odd += 2n) sum += power / odd;
  return 2n * sum;
})();

/**
 * g(t) from -ln t; null stands for t = 0.
 * @param {bigint} flipped a, as a numerator over a common denominator
 * @param {bigint} kept 1 - a
 * @param {bigint | null} minusLnT
 * @returns {bigint | null} null: ∞
 */
function gain(flipped, kept, minusLnT) {
  if (!flipped) return minusLnT;
  const halvings = minusLnT === null ? 0n : minusLnT / LN2;
  if (minusLnT === null || halvings > 9000n) return ln(kept, flipped); // a is at least 2^-1075
  const rest = minusLnT - halvings * LN2;
  let t = 0n; // exp(-rest)
  for (let term = ONE, n = 1n; term; term = (-term * rest) / (n++ * ONE)) t += term;
  const one = ONE << halvings;
  return ln(kept * one + flipped * t, flipped * one + kept * t);
}

/**
 * -n ln(small / large) of two numerators; null: ∞.
 * @param {bigint} small
 * @param {bigint} large
 * @param {number} n
 */
const minusLn = (small, large, n) => (small ? BigInt(n) * ln(large, small) : null);

/**
 * The smallest double that is not below above / 2^places.
 * @param {bigint} above
 * @param {number} places
 * @returns {number}
 */
function roundUp(above, places) {
  const shift = bits(above) - 53n;
  if (shift <= 0n) return Number(above) * 2 ** -places;
  let top = above >> shift;
  if (top << shift !== above) top++;
  const exponent = Number(shift) - places;
  return exponent < -1000 ? Number(top) * 2 ** (exponent + 500) * 2 ** -500 : Number(top) * 2 ** exponent;
}

/** @type {Map<string, number>} */
const known = new Map();

/**
 * ε of one value after these reports.
 * @param {import("./params.js").Params} params gives f, k and h
 * @param {string} kind
 * @param {readonly Step[]} steps
 * @returns {number}
 */
export function epsilonOf({ k, h, f }, kind, steps) {
  const key = JSON.stringify([k, h, f, kind, steps.map(({ p, q, charged }) => [p, q, charged])]);
  const cached = known.get(key);
  if (cached !== undefined) return cached;
  const places = (/** @type {number} */ number) => binaryDigits(number).length;
  /** @type {bigint | null} */
  let ones = 0n;
  /** @type {bigint | null} */
  let zeros = 0n;
  for (const { p, q, charged } of steps) {
    if (!charged || p === q) continue;
    const scale = 2n ** BigInt(Math.max(places(p % 1), places(q % 1)));
    const numerator = (/** @type {number} */ number) => {
      const { above, below } = /** @type {import("./signal.js").Edge} */ (exact(number));
      return (above * scale) / below;
    };
    const [low, high] = [numerator(p), numerator(q)];
    const one = minusLn(low, high, charged);
    const zero = minusLn(scale - high, scale - low, charged);
    ones = ones === null || one === null ? null : ones + one;
    zeros = zeros === null || zero === null ? null : zeros + zero;
  }
  const { above, below } = /** @type {import("./signal.js").Edge} */ (exact(f));
  const fromOnes = gain(above, 2n * below - above, ones);
  const fromZeros = gain(above, 2n * below - above, zeros);
  let epsilon = Infinity;
  if (fromOnes !== null && fromZeros !== null) {
    const single = kind === "boolean" || kind === "bits";
    const times = BigInt(kind === "string" || kind === "tuple" ? h : kind === "bits" ? k : 1);
    const worst = times * (single ? (fromOnes > fromZeros ? fromOnes : fromZeros) : fromOnes + fromZeros);
    const slack = 10n ** 60n;
    epsilon = worst ? roundUp(worst + worst / slack + ONE / slack, Number(P)) : 0;
  }
  known.set(key, epsilon);
  return epsilon;
}

/**
 * The sum of (ε, times) pairs, never below the true sum.
 * @param {Iterable<readonly [number, number]>} losses
 * @returns {number}
 */
export function addUp(losses) {
  let sum = 0n;
  for (const [loss, times] of losses) {
    if (!times) continue;
    const point = exact(loss);
    if (!point) return Infinity;
    sum += BigInt(times) * ((point.above * SCALE) / point.below);
  }
  return roundUp(sum, 1074);
}
