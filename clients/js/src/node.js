/** The client of Node.js. A server is rarely the place for it: see examples/node-service. */

import { openClient } from "./client.js";
import { checkArgument, sentence } from "./errors.js";
import { openFolder } from "./folder.js";

export { createEncoder, newSecret } from "./encoder.js";
export { RapporError } from "./errors.js";

/** @type {import("./client.js").Platform} */
const node = {
  openStorage: async ({ directory }) => openFolder(/** @type {string} */ (directory)),
  doNotTrack: () => !["", "0", "false", "no"].includes((process.env.DO_NOT_TRACK ?? "").trim().toLowerCase()),
  problem: null,
  release: (timer) => timer.unref(),
};

export const Client = {
  /** @type {typeof import("../types/index.js").Client.open} */
  open: async (options) => {
    const directory = options?.directory;
    checkArgument(
      typeof directory === "string" && directory && !directory.includes("\0"),
      sentence`directory must be the path of a folder, which each person has for themselves`,
    );
    return openClient(options, node);
  },
};
