import type { LanguageModelV4 } from "@ai-sdk/provider";
import { checkPipeline, done, final, type JsonObject, pipeline, pipelineShape, stage, to } from "@sluice/core";
import { router, scriptedModel, type TurnPosition } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { killedEverywhere } from "../support/killed-runs.ts";
import { completed, dataOf, eventsOf, session, work } from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const files = z.object({ files: z.array(z.string()).min(1) });
const fix = () =>
  work<JsonObject, { files: string[] }>({
    inputSchema: files,
    act: ({ ctx }) => completed({ fixed: JSON.stringify(ctx.input) }),
  });

interface Setup {
  readonly limits?: { readonly maxVisits?: number; readonly maxHops?: number };
  readonly fallback?: { readonly to: string; readonly input?: JsonObject };
  readonly tries?: number;
}

function routed({ limits = {}, fallback, tries }: Setup = {}) {
  const settings = { ...(fallback === undefined ? {} : { fallback }), ...(tries === undefined ? {} : { tries }) };
  return pipeline({
    id: "routed",
    input,
    limits,
    stages: {
      plan: work<string>({ act: () => completed("the plan") }),
      pick: router({ targets: ["fix", "stop"], prompt: "Choose for {{ctx.task}}.", ...settings }),
      fix: fix(),
      stop: final("cancelled"),
    },
    initial: "plan",
    next: { plan: () => ({ kind: "to", state: "pick", input: undefined }), fix: ({ output }) => done(output) },
  });
}

/** One turn with the call of `choose` that has these arguments. */
const choose = (choice: unknown) => ({ calls: [{ tool: "choose", input: JSON.parse(JSON.stringify({ choice })) }] });
const toFix = { to: "fix", input: { files: ["a.ts"] }, reason: "it needs a fix" };

async function run(turns: readonly object[], setup?: Setup) {
  const live = session({ model: scriptedModel({ stages: { pick: turns } }) });
  const result = await live.run(routed(setup), { task: "T" });
  const events = await eventsOf(live.host, result.runId);
  return { result, events, routes: dataOf(events, "route.decided"), rejected: dataOf(events, "route.rejected") };
}

describe("a router", () => {
  test("continues in the state that the model names, with the input that it gives", async () => {
    const { result, routes } = await run([choose(toFix)]);
    expect(result).toMatchObject({ status: "completed", output: { fixed: '{"files":["a.ts"]}' } });
    expect(routes[1]).toEqual({
      from: "pick",
      choice: "to",
      to: "fix",
      why: { by: "model", reason: "it needs a fix", considered: [{ to: "fix" }, { to: "stop" }] },
    });
  });

  test("has its choice as output, and needs no entry in next", async () => {
    const { result } = await run([choose(toFix)]);
    expect(result.stages[1]).toMatchObject({ executionId: "pick#1", status: "completed", output: toFix });
  });

  test("may choose a final state", async () => {
    const { result } = await run([choose({ to: "stop" })]);
    expect(result).toMatchObject({ status: "cancelled", state: "stop" });
  });

  test("feeds what is wrong with a choice back, and records each refused attempt", async () => {
    const { result, rejected, routes } = await run([
      choose({ to: "nowhere" }),
      choose({ to: "fix", input: { files: [] } }),
      choose(toFix),
    ]);
    expect(result.status).toBe("completed");
    expect(rejected).toMatchObject([
      { from: "pick", to: "nowhere", reason: '$.choice.to there is no target "nowhere"; the targets are fix, stop' },
      { from: "pick", to: "fix", reason: expect.stringContaining("$.choice.input.files") },
    ]);
    expect(routes[1]).toMatchObject({
      why: {
        considered: [
          { to: "nowhere", refused: expect.stringContaining("no target") },
          { to: "fix", refused: expect.stringContaining("$.choice.input.files") },
          { to: "fix" },
          { to: "stop" },
        ],
      },
    });
  });

  test("fails with code router after three choices that cannot be followed", async () => {
    const { result } = await run([choose({ to: "x" }), { text: "I choose fix." }, choose({ to: "y" })]);
    expect(result).toMatchObject({
      status: "failed",
      error: { code: "router", message: expect.stringContaining('no target "y"') },
    });
  });

  test("takes its fallback when it fails", async () => {
    const { result, routes } = await run([choose({ to: "x" })], {
      tries: 1,
      fallback: { to: "fix", input: { files: ["f"] } },
    });
    expect(result).toMatchObject({ status: "completed", output: { fixed: '{"files":["f"]}' } });
    expect(routes[1]).toMatchObject({
      to: "fix",
      why: { by: "fallback", considered: [{ to: "x" }, { to: "fix" }, { to: "stop" }] },
    });
  });

  test("is not offered a target that has reached its visit cap", async () => {
    const looping = pipeline({
      id: "looping",
      input,
      limits: { maxVisits: 1 },
      stages: {
        fix: work({ act: () => completed(null) }),
        pick: router({ targets: ["fix", "stop"], prompt: "Choose." }),
        stop: final("completed"),
      },
      initial: "fix",
      next: { fix: () => to("pick") },
    });
    const offered: string[] = [];
    const script = scriptedModel({ stages: { pick: [choose({ to: "fix" }), choose({ to: "stop", input: "over" })] } });
    const model = { ...script, at: (place: TurnPosition) => listening(script.at(place), offered) };
    const live = session({ model });
    const result = await live.run(looping, { task: "T" });
    expect(result).toMatchObject({ status: "completed", output: "over", state: "stop" });
    expect(offered[0]).not.toContain('"fix"');
    const why = "it was entered as often as it may be, or the run has taken all its routes";
    expect(dataOf(await eventsOf(live.host, result.runId), "route.decided")[1]).toMatchObject({
      why: {
        considered: [{ to: "fix", refused: expect.stringContaining(why) }, { to: "fix", refused: why }, { to: "stop" }],
      },
    });
  });
});

