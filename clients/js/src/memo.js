/**
 * What a client derives from its secret: its cohort, and the keys of its memoized responses.
 *
 * The memo digest covers everything that shapes B' and nothing else: a new p, q or version keeps B';
 * a new f, k, h, m, kind, dialect, category or range makes an independent one, whose ε adds.
 */

import { be32, frame, sha256, utf8 } from "./bytes.js";
import { fractionText } from "./coins.js";
import { derive, keyedStream } from "./entropy.js";
import { checkEdges } from "./signal.js";

/**
 * SHA-256 of what shapes B'.
 * @param {import("./signal.js").Shape} shape
 * @returns {Promise<Uint8Array>}
 */
export function memoDigest({ params, kind = "string", dialect = "rappor-v1", categories, edges }) {
  const { k, h, m, f } = params;
  const points = edges ? checkEdges(edges) : [];
  const texts = [
    "rappor-v1 memo digest",
    kind,
    dialect,
    `${k} ${h} ${m} ${fractionText(f)}`,
    ...(categories ?? []),
    ...points.map(({ above, below }) => `${above.toString(16)}/${below.toString(16)}`),
  ];
  return sha256(frame(...texts.map(utf8)));
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
  const accepted = (1n << 64n) - ((1n << 64n) % count);
  for (;;) {
    const bytes = read(8);
    const word = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0); // big-endian
    if (word < accepted) return Number(word % count);
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
