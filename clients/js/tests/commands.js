/**
 * What the Python tests ask of the JavaScript, in Node.js and in a page: each request is an object,
 * each answer is plain data. Bytes are in hex. A refusal is { refused: message, code }.
 */

import { encodeBatch } from "../src/batch.js";
import { readBatchStrictly, writeBatchStrictly } from "../src/batch-check.js";
import { blake2b, blake2s } from "../src/blake2.js";
import { fromHex, hex } from "../src/bytes.js";
import { checkCollection } from "../src/collection.js";
import { cityHash64WithSeed, dialects } from "../src/dialects.js";
import { createEncoder as createEncoderOfSources } from "../src/encoder.js";
import { addUp, epsilonOf } from "../src/epsilon.js";
import { RapporError } from "../src/errors.js";
import { paramsDigest } from "../src/params.js";
import { daysOf, periodOf } from "../src/periods.js";
import { rapporV1 } from "../src/placement.js";
import { signalOf } from "../src/signal.js";

let createEncoder = createEncoderOfSources;

/** Encode with another encoder from now on: that of a bundle. */
export const useEncoder = (given) => {
  createEncoder = given;
};

const bytes = (text) => fromHex(text ?? "");

/** A value as the tests write it: {hex}, {bigint}, {number: "nan" | "inf" | "-inf"}, {tuple}, or itself. */
export function valueFrom(given) {
  if (given === null || typeof given !== "object" || Array.isArray(given)) return given;
  if ("hex" in given) return bytes(given.hex);
  if ("bigint" in given) return BigInt(given.bigint);
  if ("tuple" in given) {
    return Object.fromEntries(Object.entries(given.tuple).map(([name, part]) => [name, valueFrom(part)]));
  }
  return { nan: NaN, inf: Infinity, "-inf": -Infinity }[given.number];
}

const optionsOf = ({ secret, value, ...shape }) => ({ ...shape, secret: bytes(secret), dialects });

const commands = {
  blake2: ({ wide, message, key, length }) =>
    hex((wide ? blake2b : blake2s)(bytes(message), length, bytes(key))),
  cityhash: ({ data, seed }) => cityHash64WithSeed(bytes(data), BigInt(seed)).toString(16),
  paramsDigest: ({ params }) => paramsDigest(params),
  /** Everything that a value becomes before the last, fresh randomness; and the batch of a given report. */
  async trace(request) {
    const options = optionsOf(request);
    const encoder = await createEncoder(options);
    const { signal, permanent } = encoder.trace(valueFrom(request.value));
    // p and q are not part of the memo: p = 0 and q = 1 show the B' of a null report.
    const open = request.params.f ? { ...request.params, p: 0, q: 1 } : null;
    const bare = open && (await createEncoder({ ...options, params: open }));
    const nothing = bare ? bare.encodeNull().bits : new Uint8Array(signal.length);
    const batch =
      request.token &&
      encodeBatch({
        token: bytes(request.token),
        collection: request.collection,
        version: 7,
        period: request.period ?? "2026-11-16",
        dimensions: request.dimensions,
        k: request.params.k,
        reports: [{ cohort: encoder.cohort, bits: permanent }],
      });
    return {
      memo_digest: encoder.memoDigest,
      cohort: encoder.cohort,
      signal: hex(signal),
      permanent: hex(permanent),
      null_permanent: hex(nothing),
      batch: batch && hex(batch),
    };
  },
  /** A definition of a collection: the digest of what shapes B', or the code and path of the error. */
  async definition({ text, parsed, without }) {
    try {
      const given = without ? {} : dialects;
      return hex((await checkCollection(parsed ? JSON.parse(text) : text, given)).digest);
    } catch (error) {
      return { code: error.definitionCode, path: error.path, message: error.message };
    }
  },
  epsilon: ({ params, kind, steps }) => String(epsilonOf(params, kind, steps)),
  sum: ({ losses }) => String(addUp(losses)),
  period: ({ kind, day }) => {
    const period = periodOf(kind, day);
    return [period, ...daysOf(period)];
  },
  /** A report drawn from given random bytes. */
  async draw(request) {
    const random = bytes(request.random);
    let at = 0;
    const entropy = (count) => random.slice(at, (at += count));
    const encoder = await createEncoder({ ...optionsOf(request), entropy });
    return { bits: hex(encoder.encode(valueFrom(request.value)).bits), read: at };
  },
  positions({ params, cohort, dialect, value }) {
    const shape = { params, kind: "string", dialect };
    if (!Number.isInteger(cohort) || cohort < 0 || (cohort >= params.m && dialect !== "chromium")) {
      throw new RapporError("params", "cohort must be a whole number below m");
    }
    const { memo } = signalOf(shape, cohort, dialects)(valueFrom(value));
    return (dialect === "rappor-v1" ? rapporV1 : dialects[dialect])(cohort, params)(memo);
  },
  batch({ binary }) {
    const batch = readBatchStrictly(bytes(binary));
    const reports = batch.reports.map(({ cohort, bits }) => [cohort, hex(bits)]);
    const again = hex(writeBatchStrictly(batch));
    return { ...batch, token: hex(batch.token), reports, again };
  },
};

/** Run requests { command, … } one after the other. */
export async function run(requests) {
  const answers = [];
  for (const request of requests) {
    try {
      answers.push(await commands[request.command](request));
    } catch (error) {
      if (error.name !== "RapporError") throw error; // a bundle has a class of its own
      answers.push({ refused: error.message, code: error.code });
    }
  }
  return answers;
}
