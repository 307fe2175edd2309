import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";

const command = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "sluice-loading-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const spy = join(folder, "spy.mjs");
writeFileSync(
  spy,
  `import { writeSync } from "node:fs";
import { registerHooks } from "node:module";
const urls = [];
registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
process.on("exit", () => writeSync(3, urls.join("\\n")));
`,
);

function loadedBy(...args: readonly string[]): readonly string[] {
  const { output } = spawnSync(process.execPath, ["--import", pathToFileURL(spy).href, command, ...args], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    env: { PATH: process.env.PATH, HOME: folder, NO_COLOR: "1" },
  });
  return (output[3] ?? "").split("\n");
}

test("whoever looks at runs waits for no model, no tool and no screen to be loaded", () => {
  const loaded = loadedBy("runs");
  expect(loaded.some((url) => url.includes("/packages/sqlite/"))).toBe(true);
  expect(loaded.filter((url) => /\/stages\/dist\/(?:index|shared)|node_modules\/(?:ai|ink|zod)\//.test(url))).toEqual(
    [],
  );
});