describe("the definition of a router", () => {
  test("is refused for targets that do not exist, are listed twice or are the router itself", () => {
    const broken = pipelineProblems({ targets: ["a", "a", "pick", "nowhere"] });
    expect(broken).toEqual([
      "stages.pick.targets[1] a is listed twice",
      "stages.pick.targets[2] pick cannot choose itself",
      'stages.pick.targets[3] there is no state "nowhere"',
    ]);
  });

  test("is refused for a fallback that does not exist or whose input does not fit", () => {
    expect(pipelineProblems({ targets: ["a"], fallback: { to: "b" } })).toEqual([
      'stages.pick.fallback.to there is no state "b"',
    ]);
    expect(pipelineProblems({ targets: ["a"], fallback: { to: "a", input: { files: 1 } } })[0]).toContain(
      "stages.pick.fallback.input",
    );
  });

  test("shows its targets in the graph, and in the fingerprint", () => {
    expect(pipelineShape(routed().spec).states[1]).toMatchObject({
      id: "pick",
      kind: "router",
      targets: ["fix", "stop"],
    });
    expect(routed({ fallback: { to: "stop" } }).spec.fingerprint).not.toBe(routed().spec.fingerprint);
    expect(routed({ fallback: { to: "stop" } }).spec.fingerprint).toBe(
      routed({ fallback: { to: "stop" } }).spec.fingerprint,
    );
  });
});

function pipelineProblems(options: {
  targets: string[];
  fallback?: { to: string; input?: JsonObject };
}): readonly string[] {
  const problems = checkPipeline({
    id: "p",
    input,
    stages: {
      pick: router({ prompt: "Choose.", ...options }),
      a: stage({
        inputSchema: files,
        prompt: "p",
        allowedTools: [],
        completionTool: "submit_a",
        completionSchema: z.object({}),
        turnCap: 1,
      }),
    },
    initial: "pick",
    next: { a: () => done(1) },
  });
  return problems.map(({ path, message }) => `${path} ${message}`);
}

/** A model that notes the tools it is offered. */
function listening(model: LanguageModelV4, offered: string[]): LanguageModelV4 {
  return {
    ...model,
    doStream: (call) => {
      offered.push(JSON.stringify(call.tools));
      return model.doStream(call);
    },
  };
}

test("a run with a router that is killed before any of its records ends as one that was not", async () => {
  const turns = [choose({ to: "nowhere" }), { text: "?" }, choose(toFix)];
  const failing = [choose({ to: "nowhere" })];
  for (const [said, setup] of [
    [turns, {}],
    [failing, { tries: 1, fallback: { to: "fix", input: { files: ["f"] } } }],
  ] as const) {
    const { whole, killed } = await killedEverywhere(() => {
      const { id, spec } = routed(setup);
      return {
        pipeline: { id, spec },
        input: { task: "T" },
        options: { model: scriptedModel({ stages: { pick: said } }) },
      };
    });
    expect(whole.status).toBe("completed");
    for (const facts of killed) expect(facts).toEqual(whole);
  }
});
