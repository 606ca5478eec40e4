/**
 * The bundles of a release, in dist: rappor.min.js (the whole client of browsers), encoder.min.js and
 * dialects.min.js; and their sizes. Error messages are left out of them: an error has its code, and the
 * path of the field. The sources need no build, and have every sentence.
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

const root = fileURLToPath(new URL("..", import.meta.url));
export const ENTRIES = { rappor: "browser", encoder: "encoder", dialects: "dialects" };

// Getters of ours have no effects, and no function of ours is used as a constructor by accident.
const SMALL = {
  module: true,
  ecma: 2020,
  compress: { passes: 4, pure_getters: true, unsafe_arrows: true, unsafe_methods: true, hoist_props: true },
  format: { comments: false },
};

const withoutSentences = {
  name: "without-sentences",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/][a-z0-9-]+\.js$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      return { contents: source.replace(/\bsentence`[^`]*`/g, '""'), loader: "js" };
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
      plugins: [withoutSentences],
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
