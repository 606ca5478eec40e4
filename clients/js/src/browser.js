/** The client of pages, workers and extensions. */

import { openClient } from "./client.js";
import { openIndexedDb } from "./indexed-db.js";

export { createEncoder, newSecret } from "./encoder.js";
export { RapporError } from "./errors.js";

/** @type {import("./client.js").Platform} */
const browser = {
  openStorage: async ({ name = "rappor" }) => openIndexedDb(name),
  doNotTrack: () => {
    const { globalPrivacyControl, doNotTrack } = /** @type {any} */ (navigator);
    return !!globalPrivacyControl || doNotTrack === "1";
  },
  problem: isSecureContext ? null : "insecure-context",
  release: () => {},
};

export const Client = {
  /** @type {typeof import("../types/index.js").Client.open} */
  open: (options) => openClient(options, browser),
};
