import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadWorkflow } from "@sluice/workflows";
import { afterAll, expect, test } from "vitest";
import { loadDocument, loadTexts, ruleLines } from "../support/workflows.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-workflows-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A document that invokes others, by event. */
function invoking(id: string, ...invoked: readonly string[]): string {
  const on = Object.fromEntries(invoked.map((name, index) => [`RUN_${index}`, { invoke: name, on_complete: "done" }]));
  const states = { a: { allowed_tools: [], on: { ...on, DONE: "done" } }, done: { type: "final" } };
  return JSON.stringify({ id, initial: "a", states }, null, 2);
}

test("invoked workflows are found by name or by relative path, loaded once, and part of the pipeline", async () => {
  const texts = {
    "flows/main.json": invoking("main", "./parts/one.json", "../two.json", "three", "parts/one.json"),
    "flows/parts/one.json": invoking("one", "../../two.json"),
    "two.json": invoking("two"),
    "named/three.yaml": invoking("three"),
  };
  const find = async (name: string): Promise<string | undefined> => (name === "three" ? "named/three.yaml" : undefined);
  const loaded = await loadTexts("flows/main.json", texts, { find });
  expect(ruleLines(loaded)).toEqual([]);
  const invoked = [...(loaded.pipeline?.spec.pipelines.values() ?? [])].map(({ id }) => id);
  expect(invoked).toEqual(["one", "two", "three", "one"]);
  expect(loaded.files.map(({ path }) => path).toSorted()).toEqual(Object.keys(texts).toSorted());
  for (const { path, digest, text } of loaded.files) {
    expect(text).toBe(Object.entries(texts).find(([name]) => name === path)?.[1]);
    expect(digest).toBe(createHash("sha256").update(text).digest("hex"));
  }
});

test("a run calls an invoked workflow by its file, and by its path where two files have one name", async () => {
  const idsOf = async (...names: readonly string[]) => {
    const texts = Object.fromEntries(
      names.map((name, index) => [`w/${name}`.replace("/./", "/"), invoking(`id${index}`)]),
    );
    const loaded = await loadTexts("w/main.json", { ...texts, "w/main.json": invoking("main", ...names) });
    return [...(loaded.pipeline?.spec.pipelines.keys() ?? [])];
  };
  expect(await idsOf("./test-suite.json", "parts/lint.yaml")).toEqual(["test-suite", "lint"]);
  expect(await idsOf("a/suite.json", "b/suite.json")).toEqual(["a-suite-json", "b-suite-json"]);
});

test("what an invoked workflow does is part of the fingerprint", async () => {
  const print = async (child: string): Promise<string | undefined> =>
    (await loadTexts("w.json", { "w.json": invoking("w", "c.json"), "c.json": child })).pipeline?.spec.fingerprint;
  const same = await print(invoking("c"));
  expect(await print(invoking("c"))).toBe(same);
  expect(await print(invoking("c").replace('"a": {', '"a": { "instructions": "Other work.",'))).not.toBe(same);
});

test("workflows that invoke each other in a circle are an error that shows the circle", async () => {
  const loaded = await loadTexts("a.json", {
    "a.json": invoking("a", "./b.json"),
    "b.json": invoking("b", "./a.json"),
  });
  expect(loaded.pipeline).toBeUndefined();
  expect(loaded.diagnostics.map(({ rule, file, line, message }) => [rule, file, line, message])).toEqual([
    ["invoke-cycle", "b.json", 9, "The workflow invokes itself: a.json → b.json → a.json."],
  ]);
  const self = await loadTexts("a.json", { "a.json": invoking("a", "./a.json") });
  expect(ruleLines(self)).toEqual(["invoke-cycle states.a.on.RUN_0.invoke"]);
});

test("a workflow of the same id cannot be invoked, which is reported where it is named", async () => {
  const texts = { "w.json": invoking("w", "./other.json"), "other.json": invoking("w") };
  const { diagnostics, pipeline } = await loadTexts("w.json", texts);
  expect(diagnostics.map(({ file, line, message }) => [file, line, message])).toEqual([
    ["w.json", 9, expect.stringContaining("w would invoke itself")],
  ]);
  expect(pipeline).toBeUndefined();
});

test("workflows are invoked eight levels deep at most", async () => {
  const chain = (length: number): Readonly<Record<string, string>> =>
    Object.fromEntries(
      Array.from({ length }, (_, index) => [
        `w${index}.json`,
        index === length - 1 ? invoking(`w${index}`) : invoking(`w${index}`, `./w${index + 1}.json`),
      ]),
    );
  expect(ruleLines(await loadTexts("w0.json", chain(8)))).toEqual([]);
  expect(ruleLines(await loadTexts("w0.json", chain(9)))).toEqual(["invoke-cycle states.a.on.RUN_0.invoke"]);
});

