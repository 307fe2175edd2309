import {
  type ActOutcome,
  type ChoosingState,
  done,
  final,
  type Json,
  pipeline,
  type StateExecutor,
  stage,
  to,
} from "@sluice/core";
import { schemaAt, stateSpec } from "@sluice/core/runtime";
import { router, type ScriptedTurn, scriptedModel } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { directed, noting, select, task } from "../support/orchestrated.ts";
import { completed, dataOf, eventsOf, json, noModel, session, tool, work } from "../support/run-kit.ts";

// What a hostile model, or hostile code of a kind, may try with a choice of the state that follows. None of it may lead anywhere
// but to a declared state with an input that fits.

const typed = z.strictObject({ file: z.string().max(40) });
const entered = (state: string, seen: string[]) =>
  work<Json, { file: string }>({
    inputSchema: typed,
    act: ({ ctx }) => {
      seen.push(`${state} ${JSON.stringify(ctx.input)}`);
      return completed(null);
    },
  });
const bash = (ran: string[]) =>
  tool("Bash", {
    execute: async () => {
      ran.push("Bash");
      return { ok: true, output: "" };
    },
  });

/** What the model of a router says instead of a choice that can be followed. */
const CHOICES: Readonly<Record<string, ScriptedTurn>> = {
  "names a state that is no target": choose({ to: "secret", input: { file: "a" } }),
  "names a state that does not exist": choose({ to: "deploy", input: { file: "a" } }),
  "names itself": choose({ to: "pick", input: { file: "a" } }),
  "names the prototype": raw('{"choice":{"to":"__proto__","input":{"file":"a"}}}'),
  "names the constructor": choose({ to: "constructor", input: { file: "a" } }),
  "names a method of every object": choose({ to: "hasOwnProperty", input: { file: "a" } }),
  "hides its choice in the prototype": raw('{"__proto__":{"choice":{"to":"safe","input":{"file":"a"}}}}'),
  "hides its target in the prototype": raw('{"choice":{"__proto__":{"to":"safe"},"input":{"file":"a"}}}'),
  "writes a target with other letters": choose({ to: "SAFE", input: { file: "a" } }),
  "writes a target with a space": choose({ to: "safe ", input: { file: "a" } }),
  "writes a target with an invisible character": choose({ to: "sa\u200bfe", input: { file: "a" } }),
  "names several targets": choose({ to: ["safe", "secret"], input: { file: "a" } }),
  "names a target by an object": choose({ to: { toString: "safe" }, input: { file: "a" } }),
  "gives a list of choices": choose([{ to: "safe", input: { file: "a" } }]),
  "gives an input of another form": choose({ to: "safe", input: { file: 1 } }),
  "gives no input": choose({ to: "safe" }),
  "gives an input with more in it": choose({ to: "safe", input: { file: "a", to: "secret" } }),
  "gives an input that fills the journal": choose({ to: "safe", input: { file: "x".repeat(200_000) } }),
  "puts a second target beside the first": choose({ to: "safe", state: "secret", input: { file: "a" } }),
  "puts a second choice beside the first": raw('{"choice":{"to":"safe","input":{"file":"a"}},"next":{"to":"secret"}}'),
  "replaces a prompt": choose({ to: "safe", input: { file: "a" }, prompt: "Run anything." }),
  "sets the context": choose({ to: "safe", input: { file: "a" }, context: { admin: true } }),
  "ends the run": choose({ end: "completed", output: "done" }),
  "returns to another execution": choose({ return: true }),
  "starts a fan-out": choose({ kind: "fanOut", siblings: ["safe", "secret"], join: "safe" }),
  "sends arguments that are no JSON": { calls: [{ tool: "choose", rawInput: '{"choice": {"to": "secret"' }] },
  "calls a tool that it was not given": { calls: [{ tool: "Bash", input: { command: "id" } }] },
  "calls the orchestrator's tool": { calls: [{ tool: "select_state", input: { state: "secret" } }] },
  "says its choice in text": { text: '{"choice": {"to": "secret", "input": {"file": "a"}}}' },
};

function choose(choice: unknown): ScriptedTurn {
  return { calls: [{ tool: "choose", input: json({ choice }) }] };
}
function raw(text: string): ScriptedTurn {
  return { calls: [{ tool: "choose", rawInput: text }] };
}

describe("a router does not move when its model", () => {
  test.each(Object.entries(CHOICES))("%s", async (_what, turn) => {
    const seen: string[] = [];
    const ran: string[] = [];
    const routed = pipeline({
      id: "routed",
      input: task,
      stages: {
        pick: router({ targets: ["safe"], prompt: "Choose.", tries: 1 }),
        safe: entered("safe", seen),
        secret: entered("secret", seen),
      },
      initial: "pick",
      next: { safe: ({ output }) => done(output), secret: ({ output }) => done(output) },
    });
    const model = scriptedModel({ stages: { pick: [turn] } });
    const live = session({ model, tools: [bash(ran)], mode: "yolo" });
    const result = await live.run(routed, { task: "T" });
    expect([seen, ran]).toEqual([[], []]);
    expect(result).toMatchObject({ status: "failed", error: { code: "router" } });
    const routes = dataOf(await eventsOf(live.host, result.runId), "route.decided");
    expect(routes.map(({ choice }) => choice)).toEqual(["fail"]);
  });
});

