import { isSluiceError, type Json, type ToolSpec } from "@sluice/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool, lazyTool } from "../../packages/core/src/gate/tool.ts";
import { bound, echoTool, toolCall, workspace } from "../support/gate.ts";

test("a tool shows a model the JSON Schema of its input and keeps its digest", () => {
  const tool = defineTool({
    name: "Greet",
    description: "Greets.",
    input: z.object({ name: z.string() }),
    effect: "read",
    subjects: () => [],
    execute: async ({ name }) => ({ ok: true, output: `hello ${name}` }),
  });
  expect(tool.inputSchema).toMatchObject({ type: "object", required: ["name"] });
  expect(tool.schemaDigest).toMatch(/^[0-9a-f]{64}$/);
});

test("an input is bound as the schema accepted it", async () => {
  const tool = defineTool({
    name: "Wait",
    description: "Waits.",
    input: z.object({ ms: z.number().default(5) }),
    effect: "read",
    subjects: () => [],
    execute: async ({ ms }) => ({ ok: true, output: ms }),
  });
  expect((await bound(tool, { extra: true })).input).toEqual({ ms: 5 });
});

test("a bound input cannot be exchanged, nor changed inside", async () => {
  const call = await bound(echoTool({ input: z.object({ a: z.array(z.number()) }) }), { a: [1] });
  for (const key of ["input", "question", "subjects", "execute"])
    expect(Reflect.set(call, key, { a: [2] })).toBe(false);
  expect(() => Object.assign(Object(call.input), { a: [2] })).toThrow(TypeError);
  expect(call.input).toEqual({ a: [1] });
});

test("an input that does not fit is refused with where and why", async () => {
  const tool = echoTool({ input: { type: "object", required: ["path"] } });
  expect(await tool.bind({})).toEqual({ ok: false, issues: [{ path: "$.path", message: expect.any(String) }] });
});

test("a tool that throws over what a call would touch has hit a limit", async () => {
  const tool = echoTool({
    subjects: () => {
      throw new Error("no such disk");
    },
  });
  const call = await bound(tool, {});
  expect(call.subjects(workspace, { env: {}, mayWrite: false })).toEqual([
    { kind: "refused", reason: expect.stringContaining("no such disk") },
  ]);
});

test("a tool that returns no list of subjects has hit a limit", async () => {
  const call = await bound(echoTool({ subjects: () => JSON.parse("null") }), {});
  expect(call.subjects(workspace, { env: {}, mayWrite: false })).toEqual([
    { kind: "refused", reason: expect.any(String) },
  ]);
});

test("a call's question is made when it is bound; one that cannot be made refuses the input", async () => {
  const ask = echoTool({
    effect: "ask",
    question: (input) => {
      if (JSON.stringify(input) === "{}") throw new Error("nothing to ask");
      // An undefined member counts as absent.
      return { question: "Which?", answer: Object({ type: "string", description: undefined }) };
    },
  });
  expect((await bound(ask, { a: 1 })).question).toEqual({ question: "Which?", answer: { type: "string" } });
  expect(await ask.bind({})).toMatchObject({
    ok: false,
    issues: [{ path: "$", message: expect.stringContaining("nothing to ask") }],
  });
});

test("a question that is not JSON refuses the input", async () => {
  const question = Object({ question: "Which?", answer: { type: "string", until: new Date(0) } });
  const ask = echoTool({ effect: "ask", question: () => question });
  expect(await ask.bind({})).toMatchObject({
    ok: false,
    issues: [{ message: expect.stringContaining("the question could not be made: it is not JSON: $.answer.until") }],
  });
});

test("what recover says is passed on, and a tool without it has none", async () => {
  expect(echoTool().recover).toBeUndefined();
  expect(await echoTool({ recover: () => "done" }).recover?.(null, toolCall())).toBe("done");
});

