/**
 * Encoder: value -> report, the whole client-side algorithm of the paper (§2), and nothing else. It
 * has a secret, but no storage and no network. The caller keeps the secret and counts what is spent.
 */

import { encodable, hex } from "./bytes.js";
import { allBits, below, binaryDigits } from "./coins.js";
import { checked, keyedStream, randomBytes, rootOf } from "./entropy.js";
import { checkArgument, sentence } from "./errors.js";
import { deriveCohort, memoDigest, memoKey } from "./memo.js";
import { checkParams, checkWhole } from "./params.js";
import { checkShape, signalOf } from "./signal.js";

export { RapporError } from "./errors.js";

/** @typedef {{ cohort: number, bits: Uint8Array }} Report bits are packed: bit i is bit i % 8 of byte i >> 3 */
/** @typedef {{ signal: Uint8Array, permanent: Uint8Array, report: Report }} Trace only `report` may be sent */

/**
 * @typedef {object} Roots what does not change from report to report
 * @property {Uint8Array} root of the secret
 * @property {Uint8Array} digest of what shapes B'
 */

/**
 * @typedef {object} EncoderOptions
 * @property {string} collection its name; other collections give independent responses
 * @property {number} [cohort] 0 to m - 1; derived from the secret if it is not given
 * @property {string | null} [period] in budget mode the calendar period, which has its own B'
 * @property {import("./entropy.js").Entropy} [entropy] of the instantaneous response
 * @property {import("./signal.js").Dialects} [dialects] from rappor/dialects
 */

/**
 * @typedef {object} Encoder
 * @property {number} cohort
 * @property {string} memoDigest in hex
 * @property {(value: unknown) => Report} encode B' is the same in every call; the report is new
 * @property {() => Report} encodeNull "no value": the all-zero filter, with its own memo
 * @property {(value: unknown) => Trace} trace to show a person what happens to a value
 */

/**
 * B' as a function of the filter and the memo input (§2, step 2): every bit is flipped with
 * probability f/2 by an exact coin, whose randomness the key and the memo input decide.
 * @param {import("./params.js").Params} params
 * @param {Uint8Array} key
 * @returns {(signal: Uint8Array, memo: Uint8Array) => Uint8Array}
 */
function permanentResponse({ k, f }, key) {
  const half = f ? [false, ...binaryDigits(f)] : []; // of f/2
  const stream = keyedStream(key);
  return (signal, memo) => {
    const [flips] = below([half], k, stream(memo));
    return signal.map((byte, at) => byte ^ flips[at]);
  };
}

/**
 * S as a function of B', with new randomness in every call (§2, step 3): P(S_i = 1) is q where B'_i
 * is 1, else p. Both comparisons are made for every bit, so that nothing depends on the value.
 * @param {import("./params.js").Params} params
 * @param {import("./entropy.js").Entropy} entropy
 * @returns {(permanent: Uint8Array) => Uint8Array}
 */
function instantaneousResponse({ k, p, q }, entropy) {
  const low = binaryDigits(p);
  const high = q === 1 ? [] : binaryDigits(q);
  const everything = allBits(k);
  return (permanent) => {
    const [belowP, belowQ] = below([low, high], k, entropy);
    const ones = q === 1 ? everything : belowQ;
    return belowP.map((byte, at) => byte | (permanent[at] & ones[at]));
  };
}

/**
 * An encoder from what was checked and derived before.
 * @param {import("./signal.js").Shape & EncoderOptions & Roots} options
 * @returns {Omit<Encoder, "memoDigest">}
 */
export function makeEncoder(options) {
  const { collection, root, digest, period, entropy = randomBytes } = options;
  const { params, cohort = deriveCohort(root, collection, params.m) } = options;
  checkWhole(cohort, 0, params.m - 1, sentence`cohort`);
  const signal = signalOf(options, cohort, options.dialects);
  const permanent = permanentResponse(params, memoKey("value", root, collection, digest, cohort, period));
  const instantaneous = instantaneousResponse(params, checked(entropy));
  /** @param {Uint8Array} response @returns {Report} */
  const report = (response) => ({ cohort, bits: instantaneous(response) });
  /** @param {unknown} value */
  const trace = (value) => {
    const { bits, memo } = signal(value);
    const response = permanent(bits, memo);
    return { signal: bits, permanent: response, report: report(response) };
  };
  return {
    cohort,
    trace,
    encode: (/** @type {unknown} */ value) => trace(value).report,
    encodeNull() {
      const key = memoKey("null", root, collection, digest, cohort, period);
      const nothing = new Uint8Array((params.k + 7) >> 3);
      return report(permanentResponse(params, key)(nothing, nothing.subarray(nothing.length)));
    },
  };
}

/**
 * One client's encoder for one collection.
 * @param {import("./signal.js").Shape & EncoderOptions & { secret: Uint8Array }} options
 * @returns {Promise<Encoder>}
 */
export async function createEncoder(options) {
  const { secret, collection, period, dialects } = options;
  checkArgument(
    secret instanceof Uint8Array && secret.length,
    sentence`secret must be a non-empty Uint8Array; newSecret() makes one`,
  );
  checkArgument(
    [collection, period ?? "-"].every((text) => text && encodable(text)),
    sentence`collection and period must be non-empty strings of Unicode text`,
  );
  const params = checkParams(options.params);
  checkShape(options, dialects);
  const shape = { ...options, params };
  signalOf(shape, 0, dialects); // refuses parts that do not fit
  const root = await rootOf(secret);
  const digest = await memoDigest(shape);
  const encoder = makeEncoder({ ...shape, root, digest });
  return Object.freeze({ ...encoder, memoDigest: hex(digest) });
}

/** A new client's secret: 32 bytes of the platform's generator. Draw it once and keep it. */
export const newSecret = () => randomBytes(32);
