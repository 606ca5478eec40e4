/**
 * A page that hosts a client for the tests: window.call has its methods, window.run the commands. The
 * client is that of the sources, or with ?bundle that of a release.
 */

import { run, useEncoder } from "./commands.js";

const bundled = location.search === "?bundle";
const { Client } = await import(bundled ? "/dist/rappor.min.js" : "../src/browser.js");
if (bundled) useEncoder((await import("/dist/encoder.min.js")).createEncoder);

const clients = {};

globalThis.run = run;
/** The code and path for which a bundle refuses a definition, or null; with the other dialects or without. */
globalThis.refusal = async (text, withDialects) => {
  const { dialects } = await import("/dist/dialects.min.js");
  const given = withDialects ? { dialects } : {};
  return Client.open({ collections: [text], consent: false, ...given }).then(
    () => null,
    ({ definitionCode, path }) => [definitionCode, path],
  );
};
globalThis.open_ = async (options, label = "client") => {
  const { shift = 0, ...given } = options;
  clients[label] = await Client.open({ jitter: 0, ...given, now: () => Date.now() + 864e5 * shift });
};
globalThis.call = (method, ...given) => clients.client[method](...given);
globalThis.report = (name, prefix, times) => {
  for (let call = 0; call < times; call++) clients.client.report(name, `${prefix}${call}`);
};
/** Report a new value again and again, and wait for each to be recorded; how many, in `progress`. */
globalThis.progress = 0;
globalThis.reportForever = async (name, prefix) => {
  for (let call = 0; ; call++) {
    clients.client.report(name, `${prefix}-${call}`);
    await clients.client.flush(60000);
    globalThis.progress = call + 1;
  }
};
/**
 * Time calls of report(), in milliseconds. They are spread over tasks, as in an application, or all in
 * one task; each has another value, or one that is given.
 */
globalThis.timeReports = async (name, times, { burst = false, value = "value" } = {}) => {
  const measured = [];
  for (let call = 0; call < times; call++) {
    const different = `${value}${call}`;
    const before = performance.now();
    clients.client.report(name, different);
    measured.push(performance.now() - before);
    if (!burst && call % 10 === 9) await new Promise((resolve) => setTimeout(resolve));
  }
  return measured;
};
let worker;
globalThis.startWorker = (options) =>
  new Promise((resolve, reject) => {
    worker = new Worker(`/tests/worker.js${location.search}`, { type: "module" });
    worker.onerror = (event) => reject(new Error(event.message));
    worker.onmessage = ({ data }) => resolve(data);
    worker.postMessage(["open", options]);
  });
globalThis.askWorker = (...message) =>
  new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.postMessage(message);
  });
globalThis.ready = true;