/** What an orchestrator's model tries before it gives up. */
const SELECTIONS: Readonly<Record<string, ScriptedTurn>> = {
  "selects itself": select("orchestrator"),
  "selects a state that does not exist": select("deploy", { file: "a" }),
  "selects the prototype": {
    calls: [{ tool: "select_state", rawInput: '{"state":"__proto__","input":{"file":"a"}}' }],
  },
  "selects the constructor": select("constructor", { file: "a" }),
  "gives an input that does not fit": select("safe", { file: 7 }),
  "gives an input that fills the journal": select("safe", { file: "x".repeat(200_000) }),
  "gives a state another kind and command": select("safe", { file: "a" }, "x", {
    override: { kind: "script", command: "id" },
  }),
  "gives a state another kind directly": select("safe", { file: "a" }, "x", { kind: "script", command: "id" }),
  "gives a stage another model": select("say", undefined, "x", { model: "other" }),
  "gives a stage more tools": select("say", undefined, "x", { allowedTools: ["Bash"] }),
  "gives a state without a prompt one": select("safe", { file: "a" }, "x", { prompt: "Run id." }),
  "gives a stage a prompt that is no text": select("say", undefined, "x", { prompt: { text: "Run id." } }),
  "gives a stage a prompt without end": select("say", undefined, "x", { prompt: "x".repeat(60_000) }),
  "gives an end a prompt": select("completed", 1, "x", { prompt: "Run id." }),
  "fails the run without a reason": select("failed"),
  "returns to an execution that does not sleep": { calls: [{ tool: "select_state", input: { return: true } }] },
  "sets the context": select("safe", { file: "a" }, "x", { context: { admin: true } }),
  "gives a reason that is no text": {
    calls: [{ tool: "select_state", input: { state: "safe", input: { file: "a" }, reason: {} } }],
  },
  "calls a tool of the session": { calls: [{ tool: "Bash", input: { command: "id" } }] },
  "asks for a run that follows before the end": {
    calls: [{ tool: "start_follow_up", input: { input: { task: "x" } } }],
  },
  "calls the router's tool": { calls: [{ tool: "choose", input: { choice: { to: "safe", input: { file: "a" } } } }] },
};

describe("an orchestrated run does not move when its model", () => {
  test.each(Object.entries(SELECTIONS))("%s", async (_what, turn) => {
    const seen: string[] = [];
    const ran: string[] = [];
    const say = stage({
      allowedTools: [],
      prompt: "Say it.",
      completionTool: "say",
      completionSchema: z.object({}),
      turnCap: 1,
    });
    const own = directed(
      { safe: entered("safe", seen), say },
      { allowPromptOverride: true, acknowledges: false, maxTurnsPerChoice: 1 },
    );
    const { model, prompts } = noting([turn], { say: [{ calls: [{ tool: "say" }] }] });
    const live = session({ model, tools: [bash(ran)], mode: "yolo" });
    const result = await live.run(own, { task: "T" });
    expect([seen, ran, prompts.length]).toEqual([[], [], 1]);
    expect(result).toMatchObject({ status: "failed", error: { code: "orchestrator" } });
    expect(result.stages).toHaveLength(1);
  });
});

/** A kind of the user's own that chooses, like a router; its code may be wrong or hostile. */
function chooser(targets: readonly string[]): ChoosingState<string, undefined> {
  const report = { add: () => undefined, include: () => undefined, unknownKeys: () => undefined, problems: [] };
  const output = schemaAt(report, "output", z.unknown());
  const spec = stateSpec("own", { allowedTools: [] }, { keys: [], problems: [], chooses: { targets }, output });
  return { kind: "own", targets, spec };
}

const OUTPUTS: Readonly<Record<string, unknown>> = {
  "that is null": null,
  "that is a list": ["safe"],
  "that is a name": "safe",
  "that names a state that is no target": { to: "secret", input: { file: "a" } },
  "that names the prototype": JSON.parse('{"to":"__proto__"}'),
  "with an input that does not fit": { to: "safe", input: { file: 1 } },
  "with more fields": { to: "safe", input: { file: "a" }, context: { admin: true } },
  "with a prompt": { to: "safe", input: { file: "a" }, prompt: "Run id." },
  "with a reason that is no text": { to: "safe", input: { file: "a" }, reason: 1 },
  "that ends the run": { end: "completed", output: 1 },
  "that returns": { return: true },
  "that is a choice of a route": { kind: "to", state: "secret", input: { file: "a" } },
};

describe("the run fails when a kind that chooses completes with an output", () => {
  test.each(Object.entries(OUTPUTS))("%s", async (_what, output) => {
    const seen: string[] = [];
    const routed = pipeline({
      id: "routed",
      input: task,
      stages: { pick: chooser(["safe"]), safe: entered("safe", seen), secret: entered("secret", seen) },
      initial: "pick",
      next: { pick: { failed: () => to("secret", { file: "a" }) }, safe: () => done(1), secret: () => done(1) },
    });
    const act: StateExecutor["act"] = async () => completed(json(output));
    const live = session({ model: noModel, executors: [{ kind: "own", act }] });
    const result = await live.run(routed, { task: "T" });
    expect(seen).toEqual([]);
    expect(result).toMatchObject({ status: "failed" });
  });
});

test("what an executor says it was refused has to be a list of targets and reasons", async () => {
  const routed = pipeline({
    id: "routed",
    input: task,
    stages: { pick: chooser(["over"]), over: final("completed") },
    initial: "pick",
    next: {},
  });
  const outcome: ActOutcome = JSON.parse(JSON.stringify({ ...completed({ to: "over" }), refused: [{ to: 1 }] }));
  const live = session({ model: noModel, executors: [{ kind: "own", act: async () => outcome }] });
  expect(await live.run(routed, { task: "T" })).toMatchObject({
    status: "failed",
    error: { code: "hook", message: expect.stringContaining("refused must be a list of { to, why }") },
  });
});
