/**
 * Batches that come from elsewhere, read strictly: what a collector refuses is refused here, with the
 * same words. A client needs none of this: it reads only what it wrote itself, under a seal.
 */

import { decodeBatch, encodeBatch } from "./batch.js";
import { RapporError, sentence } from "./errors.js";

/** @typedef {import("./batch.js").Batch} Batch */

const NAME = /^[a-z][a-z0-9_-]{0,62}$/;
const PERIOD = /^\d{4}-(?:\d\d-\d\d|W\d\d)$/;
const DIMENSION = /^[a-z][a-z0-9_]{0,31}$/;
const CELL = /^[A-Za-z0-9](?:[A-Za-z0-9 ._+/:()-]{0,62}[A-Za-z0-9._+()-])?$/;

/**
 * @param {boolean} holds
 * @param {string} message
 */
function must(holds, message) {
  if (!holds) throw new RapporError("wire", message);
}

/**
 * @param {string} what
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
const inRange = (what, value, low, high) =>
  must(
    Number.isInteger(value) && value >= low && value <= high,
    sentence`${what} must be a whole number from ${low} to ${high}`,
  );

/**
 * The same batch, or an error of code "wire" if a collector would refuse its structure.
 * @param {Batch} batch
 * @returns {Batch}
 */
export function checkBatch(batch) {
  const { token, collection, version, period, dimensions, k, reports } = batch;
  must(token instanceof Uint8Array && token.length === 16, sentence`token must be 16 bytes`);
  must(
    NAME.test(collection),
    sentence`collection must be a name of 1 to 63 of a-z, 0-9, _ and -, a letter first`,
  );
  inRange("version", version, 1, 65535);
  must(PERIOD.test(period), sentence`period must be a day such as 2026-11-16 or a week such as 2026-W47`);
  must(dimensions.length <= 8, sentence`a batch has at most 8 dimensions, got ${dimensions.length}`);
  dimensions.forEach(([name, value], at) => {
    must(DIMENSION.test(name), sentence`a dimension's name is 1 to 32 of a-z, 0-9 and _, a letter first`);
    must(
      CELL.test(value),
      sentence`a dimension's value is 1 to 64 letters, digits, spaces or ._+/:()-, a letter or digit first; no space, / or : last`,
    );
    must(!at || dimensions[at - 1][0] < name, sentence`dimensions must be sorted by name, each named once`);
  });
  inRange("k", k, 1, 4096);
  must(reports.length > 0, sentence`cohorts must be two bytes for each report, and at least one report`);
  const size = (k + 7) >> 3;
  for (const { cohort, bits } of reports) {
    must(cohort >= 0 && cohort < 1024 && Number.isInteger(cohort), sentence`a cohort must be below 1024`);
    must(bits.length === size, sentence`reports must be ${size} bytes each for k = ${k}`);
    must(
      !(k & 7) || !(bits[size - 1] >> (k & 7)),
      sentence`reports of ${k} bits must leave their ${-k & 7} padding bits 0`,
    );
  }
  return batch;
}

/**
 * The batch in some bytes, or an error of code "wire".
 * @param {Uint8Array} data
 * @returns {Batch}
 */
export function readBatchStrictly(data) {
  must(data.length <= 1048576, sentence`a message has at most 1048576 bytes, got ${data.length}`);
  must(data.length >= 28, sentence`the batch ends within its head`);
  must(
    String.fromCharCode(...data.subarray(0, 4)) === "RPR1",
    sentence`the batch does not start with RPR1, the only known format`,
  );
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  let at = 28;
  const skip = () => {
    must(at < data.length && at + 1 + data[at] <= data.length, sentence`the batch ends within its names`);
    const name = data.subarray(at + 1, at + 1 + data[at]);
    must(
      name.every((byte) => byte < 128),
      sentence`names in a batch are ASCII text`,
    );
    at += 1 + name.length;
  };
  skip();
  skip();
  must(at < data.length, sentence`the batch ends before its dimensions`);
  for (let texts = 2 * data[at++]; texts; texts--) skip();
  const count = view.getUint32(24, true);
  const k = view.getUint16(22, true);
  at += 2 * count;
  must(at <= data.length, sentence`the batch ends within its cohorts`);
  inRange("k", k, 1, 4096);
  must(count > 0, sentence`cohorts must be two bytes for each report, and at least one report`);
  const all = ((k + 7) >> 3) * count;
  const got = data.length - at;
  must(
    got === all,
    sentence`reports must be ${(k + 7) >> 3} bytes each for k = ${k}, ${all} in all, got ${got}`,
  );
  return checkBatch(decodeBatch(data));
}

/**
 * The bytes of a batch, or an error of code "wire".
 * @param {Batch} batch
 * @returns {Uint8Array}
 */
export function writeBatchStrictly(batch) {
  const message = encodeBatch(checkBatch(batch));
  must(message.length <= 262144, sentence`a message has at most 262144 bytes, got ${message.length}`);
  return message;
}
