/**
 * The sentences that belong to codes: states of a client, problems that stop it, states of a batch. The
 * bundle of a release leaves them out, and has the codes only; an application that shows sentences
 * next to the bundle imports this module, as rappor/messages.
 */

const NO_SECRET =
  "Nothing is reported, because a new secret would cost its owner another ε∞. Restore it, or call forget()";
const NO_LEDGER = "Nothing is reported, because the ε spent so far is unknown. Restore it, or call forget()";

const PROBLEMS = {
  "secret-missing": `the secret was used before and is missing now. ${NO_SECRET}`,
  "secret-damaged": `the secret is damaged. ${NO_SECRET}`,
  "secret-changed":
    "the ledger belongs to another secret. Give each account its own storage, or call forget()",
  "ledger-missing": `the ledger was used before and is missing now. ${NO_LEDGER}`,
  "ledger-damaged": `the ledger is damaged. ${NO_LEDGER}`,
  "ledger-outdated": `the ledger is older than the newest report. ${NO_LEDGER}`,
  "marker-damaged":
    "the file used is damaged. Nothing is reported. If secret and ledger are unchanged, delete it",
  "slot-damaged":
    "the stored report of a one-time collection is damaged. It is not drawn again: that would cost ε",
  "directory-unusable":
    "the storage cannot be read or written: it is blocked, or this is a private window. Nothing is reported",
  "disk-full": "the storage is full. Nothing is reported until there is room",
  "directory-busy": "another tab or process held the lock for too long; the report was not made",
  "no-entropy": "the platform gave no randomness. Nothing is reported, because there is no safe substitute",
  "insecure-context": "this page was not loaded over https. Nothing is reported",
  internal: "an error in rappor itself; see the console",
};

const STATES = {
  on: "values are reported",
  "no consent": "opened with consent: false: nothing is recorded or sent",
  "do not track": "DO_NOT_TRACK or Global Privacy Control is set: nothing is recorded or sent",
  "opted out": "the person opted out: nothing is recorded or sent until optIn()",
  stopped: "nothing is reported; the problem says why",
  forgotten: "forget() deleted everything: open the client again",
  closed: "close() was called",
};

const BATCHES = {
  "outbox/batch": "waiting",
  "outbox/held": "waiting for the end of the period",
  "outbox/tried": "waiting, tried before: the collector may have seen it",
  "sent/batch": "sent",
  "sent/tried": "tried, then dropped: the collector may have seen it",
  "sent/refused": "sent, and refused",
};

/** @typedef {keyof typeof PROBLEMS} Problem */
/** @typedef {keyof typeof STATES} State */

/** @type {Record<string, string>} */
const TEXTS = { ...PROBLEMS, ...STATES, ...BATCHES };

/**
 * The sentence of a code: of "status().problem" or ".state", or of the "state" of a previewed report.
 * @param {string} code
 * @returns {string}
 */
export const explain = (code) => TEXTS[code] ?? code;

/**
 * What forget() did, and what it cost.
 * @param {number} epsilon
 */
export const explainForgotten = (epsilon) =>
  `The secret, the ledger and all reports stored here are deleted. Reports that were sent cannot be recalled, and the ε = ${Math.ceil(epsilon * 1000) / 1000} they cost stays spent. A new secret gives a second look at the same values: its ε adds to this one, and the limits of the collections count both.`;
