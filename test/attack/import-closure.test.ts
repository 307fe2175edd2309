import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ProjectStep } from "../support/project-steps.ts";

const SWAPS = join(import.meta.dirname, "../fixtures/command/swaps.ts");
const OPENS = join(import.meta.dirname, "../fixtures/command/opens.ts");

/** Runs each list of steps in a process of its own over a new folder. `{{mark}}` in a text is code that leaves a mark. */
function outcomesOf(...processes: readonly (readonly ProjectStep[])[]): {
  readonly outcomes: readonly string[];
  readonly marked: boolean;
} {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "sluice-closure-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  mkdirSync(join(base, "work"));
  const mark = join(base, "marked");
  const code = `process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(mark)}, "");`;
  const outcomes = processes.flatMap((steps): readonly string[] => {
    const text = JSON.stringify(steps).replaceAll("{{mark}}", JSON.stringify(code).slice(1, -1));
    const args = ["--no-warnings", OPENS, join(base, "work"), join(base, "home"), text];
    return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" }));
  });
  return { outcomes, marked: existsSync(mark) };
}
const write = (path: string, content: string): ProjectStep => ({ write: [path, content] });
const config = (content: string): ProjectStep => write("sluice.config.ts", content);
const TRUST = { open: "trust" } as const;
const PLAIN = { open: "plain" } as const;

/** How a config reaches a module of its project, and the module. */
const WAYS: Readonly<Record<string, readonly [path: string, steps: readonly ProjectStep[]]>> = {
  "by a static import of TypeScript": ["src/tool.ts", [config('import "./src/tool.ts";\nexport default {};\n')]],
  "by an import that means the source of a compiled file": [
    "src/tool.ts",
    [config('import "./src/tool.js";\nexport default {};\n')],
  ],
  "by an import without an ending": ["src/tools/index.ts", [config('import "./src/tools";\nexport default {};\n')]],
  "through another module": [
    "src/inner.mjs",
    [config('import "./src/tool.ts";\nexport default {};\n'), write("src/tool.ts", 'export * from "./inner.mjs";\n')],
  ],
  "by a dynamic import": ["src/tool.mjs", [config('await import("./src/tool.mjs");\nexport default {};\n')]],
  "by a dynamic import of a computed name": [
    "src/tool.mjs",
    [config('await import(["./src/to", "ol.mjs"].join(""));\nexport default {};\n')],
  ],
  "by a hook that has not run yet": [
    "src/tool.mjs",
    [config('export default { onCall: async () => { await import("./src/tool.mjs"); } };\n')],
  ],
  "by createRequire": [
    "src/tool.cjs",
    [
      config(
        'import { createRequire } from "node:module";\nconst need = createRequire(import.meta.url);\nneed("./src/tool.cjs");\nexport default {};\n',
      ),
    ],
  ],
  "by require in CommonJS": [
    "src/inner.cjs",
    [
      config('import "./src/tool.cjs";\nexport default {};\n'),
      write("src/tool.cjs", 'module.exports = require("./inner.cjs");\n'),
    ],
  ],
  "by the path that import.meta.resolve returns": [
    "src/tool.mjs",
    [config('await import(import.meta.resolve("./src/tool.mjs"));\nexport default {};\n')],
  ],
  "as data": [
    "src/data.json",
    [config('import data from "./src/data.json" with { type: "json" };\nexport default data;\n')],
  ],
  "by a worker": [
    "src/worker.mjs",
    [
      config(
        'import { Worker } from "node:worker_threads";\nexport default { onCall: async () => void new Worker(new URL("src/worker.mjs", import.meta.url)) };\n',
      ),
    ],
  ],
  "as hooks of Node": [
    "src/hooks.mjs",
    [
      config(
        'import { register } from "node:module";\nexport default { onCall: async () => register("./src/hooks.mjs", import.meta.url) };\n',
      ),
    ],
  ],
  "by a name in its manifest": [
    "src/tool.mjs",
    [
      write("package.json", '{ "imports": { "#tool": "./src/tool.mjs" } }'),
      config('import "#tool";\nexport default {};\n'),
    ],
  ],
  "by a package of the workspace, which is linked among the installed ones": [
    "lib/index.js",
    [
      write("lib/package.json", '{ "name": "lib", "type": "module", "exports": { "import": "./index.js" } }'),
      { link: ["node_modules/lib", "../lib"] },
      config('import "lib";\nexport default {};\n'),
    ],
  ],
  "from a pipeline file": [
    "src/tool.mjs",
    [config("export default {};\n"), write(".sluice/pipelines/p.ts", 'import "../../src/tool.mjs";\n')],
  ],
};

