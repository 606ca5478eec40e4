/** Exact rationals: a probability, an edge or a loss as what its double or its text stands for. */

/** @typedef {{ above: bigint, below: bigint }} Rational in lowest terms, below > 0 */

/**
 * @param {bigint} one
 * @param {bigint} other
 * @returns {bigint}
 */
const divisor = (one, other) => (other ? divisor(other, one % other) : one < 0n ? -one : one);

/**
 * A finite double, a bigint, or a text such as "-1/1000", as an exact rational; null for the rest.
 * @param {unknown} number
 * @returns {Rational | null}
 */
export function exact(number) {
  let above = 0n;
  let below = 1n;
  if (typeof number === "bigint") above = number;
  else if (typeof number === "number" && Number.isFinite(number)) {
    let rest = number;
    for (; !Number.isInteger(rest); below *= 2n) rest *= 2; // exact: only the exponent changes
    above = BigInt(rest);
  } else {
    const found = typeof number === "string" && /^(-?\d{1,400})(?:\/(\d{1,400}))?$/.exec(number);
    if (!found) return null;
    above = BigInt(found[1]);
    below = BigInt(found[2] ?? 1);
    if (!below) return null;
  }
  const common = divisor(above, below);
  return { above: above / common, below: below / common };
}

/**
 * @param {Rational} one
 * @param {Rational} other
 */
export const isBelow = (one, other) => one.above * other.below < other.above * one.below;

/**
 * A finite double as a fraction in lowest terms, in decimal: .75 is "3/4".
 * @param {number} number
 * @returns {string}
 */
export function fractionText(number) {
  const { above, below } = /** @type {Rational} */ (exact(number));
  return `${above}/${below}`;
}
