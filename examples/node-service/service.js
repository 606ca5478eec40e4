/**
 * A service that reports one thing about itself, and nothing about the people it serves.
 *
 *     node service.js DIRECTORY UPLOAD_TO DEFINITION.json
 *
 * It answers GET /hello?name=NAME. The names are the service's to know already: randomizing them here
 * would protect nobody (README.md).
 */

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { Client } from "../../clients/js/src/node.js"; // in an application: from "rappor"

const [directory, uploadTo, definition] = process.argv.slice(2);
const KNOWN = ["20", "22", "24"];
const HOUR = 3600_000; // ms

/** The operator's decision about their own installation: off unless it was switched on. */
const consent = process.env.SERVICE_STATISTICS === "on";

const client = await Client.open({
  directory, // one for each installation; never in an image, or all copies would be one client
  collections: [await readFile(definition, "utf8")],
  uploadTo,
  consent,
});
const major = process.versions.node.split(".")[0];
/** Asked every hour: the client makes one report a day of it, whenever the service was started. */
const report = () => client.report("runtime", KNOWN.includes(major) ? major : "other");
report();
setInterval(report, HOUR).unref();

const server = createServer((request, response) => {
  const name = new URL(request.url ?? "/", "http://localhost").searchParams.get("name") ?? "you";
  response.setHeader("Content-Type", "text/plain; charset=utf-8");
  response.end(`Hello, ${name}\n`); // and no client.report(…, name)
});
server.listen(0, "127.0.0.1", () => {
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  console.log(`http://127.0.0.1:${address.port}`);
});

process.on("SIGTERM", async () => {
  server.close();
  await client.close(10000); // sends what is due
  process.exit(0);
});
