import {
  checkPipeline,
  done,
  type KindFacts,
  pipeline,
  pipelineShape,
  type State,
  type StateCommon,
  type StateExecutor,
  stage,
  state,
  to,
} from "@sluice/core";
import { createReport, partChanges, pipelineParts, readTemplate, schemaAt, stateSpec } from "@sluice/core/runtime";
import { createSession } from "@sluice/stages";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { mayNeed } from "../../packages/stages/src/tools/mcp/names.ts";
import { session, tool } from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const counted = { turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };

interface EchoOptions extends StateCommon<Record<never, never>, undefined, unknown> {
  readonly text: string;
  readonly voice?: () => string;
}

/** A kind of the user's own, made like stage(). */
function echo({ text, voice, ...common }: EchoOptions, facts: KindFacts = {}): State<unknown, undefined> {
  const report = createReport();
  const template = readTemplate(text);
  if (!template.ok) for (const { message, suggestion } of template.faults) report.add("text", message, suggestion);
  const spec = stateSpec("echo", common, {
    keys: ["text", "voice"],
    problems: report.problems,
    options: { text, voice },
    output: schemaAt(report, "output", z.object({ said: z.string() })),
    templates: { text: template.ok ? template.value.references : [] },
    parts: { text },
    ...facts,
  });
  return { kind: "echo", spec };
}
function alone(one: State<unknown, undefined>) {
  return pipeline({ id: "alone", input, stages: { one }, initial: "one", next: { one: ({ output }) => done(output) } });
}
/** As a program in JavaScript could. */
const loose = (options: object): State<unknown, undefined> => Reflect.apply(echo, undefined, [options]);

describe("a kind of the user's own", () => {
  test("reports the problems of its options, and the names it does not know, with those of all states", () => {
    const broken = () => alone(loose({ text: "{{task}}", voise: () => "", allowedTools: ["!"] }));
    expect(broken).toThrow(
      /stages\.one\.text: \{\{task\}\} does not start with ctx[\s\S]*stages\.one\.voise: .*voice[\s\S]*stages\.one\.allowedTools\[0\]/,
    );
  });

  test("has its templates checked against the input, and against the outputs of states of any kind", () => {
    const define = () =>
      pipeline({
        id: "two",
        input,
        stages: { one: echo({ text: "{{ctx.run.input.tusk}}" }), two: echo({ text: "{{ctx.upstream.one.sad}}" }) },
        initial: "one",
        next: { one: () => to("two"), two: () => done(1) },
      });
    expect(define).toThrow(
      /stages\.one\.text: .*ctx\.run\.input has task[\s\S]*stages\.two\.text: .*ctx\.upstream\.one has said/,
    );
  });

  test("decides what the fingerprint covers, and its changes are named", () => {
    const spec = (text: string, voice?: () => string) =>
      alone(echo(voice === undefined ? { text } : { text, voice })).spec;
    const before = spec("Hello");
    expect(spec("Hello", () => "deep").fingerprint).toBe(before.fingerprint);
    expect(spec("Goodbye").fingerprint).not.toBe(before.fingerprint);
    expect(partChanges(JSON.parse(JSON.stringify(pipelineParts(before))), pipelineParts(spec("Goodbye")))).toEqual([
      "state one: text changed from Hello to Goodbye",
    ]);
  });

  test("may have schemas and other data as parts", () => {
    const prints = [z.string(), z.number()].flatMap((field) =>
      [[1], [2]].map((data) => {
        const own = schemaAt(createReport(), "own", z.object({ field }));
        return alone(echo({ text: "Hello" }, { parts: { own, data: { data } } })).spec.fingerprint;
      }),
    );
    expect(new Set(prints).size).toBe(4);
  });

  test.each(["kind", "allowedTools", "hook setup"])("cannot hide a change behind a part named %s", (name) => {
    const options = { text: "Hello", allowedTools: ["Read"], setup: () => null };
    expect(() => alone(echo(options, { parts: { [name]: "same" } }))).toThrow(
      `two parts of one have the same name, ${name};`,
    );
  });

  test("needs JSON as options where it gives no parts", () => {
    const spec = stateSpec("echo", {}, { keys: [], problems: [], options: { voice: () => "deep" } });
    expect(() => alone({ kind: "echo", spec })).toThrow(/stages\.one\.options: is not JSON/);
  });

  test("shows its data in the graph, beside what core shows", () => {
    const { spec } = alone(echo({ text: "Hello" }, { shape: { every: "15m" } }));
    expect(pipelineShape(spec).states).toEqual([{ id: "one", kind: "echo", every: "15m" }]);
  });

  test("needs MCP servers outside its envelope only where it may call their tools", () => {
    const spec = (facts: KindFacts) => alone(echo({ text: "Hello", allowedTools: [] }, facts)).spec;
    expect(mayNeed(spec({}), "docs")).toBe(false);
    expect(mayNeed(spec({ visibility: "session" }), "docs")).toBe(true);
  });
});

describe("when it runs", () => {
  const write = tool("Write", { effect: "write", execute: async () => ({ ok: true, output: "written" }) });
  const run = async (facts: KindFacts, act: StateExecutor["act"]) => {
    const live = session({ executors: [{ kind: "echo", act }], tools: [write], mode: "ask" });
    return await live.run(alone(echo({ text: "Hello", allowedTools: [] }, facts)), { task: "t" });
  };
  const complete =
    (output: string): StateExecutor["act"] =>
    async () => ({ ...counted, status: "completed", output });

  test("its output is checked by the run, unless its executor checks it", async () => {
    expect(await run({}, complete("anything"))).toMatchObject({ status: "failed", error: { code: "schema" } });
    expect(await run({ checksOutput: true }, complete("anything"))).toMatchObject({ output: "anything" });
  });

  test("a denied call is answered with its completion tool", async () => {
    const outputs: unknown[] = [];
    await run({ completionTool: "choose" }, async (_init, scope) => {
      const [denied] = await scope.calls(1, [{ id: "t1.c1", tool: "Write", input: {} }]);
      outputs.push(denied?.output);
      return { ...counted, status: "completed", output: { said: "" } };
    });
    expect(outputs).toMatchObject([{ code: "tool_call_denied", allowedTools: [], completionTool: "choose" }]);
  });

  test("its completion tool may not be a tool of the session", async () => {
    await expect(run({ completionTool: "Write" }, complete(""))).rejects.toThrow(
      /stages\.one\.completionTool: Write is also a tool of this session/,
    );
  });
});

test.each(["router", "terminal", "echo"])("a state of kind %s without a route is a dead end", (kind) => {
  const end = state({ kind, output: z.object({}) });
  const plan = stage({ prompt: "p", completionTool: "c", completionSchema: z.object({}), turnCap: 1 });
  const transitions = [{ from: "plan", on: "success", to: "end" }] as const;
  const problems = checkPipeline({ id: "p", input, stages: { plan, end }, initial: "plan", transitions });
  expect(problems.map(({ path, message }) => `${path}: ${message}`)).toContain(
    "stages.end: is a dead end: no route handles the success of end",
  );
});

test("a state that only says it is an agent runs nowhere", async () => {
  const pretender: State<unknown, undefined> = { kind: "agent", spec: { kind: "agent", options: { turnCap: 1 } } };
  const live = createSession({ env: {}, model: "scripted:none.json" });
  onTestFinished(live.close);
  await expect(live.run(alone(pretender), { task: "t" })).rejects.toMatchObject({ code: "state_invalid" });
});