test.each([
  ["a name with a space", { name: "my tool" }, "name"],
  ["a name that begins with a digit", { name: "2fast" }, "name"],
  ["a name of 129 letters", { name: "a".repeat(129) }, "name"],
  ["a list for a name", { name: ["Read"] }, "name"],
  ["no description", { description: " " }, "description"],
  ["a description that is no text", { description: 42 }, "description"],
  ["an effect of its own", { effect: "delete" }, "effect"],
  ["no subjects", { subjects: null }, "subjects"],
  ["no execute", { execute: null }, "execute"],
  ["effect ask without a question", { effect: "ask" }, "question"],
])("a tool with %s is a definition error that says where", (_, wrong, where) => {
  const spec: Partial<ToolSpec> = JSON.parse(JSON.stringify(wrong));
  try {
    echoTool(spec);
    expect.unreachable();
  } catch (thrown) {
    expect(isSluiceError(thrown, "invalid_tool")).toBe(true);
    expect(isSluiceError(thrown) && thrown.detail).toMatchObject({ problems: [{ path: where }] });
  }
});

test("a definition error says what would be right, where there is something to say", () => {
  const spec: Partial<ToolSpec> = JSON.parse('{ "effect": "delete", "subjects": 1, "execute": 1 }');
  let detail: unknown;
  try {
    echoTool(spec);
  } catch (thrown) {
    detail = isSluiceError(thrown) ? thrown.detail : thrown;
  }
  expect(detail).toStrictEqual({
    problems: [
      { path: "effect", message: '"delete" is not an effect', suggestion: "read, write or ask" },
      {
        path: "subjects",
        message: "has to be a function",
        suggestion: "() => [] when the gate has nothing to compare",
      },
      { path: "execute", message: "has to be a function" },
    ],
  });
});

test("what is prepared is handed out only by a tool that prepares", async () => {
  expect(await bound(echoTool(), {})).not.toHaveProperty("prepare");
});

test("a name of 128 letters is a tool's name", () => {
  expect(echoTool({ name: "a".repeat(128) }).name).toHaveLength(128);
});

test("a call without a scene has no environment and may write nothing", async () => {
  const scenes: unknown[] = [];
  const tool = echoTool({
    subjects: (_input, _workspace, scene) => {
      scenes.push(scene);
      return [];
    },
  });
  const call = await bound(tool, {});
  call.subjects(workspace);
  call.subjects(workspace, { env: { CI: "1" }, mayWrite: true });
  expect(scenes).toEqual([
    { env: {}, mayWrite: false },
    { env: { CI: "1" }, mayWrite: true },
  ]);
});

const LATE: ToolSpec<Json> = {
  name: "Late",
  description: "Says what it was given.",
  input: { type: "object" },
  effect: "read",
  subjects: () => [],
  execute: async (input) => ({ ok: true, output: input }),
};

test("a tool whose code could not be loaded is loaded by its next call", async () => {
  let loads = 0;
  const late = lazyTool(LATE, async () => {
    loads += 1;
    if (loads === 1) throw new Error("too many open files");
    return LATE;
  });
  await expect(late.bind({})).rejects.toThrow("too many open files");
  for (const _again of [1, 2]) expect(await late.bind({})).toMatchObject({ ok: true });
  expect(loads).toBe(2);
});

test("a tool that is loaded late recovers as its code says, and without it the outcome is unknown", async () => {
  const recovers = lazyTool(LATE, async () => ({ ...LATE, recover: () => "done" }));
  expect(await recovers.recover?.(null, toolCall())).toBe("done");
  expect(await lazyTool(LATE, async () => LATE).recover?.(null, toolCall())).toBe("unknown");
});

test("a call is bound once its tool is ready", async () => {
  let isReady = false;
  const ready = async () => {
    isReady = true;
  };
  expect(await echoTool({ ready }).bind({})).toMatchObject({ ok: true });
  expect(isReady).toBe(true);
});

test("a tool says that it starts processes only if its spec does", () => {
  const spec = {
    name: "Lint",
    description: "Starts a linter.",
    input: { type: "object" },
    effect: "write",
    subjects: () => [],
    execute: async () => ({ ok: true, output: "" }),
  } as const;
  expect(defineTool({ ...spec, startsProcesses: true })).toHaveProperty("startsProcesses", true);
  expect(defineTool(spec)).not.toHaveProperty("startsProcesses");
});
