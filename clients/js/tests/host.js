/**
 * A program that hosts one client, for the Python tests: reads lines of JSON [method, ...arguments] and
 * answers each with a line. `open` takes the options of Client.open; `clock` sets the time;
 * `report` takes a collection, a value and how often. Transports: none, an address, or "recorded".
 *
 * The second argument names another folder of sources, in which a test has planted a bug.
 */

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const sources = pathToFileURL(`${process.argv[2] ?? new URL("../src", import.meta.url).pathname}/`);
const { Client } = await import(new URL("node.js", sources));
const { hex } = await import(new URL("bytes.js", sources));

let client;
let time = null; // milliseconds; null: the platform's clock
const sent = [];
const answers = [];

const transport = async (body) => {
  sent.push(hex(body));
  const answer = answers.shift() ?? { status: 204 };
  if (answer.fails) throw new TypeError("no network");
  if (answer.rejects) return Promise.reject(null);
  return answer;
};

const methods = {
  async open({ recorded, accountSecret, ...options }) {
    const secret = accountSecret && Buffer.from(accountSecret.hex, "hex"); // its slice() is no copy
    client = await Client.open({
      jitter: 0,
      now: () => time ?? Date.now(),
      ...(recorded && { transport }),
      ...(secret && { accountSecret: secret }),
      ...options,
    });
    secret?.fill(0); // as a careful application does
    for (const definition of options.collections ?? []) {
      for (const part of Object.values(Object(definition))) if (Array.isArray(part)) part.length = 0;
    }
  },
  clock(given) {
    time = given;
  },
  answer(...given) {
    answers.push(...given);
  },
  sent: () => sent.splice(0),
  reportEvery(wait, name) {
    setInterval(() => client.report(name, "x"), wait).unref();
  },
  /** Report a new value again and again, and wait for each to be sent. */
  reportForever(name, prefix) {
    (async () => {
      for (let call = 0; ; call++) {
        client.report(name, `${prefix}-${call}`);
        await client.flush(60000);
      }
    })();
  },
  /** Report a text in a Buffer, or an object of a class, which is used again for another value at once. */
  reportAndReuse(name, value, other) {
    const reused =
      typeof value === "string" ? Buffer.from(value) : Object.assign(new (class Value {})(), value);
    client.report(name, reused);
    if (typeof value === "string") reused.write(other);
    else Object.assign(reused, other);
  },
  report(name, value, times = 1) {
    for (let call = 0; call < times; call++) client.report(name, value);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [method, ...given] = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await (methods[method] ?? client[method])(...given)) ?? null };
  } catch (error) {
    answer = {
      error: error.message,
      code: error.code,
      definitionCode: error.definitionCode,
      path: error.path,
    };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
