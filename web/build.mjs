// Builds the page into src/kvgauge/web/static (or the folder named by --out): the same bytes for the same sources.
import { build, context } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const at = process.argv.indexOf("--out");
const out = at > 0 ? resolve(process.argv[at + 1]) : join(here, "../src/kvgauge/web/static");

const options = {
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: out,
  bundle: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};

async function copyPlainFiles() {
  await mkdir(out, { recursive: true });
  for (const name of ["index.html", "theme.js", "icon.svg"]) {
    await copyFile(join(here, "src", name), join(out, name));
  }
}

await copyPlainFiles();
if (process.argv.includes("--watch")) {
  await (await context(options)).watch();
} else {
  await build(options);
}
