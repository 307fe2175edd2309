import { spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseSync } from "oxc-parser";
import { afterAll, describe, expect, test } from "vitest";

// What `npm run build` writes and users run: bundles, one file an entry, with chunks beside them.

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "sluice-bundles-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const packages = globSync("packages/*/dist", { cwd: root }).map((dist) => ({
  name: basename(dirname(dist)),
  dist: join(root, dist),
  files: globSync("*.js", { cwd: join(root, dist) }).sort(),
}));

/** The files of the packages that a program loads, by package, without the hashes of chunks. */
function loadedBy(program: string): readonly string[] {
  const spy = `import { registerHooks } from "node:module";
const urls = [];
registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
${program}
console.log(JSON.stringify(urls));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", spy], {
    cwd: join(root, "packages/cli"),
    encoding: "utf8",
  });
  if (stdout === "") throw new Error(stderr);
  const urls: readonly string[] = JSON.parse(stdout);
  return urls.flatMap((url) => {
    const [, name, file = ""] = /\/packages\/(\w+)\/dist\/(.*)$/.exec(url) ?? [];
    return name === undefined ? [] : [`${name}/${file.replace(/-[\w-]{8}\.js$/, ".js")}`];
  });
}

test("importing core and stages loads at most 12 files", () => {
  const loaded = loadedBy(`await import("@sluice/core"); await import("@sluice/stages");`);
  expect(loaded).toContain("stages/index.js");
  expect(loaded.length, loaded.join("\n")).toBeLessThanOrEqual(12);
});

test.each([
  ["@sluice/stages/environment-secrets", "stages/shared.js"],
  ["@sluice/tui/user", "tui/shared.js"],
  ["@sluice/view/words", "view/shared.js"],
  ["@sluice/view/text", "view/shared.js"],
])("the light entry %s does not load %s", (entry, heavy) => {
  const loaded = loadedBy(`await import(${JSON.stringify(entry)});`);
  expect(loaded.length).toBeGreaterThan(0);
  expect(loaded).not.toContain(heavy);
});

test("the worker that searches is one file", () => {
  const worker = packages.find(({ name }) => name === "stages")?.dist ?? "";
  expect(importsOf(join(worker, "grep-worker.js")).filter((name) => !name.startsWith("node:"))).toEqual([]);
});

describe.each(packages)("the bundles of $name", ({ dist, files }) => {
  test("import each other without cycles", () => {
    const chunks = new Map(
      files.map((file) => [file, importsOf(join(dist, file)).filter((name) => name.startsWith("./"))] as const),
    );
    const circle = (file: string, path: readonly string[]): readonly string[] | undefined => {
      if (path.includes(file)) return [...path, file];
      for (const next of chunks.get(file) ?? []) {
        const found = circle(next.slice(2), [...path, file]);
        if (found !== undefined) return found;
      }
      return undefined;
    };
    expect(files.flatMap((file) => circle(file, []) ?? [])).toEqual([]);
  });

  test("are ASCII and have no documentation", () => {
    const texts = files.map((file) => [file, readFileSync(join(dist, file), "utf8")] as const);
    expect(texts.filter(([, text]) => /[^\0-\x7f]/.test(text)).map(([file]) => file)).toEqual([]);
    expect(texts.filter(([, text]) => /^\s*\/\*\*/m.test(text)).map(([file]) => file)).toEqual([]);
  });

  test("have maps that lead to sources of the package", () => {
    const sources = files
      .filter((file) => /sourceMappingURL=/.test(readFileSync(join(dist, file), "utf8")))
      .flatMap((file) => {
        const map: { readonly sources: readonly string[] } = JSON.parse(
          readFileSync(join(dist, `${file}.map`), "utf8"),
        );
        return map.sources;
      });
    expect(sources.length).toBeGreaterThan(0);
    expect(sources.filter((source) => !/^\.\.\/src\/.*\.tsx?$/.test(source))).toEqual([]);
    expect(sources.filter((source) => globSync(source, { cwd: dist }).length === 0)).toEqual([]);
  });

  test("hold nothing of an earlier build", () => {
    const stems = new Set(
      globSync("**/*.{ts,tsx}", { cwd: join(dist, "../src") }).map((file) => file.replace(/\.tsx?$/, "")),
    );
    const declared = globSync("**/*.d.ts", { cwd: dist }).map((file) => file.replace(/\.d\.ts$/, ""));
    expect(declared.filter((stem) => !stems.has(stem))).toEqual([]);
    expect(globSync("*/**/*.js", { cwd: dist })).toEqual([]);
  });
});

test("a stack trace leads to the sources where Node reads source maps", () => {
  const program = `import { pipeline } from "@sluice/core"; try { pipeline({}); } catch (error) { console.log(error.stack); }`;
  const { stdout } = spawnSync(process.execPath, ["--enable-source-maps", "--input-type=module", "-e", program], {
    cwd: join(root, "packages/cli"),
    encoding: "utf8",
  });
  expect(stdout).toMatch(/packages\/core\/src\/definition\/[\w/-]+\.ts:\d+:\d+/);
});

test.each([
  ["--debug", { args: ["--debug"], env: {} }],
  ["SLUICE_DEBUG", { args: [], env: { SLUICE_DEBUG: "1" } }],
])("the command's stacks under %s lead to the sources", (_name, { args, env }) => {
  const command = join(root, "packages/cli/bin/sluice.js");
  const { stderr } = spawnSync(process.execPath, [command, "runs", "--no-such-option", ...args], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: folder, ...env },
  });
  expect(stderr).toMatch(/\(.*\/packages\/cli\/src\/program\.ts:\d+:\d+\)/);
  expect(stderr).not.toContain("/packages/cli/dist/");
});

test("sources find files of their package in two places only, where bundles find them too", () => {
  const relative = /new URL\([^()]*import\.meta\.url|import\.meta\.(?:dirname|filename)/;
  const found = globSync("packages/*/src/**/*.{ts,tsx}", { cwd: root }).filter((file) =>
    relative.test(readFileSync(join(root, file), "utf8")),
  );
  expect(found.sort()).toEqual(["packages/cli/src/options.ts", "packages/stages/src/tools/search/grep-builtin.ts"]);
});

test("a clone that was not built says so", () => {
  const cli = join(folder, "packages/cli");
  mkdirSync(cli, { recursive: true });
  cpSync(join(root, "packages/cli/bin"), join(cli, "bin"), { recursive: true });
  cpSync(join(root, "packages/cli/package.json"), join(cli, "package.json"));
  const { status, stderr } = spawnSync(process.execPath, [join(cli, "bin/sluice.js"), "runs"], { encoding: "utf8" });
  expect(stderr).toContain("it is not built yet: run `npm run build`");
  expect(status).toBe(4);
});

/** What a file imports when it is loaded. */
function importsOf(file: string): readonly string[] {
  const { module } = parseSync(pathToFileURL(file).href, readFileSync(file, "utf8"));
  const exported = module.staticExports.flatMap(({ entries }) =>
    entries.flatMap((entry) => entry.moduleRequest?.value ?? []),
  );
  return [...module.staticImports.map((one) => one.moduleRequest.value), ...exported];
}
