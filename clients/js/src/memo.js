/**
 * What a client derives from its secret: its cohort, and the keys of its memoized responses.
 *
 * The memo digest covers everything that shapes B' and nothing else: a new p, q or version keeps B';
 * a new f, k, h, m, kind, dialect, category, range, field or view makes an independent one, whose ε adds.
 */

import { be32, frame, sha256, utf8 } from "./bytes.js";
import { fractionText } from "./coins.js";
import { derive, keyedStream } from "./entropy.js";
import { checkEdges } from "./signal.js";

/**
 * The categories or edges of a collection or a field.
 * @param {Pick<import("./signal.js").Shape, "categories" | "edges">} shape
 * @returns {string[]}
 */
const listed = ({ categories, edges }) => [
  ...(categories ?? []),
  ...(edges ? checkEdges(edges) : []).map(
    ({ above, below }) => `${above.toString(16)}/${below.toString(16)}`,
  ),
];

/** @param {string[]} texts */
const framed = (...texts) => frame(...texts.map(utf8));

/**
 * SHA-256 of what shapes B'. A view counts with the number of its cohorts.
 * @param {import("./signal.js").Shape} shape
 * @returns {Promise<Uint8Array>}
 */
export function memoDigest(shape) {
  const { params, kind = "string", dialect = "rappor-v1", fields, views } = shape;
  const { k, h, m, f } = params;
  const texts = [
    "rappor-v1 memo digest",
    kind,
    dialect,
    `${k} ${h} ${m} ${fractionText(f)}`,
    ...listed(shape),
  ];
  const parts = [
    ...texts.map(utf8),
    ...(fields ?? []).map((field) => framed("field", field.name, field.kind, ...listed(field))),
    ...(views ?? []).map((view) => framed("view", String(view.cohorts), ...view.fields)),
  ];
  return sha256(frame(...parts));
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
