/** Microseconds of one report at k = 128 in Node.js: the best of rounds. The argument is their number. */

import { createEncoder, newSecret } from "../src/encoder.js";

const rounds = Number(process.argv[2] ?? 20);
const params = { k: 128, h: 2, m: 16, f: 0.5, p: 0.5, q: 0.75 };
const encoder = await createEncoder({ params, secret: newSecret(), collection: "homepage" });
const found = [];
for (let round = 0; round < rounds; round++) {
  const before = performance.now();
  for (let call = 0; call < 2000; call++) encoder.encode(`example-${call}.com`);
  found.push(performance.now() - before);
}
console.log(JSON.stringify({ microseconds: (1000 * Math.min(...found)) / 2000 }));
