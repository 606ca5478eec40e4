/** A start page: settings that work without anybody, and a client that reports them if the person agrees. */

import { element, reportItem } from "./bits.js";
import { Client } from "./rappor/browser.js"; // in an application with a bundler: from "rappor"

const SOON = 400; // ms until a report is made, usually
const LATER = 3000; // ms between two looks at what has left, while something waits

const { uploadTo } = await (await fetch("config.json")).json();
const collections = await (await fetch("collections.json")).json();
const definitions = Object.fromEntries(collections.map((/** @type {any} */ each) => [each.name, each]));
const find = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));

/** The settings; without storage (a blocked or full one) they last as long as the page. */
const settings = {
  memory: /** @type {Record<string, string>} */ ({}),
  get(/** @type {string} */ name) {
    try {
      return localStorage.getItem(name) ?? this.memory[name] ?? null;
    } catch {
      return this.memory[name] ?? null;
    }
  },
  set(/** @type {string} */ name, /** @type {string} */ value) {
    this.memory[name] = value;
    try {
      localStorage.setItem(name, value);
    } catch {}
  },
};

/** Whether the browser has answered for the person; then this page does not even ask. */
const { globalPrivacyControl, doNotTrack } = /** @type {any} */ (navigator);
const answered = !!globalPrivacyControl || doNotTrack === "1";

/** @type {import("../../clients/js/types/index.js").Client | null} */
let client = null;
/** What did not work, until the next choice. */
let trouble = "";

/** Reporting at every start and change is right: the client sends each at most once a day. */
function report() {
  client?.report("theme", settings.get("theme") ?? "system");
  const homepage = settings.get("homepage");
  if (homepage) client?.report("homepage", homepage);
}

/** Reports are made in the background, so what there is to see comes a moment later. */
async function reportAndShow() {
  report();
  await refresh();
  setTimeout(refresh, SOON);
}

function showSettings() {
  const theme = settings.get("theme") ?? "system";
  document.documentElement.dataset.theme = theme;
  find("settings").elements.theme.value = theme;
  const homepage = settings.get("homepage") ?? "";
  find("homepage").value = homepage;
  const link = element("a", homepage);
  link.setAttribute("href", `https://${homepage}`);
  link.setAttribute("rel", "noreferrer");
  find("link").replaceChildren(...(homepage ? ["Go to ", link] : ["No link yet."]));
}

/** Host names only, in one spelling: a report of a whole address would say more than is asked. */
function hostOf(/** @type {string} */ text) {
  try {
    return new URL(text.includes("://") ? text : `https://${text}`).hostname;
  } catch {
    return "";
  }
}

function showFacts() {
  const limit = collections.reduce((/** @type {number} */ sum, /** @type {any} */ each) => sum + each.max_epsilon, 0);
  const groups = Math.max(...collections.map((/** @type {any} */ each) => each.params.m));
  const facts = [
    ["Questions", collections.map((/** @type {any} */ each) => each.description).join(" ")],
    ["How often", "at most one report a day for each question"],
    ["Sent", `random bits, the day, and which of ${groups} groups your browser drew once`],
    ["Never sent", "your theme, your link, a name, a number of your own, cookies"],
    ["Not kept", "what every request shows on its way: your network address, your kind of browser, the moment"],
    ["At most", `ε = ${(Math.ceil(limit * 1000) / 1000).toFixed(3)}, the measure of what can be learnt about you; then your browser falls silent`],
    ["Until", collections.map((/** @type {any} */ each) => each.expires).sort()[0] ?? "we end it"],
  ];
  find("facts").replaceChildren(
    ...facts.flatMap(([name, text]) => [element("dt", name), element("dd", text)]),
  );
}

const BROWSER_SAYS_NO =
  "Your browser says no for you (Global Privacy Control or Do Not Track), and nothing is recorded.";
const STOPPED = "You stopped. Nothing is recorded or sent.";
const WORDS = { waiting: "waits for a random moment", held: "waits for the end of the period", sent: "sent" };

