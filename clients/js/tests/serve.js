/** Reads lines of JSON, each a list of requests for commands.js, and writes a line of answers for each. */

import { createInterface } from "node:readline";
import { run } from "./commands.js";

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
}
