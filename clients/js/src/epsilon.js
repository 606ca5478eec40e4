/**
 * ε of any history of reports on one unchanged value (docs/theory/epsilon-n.md), rounded up.
 *
 * For reports with probabilities (p_t, q_t), let t1 = Π p_t/q_t, t0 = Π (1-q_t)/(1-p_t), a = f/2 and
 * g(t) = ln[((1-a) + a t) / (a + (1-a) t)]; then ε = max over the kind's (u, d) of u g(t1) + d g(t0).
 *
 * Doubles would round in both directions. Logarithms are whole numbers here, in units of 2^-P; the
 * result is the smallest double that is not below the true value plus 1e-60, as in Python.
 */

import { exact } from "./rational.js";

/** @typedef {import("./rational.js").Rational} Rational */
/** @typedef {{ p: number, q: number, charged: number }} Step reports with the same p and q */

const P = 400n; // binary places
const ONE = 1n << P;
const INFINITE = 1n << 9999n; // far above any logarithm of doubles
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
  const near = shift > 0n ? nearLn(above, below << shift) : nearLn(above << -shift, below);
  return near + shift * LN2;
}

/**
 * ln(above / below) of a ratio from 1/2 to 2: 2 artanh((above - below) / (above + below)).
 * @param {bigint} above
 * @param {bigint} below
 * @returns {bigint}
 */
function nearLn(above, below) {
  const y = ((above - below) * ONE) / (above + below);
  const square = (y * y) >> P;
  let sum = 0n;
  for (let power = y, odd = 1n; power; power = (power * square) >> P, odd += 2n) {
    sum += power / odd;
    if (power === -1n) break; // -1 >> P stays -1
  }
  return 2n * sum;
}

const LN2 = nearLn(2n, 1n);

/**
 * g(t) from -ln t.
 * @param {bigint} flipped a, as a numerator over a common denominator
 * @param {bigint} kept 1 - a
 * @param {bigint} minusLnT
 * @returns {bigint}
 */
function gain(flipped, kept, minusLnT) {
  if (!flipped) return minusLnT;
  const halvings = minusLnT / LN2;
  if (halvings > 9000n) return ln(kept, flipped); // a is at least 2^-1075
  const rest = minusLnT - halvings * LN2;
  let t = 0n; // exp(-rest)
  for (let term = ONE, n = 1n; term; term = (-term * rest) / (n++ * ONE)) t += term;
  const one = ONE << halvings;
  return ln(kept * one + flipped * t, flipped * one + kept * t);
}

/**
 * The smallest double that is not below above / 2^places.
 * @param {bigint} above
 * @param {number} places
 * @returns {number}
 */
function roundUp(above, places) {
  const surplus = bits(above) - 53n; // a double holds 53 bits
  const shift = surplus > 0n ? surplus : 0n;
  return Number(-(-above >> shift)) * 2 ** (Number(shift) - places); // >> rounds down, below 0 too
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
  const key = `${[k, h, f, kind, steps.map(({ p, q, charged }) => [p, q, charged])]}`;
  const cached = known.get(key);
  if (cached !== undefined) return cached;
  let ones = 0n; // -ln t1
  let zeros = 0n; // -ln t0
  for (const { p, q, charged } of steps) {
    const [low, high] = /** @type {Rational[]} */ ([p, q].map(exact));
    const [a, b] = [low.above * high.below, high.above * low.below]; // over one denominator
    const all = low.below * high.below;
    ones += BigInt(charged) * (a ? ln(b, a) : INFINITE);
    zeros += BigInt(charged) * (b < all ? ln(all - a, all - b) : INFINITE);
  }
  const { above, below } = /** @type {Rational} */ (exact(f));
  const [one, zero] = [ones, zeros].map((minusLnT) => gain(above, 2n * below - above, minusLnT));
  const single = kind === "boolean" || kind === "bits";
  const times = BigInt(kind === "string" || kind === "tuple" ? h : kind === "bits" ? k : 1);
  const worst = times * (single ? (one > zero ? one : zero) : one + zero);
  const slack = 10n ** 60n;
  const epsilon =
    worst >= INFINITE ? Infinity : worst ? roundUp(worst + worst / slack + ONE / slack, Number(P)) : 0;
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