test("a workflow of too many files is refused", async () => {
  const names = Array.from({ length: 80 }, (_, index) => `p${index}.json`);
  const texts = Object.fromEntries(names.map((name) => [name, invoking(name.slice(0, -5))]));
  const loaded = await loadTexts("w.json", { ...texts, "w.json": invoking("w", ...names) });
  expect(loaded.pipeline).toBeUndefined();
  expect(loaded.files).toHaveLength(64);
  expect(loaded.diagnostics[0]?.message).toContain("more than 64 files");
});

test("a workflow that is not found is reported where it is named; an absolute path is none", async () => {
  for (const name of ["./missing.json", "unknown", "/etc/passwd", "/etc/w.json"]) {
    const loaded = await loadTexts("w.json", { "w.json": invoking("w", name) });
    expect(loaded.diagnostics.map(({ rule, line, column }) => [rule, line, column])).toEqual([
      ["invoke-unknown", 9, 21],
    ]);
  }
});

test("the mistakes of an invoked workflow are reported in its file, after those of the file that invokes it", async () => {
  const broken = invoking("c").replace('"DONE"', '"DOEN": "nowhere", "DONE"');
  const main = invoking("w", "./c.json").replace('"initial": "a"', '"initial": "b"');
  const loaded = await loadTexts("w.json", { "w.json": main, "c.json": broken });
  expect(loaded.diagnostics.map(({ rule, file }) => `${rule} ${file}`)).toEqual([
    "unknown-target w.json",
    "unknown-target c.json",
  ]);
  expect(loaded.pipeline).toBeUndefined();
});

test("a document of no known format is one error", async () => {
  for (const text of ["- a\n- b", "name: x", '"text"', "12"]) {
    const loaded = await loadTexts("w.yaml", { "w.yaml": text });
    expect(ruleLines(loaded)).toEqual(["unknown-format "]);
    expect(loaded.format).toBeUndefined();
    expect(loaded.files).toHaveLength(1);
  }
});

test("a file of the disk loads with its digest", async () => {
  const path = join(folder, "w.json");
  writeFileSync(path, invoking("w"));
  const loaded = await loadWorkflow(path);
  expect(loaded.pipeline?.id).toBe("w");
  expect(loaded.files.map((file) => file.path)).toEqual([path]);
});

test("a file of 50 MB is one error, and is not read whole", async () => {
  const path = join(folder, "large.json");
  const file = openSync(path, "w");
  ftruncateSync(file, 50_000_000);
  closeSync(file);
  const before = process.memoryUsage().arrayBuffers;
  const loaded = await loadWorkflow(path);
  expect(ruleLines(loaded)).toEqual(["file-size "]);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(5_000_000);
});

test("what is not a text file is one error: missing, a folder, a pipe, other bytes", async () => {
  mkdirSync(join(folder, "empty"));
  execFileSync("mkfifo", [join(folder, "pipe")]);
  writeFileSync(join(folder, "latin1.json"), Buffer.from([0x7b, 0xe4, 0x7d]));
  for (const name of ["none.json", "empty", "pipe", "latin1.json"])
    expect(ruleLines(await loadWorkflow(join(folder, name))), name).toEqual(["file-missing "]);
});

test("a file with hundreds of mistakes lists 200 and says how many there are", async () => {
  const targets = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`E${index}`, `no${index}`]));
  const states = { a: { allowed_tools: [], on: { ...targets, DONE: "done" } }, done: { type: "final" } };
  const text = JSON.stringify({ id: "w", initial: "a", states });
  const { diagnostics } = await loadTexts("w.json", { "w.json": text });
  expect(diagnostics).toHaveLength(201);
  expect(diagnostics.at(-1)?.message).toContain("100 more");
});

test("a workflow of hundreds of forks loads in the time that a test has", async () => {
  const count = 400;
  const name = (index: number): string => `s${index % count}`;
  const working = Array.from({ length: count }, (_, index): [string, object] => {
    const branches = {
      a: { initial: name(index), terminal: name(index + 1) },
      b: { initial: name(index), terminal: name(index + 2) },
    };
    const on = {
      NEXT: index + 1 < count ? name(index + 1) : "done",
      FORK: { fork: { branches, on_complete: name(3 * index), on_fail: "failed" } },
    };
    return [name(index), { allowed_tools: [], on }];
  });
  const ends = { done: { type: "final", outcome: "completed" }, failed: { type: "final", outcome: "failed" } };
  const states = { ...Object.fromEntries(working), ...ends };
  const { diagnostics } = await loadDocument({ id: "w", initial: "s0", states });
  expect(diagnostics).toEqual([]);
});