describe.each(Object.entries(WAYS))("a module of the project that is reached %s", (_way, [path, steps]) => {
  const [first, second] = path.endsWith(".json") ? ["{}", '{ "mode": "yolo" }'] : ["", "{{mark}}\n"];

  test("loads once it is trusted, and needs trust again after it changed", () => {
    const { outcomes, marked } = outcomesOf([
      write(path, first),
      ...steps,
      PLAIN,
      TRUST,
      PLAIN,
      write(path, second),
      PLAIN,
    ]);
    expect(outcomes.slice(0, 3)).toEqual(["not loaded", "loaded", "loaded"]);
    expect(outcomes[3]).toContain("folder_untrusted");
    expect(outcomes[3]).toContain(path);
    expect(marked).toBe(false);
  });
});

/** Code that imports another file than the one that was trusted, although no trusted file changed. */
const ELSEWHERE: Readonly<Record<string, readonly [steps: readonly ProjectStep[], change: ProjectStep]>> = {
  "a computed name": [
    [
      write("which.txt", "good"),
      config(
        'import { readFileSync } from "node:fs";\nconst which = readFileSync(new URL("which.txt", import.meta.url), "utf8");\nawait import("./src/".concat(which, ".mjs"));\nexport default {};\n',
      ),
    ],
    write("which.txt", "evil"),
  ],
  "a manifest": [
    [
      write("package.json", '{ "imports": { "#tool": "./src/good.mjs" } }'),
      config('import "#tool";\nexport default {};\n'),
    ],
    write("package.json", '{ "imports": { "#tool": "./src/evil.mjs" } }'),
  ],
  "a link": [
    [{ link: ["tool.mjs", "src/good.mjs"] }, config('import "./tool.mjs";\nexport default {};\n')],
    { link: ["tool.mjs", "src/evil.mjs"] },
  ],
  "a linked package": [
    [
      write("lib/package.json", '{ "type": "module", "exports": "./index.js" }'),
      write("lib/index.js", ""),
      write("other/package.json", '{ "type": "module", "exports": "./index.js" }'),
      write("other/index.js", "{{mark}}\n"),
      { link: ["node_modules/lib", "../lib"] },
      config('import "lib";\nexport default {};\n'),
    ],
    { link: ["node_modules/lib", "../other"] },
  ],
  "a file that is found first": [
    [write("src/tool.js", ""), config('import "./src/tool";\nexport default {};\n')],
    write("src/tool.ts", "{{mark}}\n"),
  ],
};

test.each(Object.entries(ELSEWHERE))("a module that only %s leads to now is refused", (_way, [steps, change]) => {
  const files = [write("src/good.mjs", ""), write("src/evil.mjs", "{{mark}}\n")];
  const { outcomes, marked } = outcomesOf([...files, ...steps, TRUST, PLAIN], [change, PLAIN]);
  expect(outcomes.slice(0, 2)).toEqual(["loaded", "loaded"]);
  expect(outcomes[2]).toContain("folder_untrusted");
  expect(marked).toBe(false);
});

describe("a module that is first imported in the middle of a run", () => {
  const lazy = config('export default { onCall: async () => (await import("./src/tool.mjs")).answer };\n');
  const tool = write("src/tool.mjs", 'export const answer = "trusted";\n');

  test("loads if it is part of the code that was trusted", () => {
    const { outcomes } = outcomesOf([tool, lazy, TRUST, { open: "plain, and call" }]);
    expect(outcomes).toEqual(["loaded", "called: trusted"]);
  });

  test("is refused if it changed since", () => {
    const evil = ["src/tool.mjs", "{{mark}}\nexport const answer = 1;\n"] as const;
    const { outcomes, marked } = outcomesOf([tool, lazy, TRUST, { open: "plain, and call", before: evil }]);
    expect(outcomes[1]).toContain("folder_untrusted");
    expect(marked).toBe(false);
  });

  test("is refused if only a computed name leads to it, also in the process that was given trust", () => {
    const computed = config('export default { onCall: async () => await import("./src/".concat("tool.mjs")) };\n');
    const { outcomes, marked } = outcomesOf([
      write("src/tool.mjs", "{{mark}}\n"),
      computed,
      { open: "trust, and call" },
      { open: "plain, and call" },
    ]);
    for (const outcome of outcomes) expect(outcome).toContain("is imported during the run");
    expect(marked).toBe(false);
  });
});

test("a native addon outside of installed packages is refused, since Node runs it from its file", () => {
  const { outcomes } = outcomesOf([
    write("src/addon.node", "no addon"),
    config(
      'import { createRequire } from "node:module";\ncreateRequire(import.meta.url)("./src/addon.node");\nexport default {};\n',
    ),
    TRUST,
  ]);
  expect(outcomes[0]).toContain("is a native addon, which trust cannot cover");
});

test("what runs is what was digested, although the file is another one by then", () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "sluice-closure-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const out = execFileSync(process.execPath, ["--no-warnings", SWAPS, base], { encoding: "utf8" });
  expect(JSON.parse(out)).toEqual(
    Object.fromEntries(
      ["a.mjs", "a.ts", "a.cjs", "a.cts", "a.json", "inner.cjs", "inner.json"].map((file) => [file, "digested"]),
    ),
  );
});
