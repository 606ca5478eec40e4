/** A batch of reports as bytes: the format RPR1, application/vnd.rappor.batch (docs/protocol.md). */

import { be32, join, textOf, utf8 } from "./bytes.js";

export const CONTENT_TYPE = "application/vnd.rappor.batch";

/**
 * @typedef {object} Batch
 * @property {Uint8Array} token 16 random bytes, for this batch only
 * @property {string} collection
 * @property {number} version
 * @property {string} period a day such as 2026-11-16 or a week such as 2026-W47
 * @property {readonly (readonly [string, string])[]} dimensions sorted by name
 * @property {number} k
 * @property {import("./encoder.js").Report[]} reports
 */

/** @param {number} value @param {number} bytes */
const little = (value, bytes) => be32(value).reverse().slice(0, bytes);

/** @param {string} text */
const short = (text) => join(Uint8Array.of(text.length), utf8(text));

/**
 * The bytes of a batch. batch-check.js checks one that comes from elsewhere.
 * @param {Batch} batch
 * @returns {Uint8Array}
 */
export const encodeBatch = ({ token, collection, version, period, dimensions, k, reports }) =>
  join(
    utf8("RPR1"),
    token,
    little(version, 2),
    little(k, 2),
    little(reports.length, 4),
    short(collection),
    short(period),
    Uint8Array.of(dimensions.length),
    ...dimensions.flat().map(short),
    ...reports.map(({ cohort }) => little(cohort, 2)),
    ...reports.map(({ bits }) => bits),
  );

/**
 * The batch in bytes that encodeBatch wrote.
 * @param {Uint8Array} data
 * @returns {Batch}
 */
export function decodeBatch(data) {
  let at = 4;
  const take = (/** @type {number} */ size) => data.slice(at, (at += size));
  const number = (/** @type {number} */ size) => take(size).reduceRight((sum, byte) => 256 * sum + byte, 0);
  const text = () => textOf(take(number(1)));
  const token = take(16);
  const version = number(2);
  const k = number(2);
  const count = number(4);
  const collection = text();
  const period = text();
  const dimensions = Array.from(
    { length: number(1) },
    () => /** @type {[string, string]} */ ([text(), text()]),
  );
  const cohorts = Array.from({ length: count }, () => number(2));
  const reports = cohorts.map((cohort) => ({ cohort, bits: take((k + 7) >> 3) }));
  return { token, collection, version, period, dimensions, k, reports };
}
