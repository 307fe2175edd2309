import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  backToInterrupted,
  done,
  type FileEdit,
  field,
  type Json,
  type JsonObject,
  pipeline,
  type StateLimits,
  type Tool,
  type ToolCall,
  type ToolResult,
} from "@sluice/core";
import { nativeTools } from "@sluice/gateway";
import { createSession } from "@sluice/stages";
import { builtinTools } from "@sluice/stages/runtime";
import { expect, onTestFinished, test } from "vitest";
import { toolCall } from "../../support/gate.ts";
import { caller, completed, dataOf, eventsOf, json, noModel, work, workExecutor } from "../../support/run-kit.ts";
import { tempFolder } from "../../support/tools.ts";

const never = async (): Promise<ToolResult> => {
  throw new Error("handed over");
};

function toolIn(tools: readonly Tool[], name: string): Tool {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined) throw new Error(`no ${name}`);
  return tool;
}

async function boundTo(tool: Tool, input: Json) {
  const bound = await tool.bind(input);
  if (!bound.ok) throw new Error(JSON.stringify(bound.issues));
  return bound;
}

function workspace() {
  const { root } = tempFolder();
  mkdirSync(join(root, "src"));
  writeFileSync(join(root, "src/a.ts"), "one\ntwo\nthree\n");
  writeFileSync(join(root, "src/crlf.ts"), "one\r\ntwo\r\n");
  symlinkSync("src", join(root, "link"));
  symlinkSync("/etc", join(root, "out"));
  return { root };
}

test.each([
  ["Read", { file_path: "P" }],
  ["Edit", { file_path: "P", old_string: "one", new_string: "1" }],
  ["Write", { file_path: "P", content: "x" }],
  ["Grep", { pattern: "x", path: "P" }],
  ["Glob", { pattern: "*", path: "P" }],
] as const)("%s touches for the gate what the tool of a stage touches", async (name, input) => {
  const place = workspace();
  const scene = { env: {}, mayWrite: false };
  const fixed = (path: string): Json => JSON.parse(JSON.stringify(input).replace('"P"', JSON.stringify(path)));
  for (const path of [
    "src/a.ts",
    "src",
    "link/a.ts",
    "out/passwd",
    "new/deep/b.ts",
    ".",
    "/etc/passwd",
    ".git/config",
    "/dev/null",
  ]) {
    const absolute = path.startsWith("/") ? path : join(place.root, path);
    const own = await boundTo(toolIn(builtinTools(), name), fixed(absolute));
    const native = await boundTo(toolIn(nativeTools({ handOver: never }), name), fixed(absolute));
    expect(native.subjects(place, scene)).toEqual(own.subjects(place, scene));
  }
});

test("a search, and a read of many files, touch all below the folders that they name", async () => {
  const { root } = workspace();
  const all = { kind: "path", real: join(root, "src"), access: "read", tree: true };
  for (const [name, input] of [
    ["Grep", { pattern: "x", path: root, more: [join(root, "src")] }],
    ["Glob", { pattern: "*", path: root, more: [join(root, "src")] }],
    ["Read", { folders: [root, join(root, "src")] }],
  ] as const) {
    const bound = await boundTo(toolIn(nativeTools({ handOver: never }), name), input);
    expect(bound.subjects({ root })).toEqual([{ kind: "path", real: root, access: "read" }, all]);
  }
});

async function measured(root: string, name: string, input: Json): Promise<readonly FileEdit[] | string> {
  const bound = await boundTo(toolIn(nativeTools({ handOver: never }), name), input);
  const place = { root };
  const judged = bound.subjects(place);
  const result = await bound.measure?.({ workspace: place, notes: {}, judged });
  if (result === undefined) return "not measured";
  return result.ok ? result.edits.map((edit) => ({ ...edit, real: edit.real.slice(root.length + 1) })) : result.reason;
}

test("the lines of each form of a change are counted before the host makes it", async () => {
  const { root } = workspace();
  const file_path = join(root, "src/a.ts");
  const edit = (more: JsonObject): Json => ({ file_path, ...more });
  expect(await measured(root, "Edit", edit({ old_string: "two\n", new_string: "2\n2b\n" }))).toEqual([
    { real: "src/a.ts", removed: 1, added: 2 },
  ]);
  expect(await measured(root, "Write", edit({ content: "one\n" }))).toEqual([
    { real: "src/a.ts", removed: 2, added: 0 },
  ]);
  expect(await measured(root, "Write", { file_path: join(root, "b.ts"), content: "1\n2\n" })).toEqual([
    { real: "b.ts", removed: 0, added: 2 },
  ]);
  expect(
    await measured(
      root,
      "Edit",
      edit({
        edits: [
          { old_string: "one", new_string: "two" },
          { old_string: "two", new_string: "x", replace_all: true },
        ],
      }),
    ),
  ).toEqual([{ real: "src/a.ts", removed: 2, added: 2 }]);
  expect(
    await measured(root, "Edit", {
      file_path: join(root, "src/crlf.ts"),
      old_string: "one\ntwo",
      new_string: "one\n2",
    }),
  ).toEqual([{ real: "src/crlf.ts", removed: 1, added: 1 }]);
  const patch = [
    "*** Begin Patch",
    "*** Update File: src/a.ts",
    "@@",
    " one",
    "-two",
    "+2",
    "+2b",
    "*** Add File: c.ts",
    "+x",
    "*** Delete File: src/crlf.ts",
    "*** End Patch",
  ].join("\n");
  expect(await measured(root, "Write", { patch, folder: root })).toEqual([
    { real: "src/a.ts", removed: 1, added: 2 },
    { real: "c.ts", removed: 0, added: 1 },
    { real: "src/crlf.ts", removed: 2, added: 0 },
  ]);
  const move = "*** Begin Patch\n*** Update File: src/a.ts\n*** Move to: src/b.ts\n@@\n-one\n+1\n*** End Patch";
  expect(await measured(root, "Write", { patch: move, folder: root })).toEqual([
    { real: "src/a.ts", removed: 3, added: 0 },
    { real: "src/b.ts", removed: 1, added: 4 },
  ]);
});

