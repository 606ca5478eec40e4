/** A worker that hosts a client, of the sources or with ?bundle of a release: messages are [method, ...arguments]. */

const loaded = import(location.search === "?bundle" ? "/dist/rappor.min.js" : "../src/browser.js");
let client;

globalThis.onmessage = async ({ data: [method, ...given] }) => {
  if (method === "open") {
    const { Client } = await loaded;
    client = await Client.open({ jitter: 0, ...given[0] });
    postMessage("open");
  } else if (method === "reports") {
    const [name, prefix, times] = given;
    for (let call = 0; call < times; call++) client.report(name, `${prefix}${call}`);
    postMessage("reported");
  } else {
    postMessage(await client[method](...given));
  }
};
