/**
 * The bundles of a release, in dist: rappor.min.js (the whole client of browsers), encoder.min.js and
 * dialects.min.js; and their sizes. Error messages are left out of them: an error has its code, and the
 * path of the field. The sources need no build, and have every sentence.
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
export const ENTRIES = { rappor: "browser", encoder: "encoder", dialects: "dialects" };

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
      minify: true,
      format: "esm",
      target: "es2022",
      charset: "utf8",
      legalComments: "none",
      plugins: [withoutSentences],
      write: false,
    });
    await mkdir(`${root}dist`, { recursive: true });
    await writeFile(`${root}dist/${name}.min.js`, outputFiles[0].contents);
    const gzipped = gzipSync(outputFiles[0].contents, { level: 9 }).length;
    sizes[name] = { bytes: outputFiles[0].contents.length, gzipped };
  }
  return sizes;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(await buildAll()));
}
