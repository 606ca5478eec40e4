/**
 * The bundles of a release, in dist, and their sizes: rappor.min.js (the whole client of browsers),
 * encoder.min.js, dialects.min.js and messages.min.js. Error messages are left out of them: an error has
 * its code, and the path of the field; messages.min.js has the sentences of states and problems. The
 * sources need no build, and have every sentence.
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

const root = fileURLToPath(new URL("..", import.meta.url));
export const ENTRIES = {
  rappor: "browser",
  encoder: "encoder",
  dialects: "dialects",
  messages: "messages",
};

// Properties that no application, no file and no platform knows: they get short names. A name that is
// also one of the platform's, such as `put`, must not be listed, unless the sources never use that of
// the platform, such as `read` of a stream.
const INTERNAL = new RegExp(
  `^(${[
    "above|below|texts|ones|bytes|digits|found|root", // encoder
    "read|names|write|move|remove|lock|witness|sweep|onStop|sayStop|openStorage|release", // storage and platform
    "outbox|storage|trying|drop|finish|readRetry|nextMoment|interrupt|waits", // outbox and sender
    "readEpoch|closed|isClosed|tick|record|counts|epoch|refusal|lastDay|shared", // recorder and status
    "check|identity|caps|total|sender", // identity and limits
  ].join("|")})$`,
);

// Getters of ours have no effects, and no function of ours is used as a constructor by accident.
const SMALL = {
  module: true,
  ecma: 2020,
  compress: {
    passes: 4,
    inline: 1,
    hoist_funs: true,
    pure_getters: true,
    unsafe_arrows: true,
    unsafe_methods: true,
    sequences: false,
  },
  mangle: { properties: { regex: INTERNAL, builtins: true } },
  format: { comments: false },
};

const CODES_ONLY =
  'export const explain = (code) => code; export const explainForgotten = () => "forgotten";';

const withoutSentences = {
  name: "without-sentences",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/][a-z0-9-]+\.js$/ }, async ({ path }) => {
      if (path.endsWith("messages.js")) return { contents: CODES_ONLY };
      const source = await readFile(path, "utf8");
      return { contents: source.replace(/,?\s*\bsentence`[^`]*`/g, ""), loader: "js" };
    });
  },
};

/** @returns {Promise<Record<string, { bytes: number, gzipped: number }>>} the size of each bundle */
export async function buildAll() {
  const sizes = {};
  for (const [name, entry] of Object.entries(ENTRIES)) {
    const { outputFiles } = await build({
      entryPoints: [`${root}src/${entry}.js`],
      outfile: `${root}dist/${name}.min.js`,
      bundle: true,
      format: "esm",
      target: "es2022",
      charset: "utf8",
      legalComments: "none",
      plugins: entry === "messages" ? [] : [withoutSentences],
      write: false,
    });
    const { code = "" } = await minify(outputFiles[0].text, SMALL);
    await mkdir(`${root}dist`, { recursive: true });
    await writeFile(`${root}dist/${name}.min.js`, code);
    sizes[name] = { bytes: Buffer.byteLength(code), gzipped: gzipSync(code, { level: 9 }).length };
  }
  return sizes;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(await buildAll()));
}
