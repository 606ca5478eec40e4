/**
 * The encoder for the audits of tests/support: reads lines of JSON and answers each with a line.
 *
 *     {make: options, ended: [id, …]} -> {id, cohort}; those that ended are forgotten
 *     {id, value, times}              -> [{cohort, bits}, …]
 *     {id, trace: value}              -> {signal, permanent}
 *     {bulk: options, secrets, value} -> the packed reports of that many clients, joined
 *     {crowd: options, people, batch} -> one report of each [secret, value], sent in one batch; the status
 *
 * Bytes are in hex. The argument names the folder of the sources. Math.random is a constant: what
 * depends on it shows.
 */

import { createHmac } from "node:crypto";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

Math.random = () => 0.5;
const sources = pathToFileURL(`${process.argv[2] ?? new URL("../src", import.meta.url).pathname}/`);
const { createEncoder, makeEncoder } = await import(new URL("encoder.js", sources));
const { CONTENT_TYPE, encodeBatch } = await import(new URL("batch.js", sources));
const { fromHex, hex } = await import(new URL("bytes.js", sources));
const { dialects } = await import(new URL("dialects.js", sources));

const encoders = new Map();
let made = 0;

const optionsOf = ({ secret, ...options }) => ({ ...options, secret: fromHex(secret), dialects });
const reportOf = ({ cohort, bits }) => ({ cohort, bits: hex(bits) });

async function answer(request) {
  if (request.make) {
    for (const id of request.ended) encoders.delete(id);
    const encoder = await createEncoder(optionsOf(request.make));
    const id = `${process.pid}/${++made}`;
    encoders.set(id, encoder);
    return { id, cohort: encoder.cohort };
  }
  if (request.bulk) {
    // As createEncoder, but what all clients share is made once, and roots by the quicker HMAC of Node.js.
    const { memoDigest } = await createEncoder(optionsOf({ ...request.bulk, secret: "00" }));
    const shared = { ...request.bulk, dialects, digest: fromHex(memoDigest) };
    const drawn = (secret) => {
      const root = new Uint8Array(createHmac("sha512", "rappor-v1 secret").update(secret, "hex").digest());
      const encoder = makeEncoder({ ...shared, root });
      return Array.from({ length: request.times }, () => hex(encoder.encode(request.value).bits));
    };
    return request.secrets.flatMap(drawn).join("");
  }
  if (request.crowd) {
    const { address, key, token, ...batch } = request.batch;
    const reports = [];
    for (const [secret, value] of request.people) {
      reports.push((await createEncoder(optionsOf({ ...request.crowd, secret }))).encode(value));
    }
    const { collection, params } = request.crowd;
    const body = encodeBatch({ ...batch, token: fromHex(token), collection, k: params.k, reports });
    const headers = { "Content-Type": CONTENT_TYPE, Authorization: `Bearer ${key}` };
    return (await fetch(address, { method: "POST", body, headers })).status;
  }
  const encoder = encoders.get(request.id);
  if ("trace" in request) {
    const { signal, permanent } = encoder.trace(request.trace);
    return { signal: hex(signal), permanent: hex(permanent) };
  }
  return Array.from({ length: request.times }, () => reportOf(encoder.encode(request.value)));
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
}