test("a change that cannot be predicted is not counted as none", async () => {
  const { root } = workspace();
  const file_path = join(root, "src/a.ts");
  expect(await measured(root, "Edit", { file_path, old_string: "TWO", new_string: "2" })).toContain("does not occur");
  expect(await measured(root, "Edit", { file_path, cell: { new_source: "x" } })).toContain("cannot be counted");
  expect(await measured(root, "Edit", { file_path: join(root, "none"), old_string: "x", new_string: "2" })).toContain(
    "does not occur",
  );
});

/** Calls native tools in a run, as an agent's host would carry them out. */
async function runOf(
  root: string,
  calls: readonly (readonly [tool: string, input: Json])[],
  host: (call: ToolCall, input: Json) => ToolResult,
  limits: StateLimits = {},
) {
  const outputs: Json[] = [];
  const session = createSession({
    model: noModel,
    env: {},
    cwd: root,
    mode: "yolo",
    sandbox: "off",
    executors: [workExecutor],
    tools: nativeTools({ handOver: async (call, input) => host(call, input) }),
  });
  onTestFinished(() => session.close());
  const one = pipeline({
    id: "calls",
    input: { type: "object" },
    interrupts: { REVIEW: { files: "src/**", target: "review" } },
    stages: {
      work: work<Json, unknown>({
        limits,
        act: async (scope) => {
          const call = caller(scope);
          for (const [name, input] of calls) outputs.push(await call(name, input));
          return completed(null);
        },
      }),
      review: work<Json, unknown>({ act: ({ ctx }) => completed(json(ctx.input)) }),
    },
    initial: "work",
    transitions: [
      { from: "work", on: "success", to: { stages: [], execution: "sequential" } },
      { from: "review", on: "success", to: backToInterrupted() },
      { from: "review", on: "failure", to: done("failed") },
    ],
  });
  const run = session.start(one, {});
  expect(await run).toMatchObject({ status: "completed" });
  const events = await eventsOf(session.host, run.runId);
  return { outputs, interrupts: dataOf(events, "interrupt.started").map(({ files }) => files) };
}

test("what a host's command changes starts the interrupts of the workflow", async () => {
  const { root } = workspace();
  const bash = (command: string): readonly [string, Json] => ["Bash", { command, folder: root }];
  const { interrupts } = await runOf(root, [bash("touch x"), bash("make a"), bash("rm b")], (_call, input) => {
    const command = String(field(input, "command"));
    if (command.includes("make")) writeFileSync(join(root, "src/new.ts"), "x");
    if (command.includes("rm")) rmSync(join(root, "src/a.ts"));
    return { ok: true, output: "" };
  });
  expect(interrupts).toEqual([["src/new.ts"], ["src/a.ts"]]);
});

test("an edit that its host reports as failed still starts the interrupts of what it changed", async () => {
  const { root } = workspace();
  const file_path = join(root, "src/a.ts");
  const { interrupts } = await runOf(root, [["Write", { file_path, content: "x\n" }]], () => {
    writeFileSync(file_path, "x\n");
    return { ok: false, output: "it failed" };
  });
  expect(interrupts).toEqual([["src/a.ts"]]);
});

test("limits of a state count the edits of a host, and its commands may only read there", async () => {
  const { root } = workspace();
  const file_path = join(root, "src/a.ts");
  const handed: Json[] = [];
  const { outputs } = await runOf(
    root,
    [
      ["Edit", { file_path, old_string: "one", new_string: "1" }],
      ["Edit", { file_path, old_string: "two", new_string: "2" }],
      ["Edit", { file_path, old_string: "three", new_string: "3" }],
      ["Bash", { command: "touch b", folder: root }],
    ],
    (_call, input) => {
      handed.push(input);
      return { ok: true, output: "done" };
    },
    { maxEditLines: 2 },
  );
  expect(handed).toHaveLength(2);
  expect(outputs.map((output) => field(output, "cause"))).toEqual([undefined, undefined, "limit", "limit"]);
});

test("a line whose files have changed since it was judged is not handed over", async () => {
  const place = workspace();
  const bash = await boundTo(toolIn(nativeTools({ handOver: never }), "Bash"), {
    command: "cat src/*.ts",
    folder: place.root,
  });
  const judged = bash.subjects(place);
  writeFileSync(join(place.root, "src/z.ts"), "");
  await expect(bash.execute({ ...toolCall(), workspace: place, judged })).resolves.toMatchObject({
    ok: false,
    output: { code: "path_changed" },
  });
});
