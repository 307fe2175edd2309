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

const loadedBy = (...args: readonly string[]): readonly string[] => loadedWith(command, ...args);

function loadedWith(...args: readonly string[]): readonly string[] {
  const { output } = spawnSync(process.execPath, ["--import", pathToFileURL(spy).href, ...args], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    env: { PATH: process.env.PATH, HOME: folder, NO_COLOR: "1" },
  });
  return (output[3] ?? "").split("\n");
}

test("a command that looks at runs waits for no model, no tool and no screen to be loaded", () => {
  const loaded = loadedBy("runs");
  expect(loaded.some((url) => url.includes("/packages/sqlite/"))).toBe(true);
  expect(loaded.filter((url) => /\/stages\/dist\/(?:index|shared)|node_modules\/(?:ai|ink|zod)\//.test(url))).toEqual(
    [],
  );
});

const LIBRARIES = /node_modules\/(zod|ajv|ai|diff|picomatch|p-queue|@ai-sdk\/(?!provider\/)[a-z-]+)\//;
const librariesOf = (loaded: readonly string[]): readonly string[] => [
  ...new Set(loaded.flatMap((url) => LIBRARIES.exec(url)?.[1] ?? [])),
];

test("importing core and stages loads at most twelve files of ours, and no library that a first run can do without", () => {
  const entries = ["core", "stages"].map(
    (name) => new URL(`../../packages/${name}/dist/index.js`, import.meta.url).href,
  );
  const program = entries.map((entry) => `import ${JSON.stringify(entry)};`).join("\n");
  const loaded = loadedWith("--input-type=module", "--eval", program);
  const own = loaded.filter((url) => url.includes("/packages/"));
  expect(own.length).toBeGreaterThan(1);
  expect(own.length).toBeLessThanOrEqual(12);
  expect(librariesOf(loaded)).toEqual([]);
});

test("a first run in memory loads no further file of ours", () => {
  const program = fileURLToPath(new URL("../../bench/programs/sluice.mjs", import.meta.url));
  const loaded = loadedWith(program);
  const own = loaded.filter((url) => url.includes("/packages/"));
  expect(own.length).toBeGreaterThan(1);
  expect(own.length).toBeLessThanOrEqual(12);
  // Its own schemas are Zod's.
  expect(librariesOf(loaded)).toEqual(["zod"]);
});

test("the demo loads neither a schema library nor the AI SDK", () => {
  const libraries = librariesOf(loadedBy("demo", "--output-format", "json"));
  expect(libraries).toContain("diff");
  expect(libraries.filter((name) => /^(?:zod|ajv|ai|@ai-sdk)/.test(name))).toEqual([]);
});

test("only lines of text need libraries for letters, changes and Markdown; a view and words do without", () => {
  const librariesFor = (entry: string): readonly string[] => {
    const file = new URL(`../../packages/view/dist/${entry}.js`, import.meta.url).href;
    const loaded = loadedWith("--input-type=module", "--eval", `import ${JSON.stringify(file)};`);
    expect(loaded).toContain(file);
    return ["diff", "marked", "string-width"].filter((name) =>
      loaded.some((url) => url.includes(`/node_modules/${name}/`)),
    );
  };
  expect(librariesFor("text")).toEqual(["diff", "marked", "string-width"]);
  expect(librariesFor("index")).toEqual([]);
  expect(librariesFor("words")).toEqual([]);
});