/** Show what left, what waits and what it cost. */
async function refresh() {
  find("consent").hidden = answered || settings.get("consent") !== null;
  find("actions").hidden = find("cost").hidden = !client;
  if (!client) {
    const said = settings.get("consent") === "no" ? "You said no" : "You have not answered yet";
    const says = answered ? BROWSER_SAYS_NO : `${said}, and nothing is recorded.`;
    find("summary").textContent = `Nothing. ${says} ${trouble}`;
    find("reports").replaceChildren();
    return;
  }
  const asked = client;
  const nothing = () => ({ sent: [], waiting: [] }); // a storage that cannot be read, as the status says
  const [status, preview] = [await asked.status(), await asked.preview().catch(nothing)];
  if (asked !== client) return; // forgotten while this waited: there is nothing left to show
  const on = status.state === "on";
  const states = {
    on: `${preview.sent.length} sent, ${preview.waiting.length} waiting.`,
    "opted out": STOPPED,
    "no consent": STOPPED,
    "do not track": `Nothing. ${BROWSER_SAYS_NO}`,
    forgotten: "Everything here is deleted.",
  };
  const said = states[/** @type {keyof states} */ (status.state)] ?? `Nothing is reported: ${status.explanation}`;
  const failed = on && status.upload ? "The last upload failed and is tried again." : "";
  find("summary").textContent = [said, failed, trouble].filter(Boolean).join(" ");
  find("stop").textContent = on ? "Stop" : "Take part again";
  find("stop").hidden = !["on", "opted out", "no consent"].includes(status.state);
  find("send").hidden = !on || !preview.waiting.length;
  find("forget").hidden = status.state === "forgotten";
  const open = new Set([...document.querySelectorAll(".report:has([open])")].map((item) => /** @type {any} */ (item).dataset.token));
  const items = [...preview.waiting, ...preview.sent].reverse().map((each) => {
    const left = preview.sent.includes(each);
    const words = WORDS[/** @type {keyof WORDS} */ (each.state)] ?? each.state;
    const item = reportItem(each, definitions[each.collection], words, left);
    if (open.has(each.token)) item.querySelector("details")?.setAttribute("open", "");
    return item;
  });
  find("reports").replaceChildren(...items);
  find("ledger").replaceChildren(
    ...status.collections.map(({ name, epsilon, maxEpsilon }) => {
      const meter = document.createElement("meter");
      meter.max = maxEpsilon;
      meter.value = epsilon;
      meter.setAttribute("aria-label", `${name}: share of the limit that is spent`);
      const cells = [epsilon, maxEpsilon].map((value) => element("td", (Math.ceil(value * 1000) / 1000).toFixed(3)));
      const title = element("th", name);
      title.setAttribute("scope", "row");
      return element("tr", title, ...cells, element("td", meter));
    }),
  );
}

/** Open the client of this browser: for a person who agreed, or to show what left before they stopped. */
async function takePart(consent = true) {
  trouble = "";
  client = await Client.open({ collections, uploadTo, consent });
  await reportAndShow();
}

find("yes").addEventListener("click", async () => {
  settings.set("consent", "yes");
  await takePart();
  find("left-title").scrollIntoView({ block: "nearest" });
});
find("no").addEventListener("click", async () => {
  settings.set("consent", "no");
  await refresh();
});
find("settings").addEventListener("change", async (/** @type {any} */ event) => {
  if (event.target.name !== "theme") return;
  settings.set("theme", event.target.value);
  showSettings();
  await reportAndShow();
});
find("settings").addEventListener("submit", async (/** @type {any} */ event) => {
  event.preventDefault();
  settings.set("homepage", hostOf(find("homepage").value.trim()));
  showSettings();
  await reportAndShow();
});
find("send").addEventListener("click", async (/** @type {any} */ event) => {
  event.target.disabled = true;
  await client?.flush(15000);
  event.target.disabled = false;
  await refresh();
});
find("stop").addEventListener("click", async () => {
  const on = (await client?.status())?.state === "on";
  // First of all: should the client fail to note it, the page still does not ask it to report again.
  if (on) settings.set("consent", "stopped");
  const done = await (on ? client?.optOut() : client?.optIn());
  if (!on && done) settings.set("consent", "yes");
  const stopping = "A report that was already on its way may still arrive.";
  trouble = done ? "" : on ? stopping : "That did not work: please try again.";
  await (on ? refresh() : reportAndShow());
});
// The choice holds in every tab, also in those that were open when it was made.
addEventListener("storage", async ({ key, newValue }) => {
  if (key !== "consent" || newValue === "yes" || !client) return;
  await client.optOut();
  await refresh();
});
find("forget").addEventListener("click", () => find("sure").showModal());
find("sure").addEventListener("close", async () => {
  if (find("sure").returnValue !== "forget") return;
  settings.set("consent", "stopped");
  try {
    const done = await client?.forget();
    client = null;
    settings.set("consent", "no");
    await refresh();
    find("summary").textContent = done?.text ?? "";
  } catch {
    trouble = "Not everything could be deleted. Nothing is recorded any more: please try again.";
    await refresh();
  }
});

showFacts();
showSettings();
const consent = settings.get("consent");
if (consent === "yes" || consent === "stopped") await takePart(consent === "yes");
await refresh();
document.documentElement.dataset.ready = "";
setInterval(async () => {
  if (client && document.visibilityState === "visible" && (await client.preview()).waiting.length) await refresh();
}, LATER);
