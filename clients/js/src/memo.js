/**
 * What a client derives from its secret: its cohort, and the keys of its memoized responses.
 *
 * The memo digest covers everything that shapes B' and nothing else: a new p, q or version keeps B';
 * a new f, k, h, m, kind, dialect, category, range, field or view makes an independent one, whose ε adds.
 */

import { be32, frame, hex, sha256 } from "./bytes.js";
import { derive, keyedStream } from "./entropy.js";
import { fractionText } from "./rational.js";
import { partOf } from "./signal.js";

/**
 * SHA-256 of what shapes B'. A view counts with the number of its cohorts.
 * @param {import("./signal.js").Shape} shape
 * @returns {Promise<Uint8Array>}
 */
export function memoDigest(shape) {
  const { params, kind = "string", dialect = "rappor-v1", fields, views } = shape;
  const { k, h, m, f } = params;
  return sha256(
    frame([
      "rappor-v1 memo digest",
      kind,
      dialect,
      `${k} ${h} ${m} ${fractionText(f)}`,
      ...partOf({ ...shape, kind }).texts,
      ...(fields ?? []).map((field) => frame(["field", field.name, field.kind, ...partOf(field).texts])),
      ...(views ?? []).map((view) => frame(["view", String(view.cohorts), ...view.fields])),
    ]),
  );
}

/**
 * The client's cohort in a collection: uniform over m, permanent, never stored. 64-bit words that
 * would favour the lower cohorts are skipped.
 * @param {Uint8Array} root
 * @param {string} collection
 * @param {number} m
 * @returns {number}
 */
export function deriveCohort(root, collection, m) {
  const read = keyedStream(derive(root, "cohort", collection, be32(m)))(new Uint8Array(0));
  const count = BigInt(m);
  for (;;) {
    const word = BigInt(`0x${hex(read(8))}`);
    if (word < 2n ** 64n - (2n ** 64n % count)) return Number(word % count);
  }
}

/**
 * The key of a client's permanent responses in one collection; in budget mode each period has its own.
 * @param {"value" | "null"} purpose
 * @param {Uint8Array} root
 * @param {string} collection
 * @param {Uint8Array} digest
 * @param {number} cohort
 * @param {string | null | undefined} period
 * @returns {Uint8Array}
 */
export const memoKey = (purpose, root, collection, digest, cohort, period) =>
  derive(root, purpose, collection, digest, be32(cohort), ...(period ? [period] : []));
