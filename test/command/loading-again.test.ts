import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";

const DRIVER = join(import.meta.dirname, "../fixtures/command/load-again.ts");

interface Step {
  readonly write?: Readonly<Record<string, string>>;
  readonly load: string;
}

/** What the loads of one process come to. */
function loads(files: Readonly<Record<string, string>>, steps: readonly Step[]): unknown {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-loads-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries({ "package.json": '{ "type": "module" }', ...files })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const options = ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning"];
  const said = execFileSync(process.execPath, [...options, DRIVER, folder, JSON.stringify(steps)], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  return JSON.parse(said);
}

const TWO = {
  "a.ts": 'import { deep } from "./helper.ts";\nexport const out: number[] = [1, deep];\n',
  "b.ts": 'import { deep } from "./helper.ts";\nexport const out: number[] = [2, deep];\n',
  "helper.ts": 'export { deep } from "./deep.ts";\n',
  "deep.ts": "export const deep: number = 1;\n",
};
const OF_A = ["a.ts", "deep.ts", "helper.ts"];
const OF_B = ["b.ts", "deep.ts", "helper.ts"];

describe("a file that is loaded again in one process", () => {
  test("is asked about with all that it is made of, each time", () => {
    const each = { out: [1, 1], asked: OF_A, files: OF_A };
    expect(loads(TWO, [{ load: "a.ts" }, { load: "a.ts" }])).toEqual([each, each]);
  });

  test("shares what it imports with another, and both are made of that", () => {
    expect(loads(TWO, [{ load: "a.ts" }, { load: "b.ts" }])).toEqual([
      { out: [1, 1], asked: OF_A, files: OF_A },
      { out: [2, 1], asked: OF_B, files: OF_B },
    ]);
  });

  test("is evaluated as it is by then, also when only what it imports was changed, and by whichever file that is seen", () => {
    const changed = { "deep.ts": "export const deep: number = 7;\n" };
    expect(loads(TWO, [{ load: "a.ts" }, { load: "b.ts", write: changed }, { load: "a.ts" }])).toMatchObject([
      { out: [1, 1] },
      { out: [2, 7], asked: OF_B, files: OF_B },
      { out: [1, 7], asked: OF_A, files: OF_A },
    ]);
    const back = { "deep.ts": TWO["deep.ts"] };
    expect(
      loads(TWO, [
        { load: "a.ts", write: changed },
        { load: "a.ts", write: back },
      ]),
    ).toMatchObject([{ out: [1, 7] }, { out: [1, 1] }]);
  });

  test("is tried again after it failed, and works once it is fixed", () => {
    const broken = { "deep.ts": 'export const deep = 1;\nthrow new Error("boom");\n' };
    expect(
      loads(TWO, [
        { load: "a.ts", write: broken },
        { load: "a.ts", write: { "deep.ts": TWO["deep.ts"] } },
      ]),
    ).toEqual([{ thrown: expect.stringContaining("boom") }, { out: [1, 1], asked: OF_A, files: OF_A }]);
    expect(
      loads(TWO, [
        { load: "a.ts", write: { "a.ts": "export const out = [;" } },
        { load: "a.ts", write: TWO },
      ]),
    ).toMatchObject([{ thrown: expect.stringContaining("a.ts cannot be loaded") }, { out: [1, 1] }]);
  });

  test("imports nothing late, whichever time it was loaded", () => {
    const late = { "late.ts": "", "a.ts": 'export const later = () => import("./late.ts");\n' };
    const second = { "a.ts": `${late["a.ts"]}// changed\n` };
    expect(loads(late, [{ load: "a.ts" }, { load: "a.ts" }, { load: "a.ts", write: second }])).toMatchObject([
      { late: "late.ts is late" },
      { late: "late.ts is late" },
      { late: "late.ts is late" },
    ]);
  });

  test("with CommonJS in it is loaded as long as that stays as it was, and says so when it does not", () => {
    const common = {
      "a.ts": 'import c from "./c.cjs";\nimport { deep } from "./deep.ts";\nexport const out = [c.own, deep];\n',
      "c.cjs": 'module.exports = { own: require("./inner.cjs").own };\n',
      "inner.cjs": "module.exports = { own: 1 };\n",
      "deep.ts": TWO["deep.ts"],
    };
    const all = ["a.ts", "c.cjs", "deep.ts", "inner.cjs"];
    const changed = { "inner.cjs": "module.exports = { own: 2 };\n" };
    const steps = [
      { load: "a.ts" },
      { load: "a.ts", write: { "deep.ts": "export const deep = 2;\n" } },
      { load: "a.ts", write: changed },
      { load: "a.ts", write: { "inner.cjs": common["inner.cjs"] } },
    ];
    expect(loads(common, steps)).toMatchObject([
      { out: [1, 1], asked: all, files: all },
      { out: [1, 2], asked: all, files: all },
      { thrown: expect.stringContaining("c.cjs is CommonJS") },
      { out: [1, 2], asked: all, files: all },
    ]);
  });

  test("finds its packages where they are, which are evaluated once", () => {
    const packages = {
      "a.ts": 'import { times } from "counted";\nexport const out = times;\n',
      "node_modules/counted/package.json": '{ "name": "counted", "type": "module", "exports": "./index.js" }',
      "node_modules/counted/index.js":
        "globalThis.times = (globalThis.times ?? 0) + 1;\nexport const times = globalThis.times;\n",
    };
    const changed = { "a.ts": `${packages["a.ts"]}// changed\n` };
    const each = { out: 1, asked: ["a.ts"], files: ["a.ts"] };
    expect(loads(packages, [{ load: "a.ts" }, { load: "a.ts", write: changed }])).toEqual([each, each]);
  });
});
