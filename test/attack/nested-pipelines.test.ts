import { existsSync } from "node:fs";
import {
  type AnyPipeline,
  done,
  type GuardedCall,
  invoke,
  type Json,
  pipeline,
  type StageContext,
  type State,
  stage,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { subPipeline } from "@sluice/stages";
import { authored, authoredExecutor, runInput } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Scene, scene } from "../support/attack.ts";
import { submit } from "../support/authored.ts";
import { caller, completed, json, noModel, session, type TestSessionOptions, tool, work } from "../support/run-kit.ts";
import { failingAt } from "../support/stopped-runs.ts";
import { talker } from "../support/talker.ts";

// What limits a pipeline limits those that run inside of it.

const ENV = { PATH: process.env.PATH, HOME: "/nonexistent" };
const LISTED = ["Bash(npm test)"];

type Call = readonly [tool: string, input: Json];

function calling(allowedTools: readonly string[] | undefined, call: Call): State<Json> {
  return work<Json>({
    ...(allowedTools === undefined ? {} : { allowedTools }),
    act: async (scope) => completed(await caller(scope)(...call)),
  });
}

/** A package whose tests write a file. */
function evilPackage(place: Scene): Call {
  const script = "node -e \"require('node:fs').writeFileSync('PWN', '')\"";
  const content = JSON.stringify({ scripts: { test: script } });
  return ["Write", { file_path: place.path("docs/package.json"), content }];
}
const RUN: Call = ["Bash", { command: "cd docs && npm test" }];

/** A pipeline of one state. */
function only(id: string, state: State<Json>) {
  return pipeline({
    id,
    input: z.any(),
    stages: { only: state },
    initial: "only",
    next: { only: ({ output }) => done(json(output)) },
  });
}

type Inner = State<Json, undefined>;

function twoStages(write: Inner, run: Inner, pipelines: Readonly<Record<string, AnyPipeline>> = {}) {
  return pipeline({
    id: "outer",
    input: runInput,
    stages: { write, run },
    pipelines,
    initial: "write",
    next: { write: () => to("run"), run: ({ output }) => done(json(output)) },
  });
}

/** A document of one agent. */
const document = (allowedTools: readonly string[]) => ({
  id: "made",
  initial: "work",
  context: { own: 2 },
  states: {
    work: { allowed_tools: allowedTools, instructions: "Work.", on: { DONE: "done" } },
    done: { type: "final" },
  },
});

/** A model that writes a pipeline whose agent makes one call; while it writes, it makes another one, if there is one. */
function author(allowedTools: readonly string[], [name, input]: Call, first?: Call) {
  return talker(({ stage, turn }) => {
    if (stage === "design" && turn === 0 && first !== undefined)
      return { calls: [{ tool: first[0], input: first[1] }] };
    if (stage === "design") return submit(document(allowedTools));
    if (turn === 0) return { calls: [{ tool: name, input }] };
    return { calls: [{ tool: "transition", input: { event: "DONE" } }] };
  });
}

describe("a listed command in another folder than the root, into which the run wrote,", () => {
  async function refuses(place: Scene, made: ReturnType<typeof twoStages>, more: TestSessionOptions = {}) {
    const live = session({ model: noModel, cwd: place.root, env: ENV, executors: [authoredExecutor], ...more });
    const { denied } = await live.run(made, { task: "x" });
    expect(existsSync(place.path("docs/package.json"))).toBe(true);
    expect(denied.map((each) => each.tool)).toEqual(["Bash"]);
    expect(existsSync(place.path("docs/PWN"))).toBe(false);
  }

  test("needs a grant in a pipeline that the run calls", async () => {
    const place = scene();
    const child = only("child", calling(LISTED, RUN));
    const run = subPipeline({ pipeline: "child", of: child, input: {} });
    await refuses(place, twoStages(calling(["Write(docs/**)"], evilPackage(place)), run, { child }));
  });

  test("needs a grant if a pipeline wrote there that the run called", async () => {
    const place = scene();
    const child = only("child", calling(["Write(docs/**)"], evilPackage(place)));
    const write = subPipeline({ pipeline: "child", of: child, input: {} });
    await refuses(place, twoStages(write, calling(LISTED, RUN), { child }));
  });

  test("needs a grant in a pipeline that a route invokes", async () => {
    const place = scene();
    const child = only("child", calling(LISTED, RUN));
    const outer = pipeline({
      id: "outer",
      input: runInput,
      stages: { write: calling(["Write(docs/**)"], evilPackage(place)), end: work<Json>({}) },
      pipelines: { child },
      initial: "write",
      transitions: [
        { from: "write", on: "success", to: invoke("child", { onComplete: "end" }) },
        { from: "end", on: "success", to: done(null) },
      ],
    });
    await refuses(place, outer);
  });

  test("needs a grant in a pipeline that a model wrote", async () => {
    const place = scene();
    const outer = twoStages(
      calling(["Write(docs/**)"], evilPackage(place)),
      authored({ allow: { tools: LISTED }, approval: "never" }),
    );
    await refuses(place, outer, { model: author(LISTED, RUN) });
  });

  test("needs a grant if a pipeline that a model wrote may write there", async () => {
    const place = scene();
    const tools = ["Write(docs/**)"];
    const outer = twoStages(authored({ allow: { tools }, approval: "never" }), calling(LISTED, RUN));
    await refuses(place, outer, { model: author(tools, evilPackage(place)) });
  });

  test.each([
    ["if the session's allowlist lets a stage write there", undefined, LISTED, ["Write(docs/**)"]],
    ["if the session's allowlist lists the command", ["Write(docs/**)"], undefined, LISTED],
    ["although the session's allowlist lists all files for other stages", ["Write(docs/**)"], LISTED, ["Read", "Edit"]],
    ["although the session's allowlist lists all tools", ["Write(docs/**)"], LISTED, ["*"]],
  ])("is denied %s", async (_case, first, second, allow) => {
    const place = scene();
    const outer = twoStages(calling(first, evilPackage(place)), calling(second, RUN));
    await refuses(place, outer, { mode: "allowlist", allow });
  });
});

describe("of a state in which a model writes a pipeline", () => {
  const touched = (): { readonly calls: Json[]; readonly touch: ReturnType<typeof tool> } => {
    const calls: Json[] = [];
    const touch = tool("touch", {
      execute: async (input) => {
        calls.push(json(input));
        return { ok: true, output: null };
      },
    });
    return { calls, touch };
  };

  test.each(["pipeline", "state"])("the hook of the %s is asked about the calls of both agents", async (owner) => {
    const { calls, touch } = touched();
    const seen: string[] = [];
    const hook = {
      onCall: ({ executionId, attempt }: GuardedCall, ctx: StageContext) => {
        const { task, context, visit, setup } = ctx;
        seen.push([task, JSON.stringify({ context, setup }), visit, ctx.attempt, executionId, attempt].join(" "));
        return { veto: "nothing may run" };
      },
    };
    const outer = pipeline({
      id: "outer",
      input: runInput,
      context: { own: 1 },
      ...(owner === "pipeline" ? hook : {}),
      stages: {
        auto: authored({
          allow: { tools: ["touch"] },
          designTools: ["touch"],
          approval: "never",
          setup: () => ({ frozen: true }),
          ...(owner === "state" ? hook : {}),
        }),
      },
      initial: "auto",
      next: { auto: ({ output }) => done(json(output)) },
    });
    const model = author(["touch"], ["touch", { at: "work" }], ["touch", { at: "design" }]);
    const { denied } = await session({ model, tools: [touch], executors: [authoredExecutor] }).run(outer, {
      task: "x",
    });
    expect(denied.map(({ cause }) => cause)).toEqual(["hook", "hook"]);
    expect(calls).toEqual([]);
    // What the model wrote into its pipeline is not their context.
    const around = 'x {"context":{"own":1},"setup":{"frozen":true}} 1 1 auto#1 1';
    expect(seen).toEqual([around, around]);
  });
});

test.each([
  [
    "the session's list has changed",
    { mode: "allowlist", allow: ["Write(docs/**)"] },
    { mode: "allowlist", allow: ["Read"] },
    undefined,
  ],
  ["the stage that wrote is narrower now", {}, {}, ["Write(docs/**)"]],
] as const)(
  "a folder that an earlier process of the run wrote into counts, although %s",
  async (_case, before, now, wrote) => {
    const place = scene();
    const memory = createMemoryJournals();
    const of = (first: readonly string[] | undefined) =>
      twoStages(calling(first, evilPackage(place)), calling(LISTED, RUN));
    const common = { model: noModel, cwd: place.root, env: ENV };
    const first = session({ ...common, ...before, host: () => createHost(failingAt(memory.connect(), /^run#1/)) });
    const started = first.start(of(wrote), { task: "x" });
    await expect(started).rejects.toThrow();
    await first.close();
    const second = session({ ...common, ...now, host: () => createHost(memory.connect()) });
    const { status, denied } = await second.resume(of(wrote === undefined ? undefined : []), started.runId, {
      allowChanged: true,
    });
    expect([status, denied.map(({ tool: name }) => name)]).toEqual(["completed", ["Bash"]]);
    expect(existsSync(place.path("docs/package.json"))).toBe(true);
    expect(existsSync(place.path("docs/PWN"))).toBe(false);
  },
);

describe("the key of a model that only a pipeline names which is made during the run", () => {
  const KEY = "correct-horse-battery";
  const env = { ...ENV, ANTHROPIC_API_KEY: KEY };
  const touch = tool("touch", { execute: async () => ({ ok: true, output: KEY }) });

  test.each([
    ["is a known secret from the start if the state that makes it lists the model", ["anthropic/m"], false],
    ["is none of the run otherwise", undefined, true],
  ])("%s", async (_case, models, isShown) => {
    const outer = pipeline({
      id: "outer",
      input: runInput,
      stages: {
        auto: authored({ allow: { tools: ["touch"], ...(models === undefined ? {} : { models }) }, approval: "never" }),
      },
      initial: "auto",
      next: { auto: ({ output }) => done(json(output)) },
    });
    const live = session({
      model: author(["touch"], ["touch", {}]),
      tools: [touch],
      executors: [authoredExecutor],
      env,
    });
    const handle = live.start(outer, { task: "x" });
    expect((await handle).status).toBe("completed");
    expect(JSON.stringify(await live.host.journal(handle.runId)).includes(KEY)).toBe(isShown);
  });

  test("has to be one, so a pipeline of a kind is refused that has another key", async () => {
    const making = (own: AnyPipeline) =>
      only(
        "outer",
        work<Json>({
          act: async (scope) => completed(await scope.runChildren("go", [{ key: "k", pipeline: own.spec, input: {} }])),
        }),
      );
    const finishing = { prompt: "x", turnCap: 1, completionTool: "finish", completionSchema: z.object({}) };
    const named = pipeline({
      id: "named",
      input: z.any(),
      stages: { only: stage({ ...finishing, model: "anthropic/m" }) },
      initial: "only",
      next: { only: () => done(null) },
    });
    const set = pipeline({
      id: "set",
      input: z.any(),
      stages: {
        only: stage({ ...finishing, env: { set: { DEPLOY_TOKEN: "q8w7e6r5t4y3u2i1" } } }),
      },
      initial: "only",
      next: { only: () => done(null) },
    });
    for (const [own, key] of [
      [named, "ANTHROPIC_API_KEY"],
      [set, "DEPLOY_TOKEN"],
    ] as const)
      await expect(session({ model: noModel, env }).run(making(own), {})).rejects.toThrow(
        `uses a key (${key}) that is no known secret of the run`,
      );
    const part = session({ model: noModel, env: { ...env, OTHER_KEY: "correct-horse" }, secrets: ["OTHER_KEY"] });
    await expect(part.run(making(named), {})).rejects.toThrow("no known secret of the run");
    const knowing = session({
      model: noModel,
      env,
      secrets: ["ANTHROPIC_API_KEY"],
      baseUrls: { anthropic: "http://127.0.0.1:1" },
      retry: { maxAttempts: 1 },
      onProviderFault: "fail",
    });
    const result = await knowing.run(making(named), {});
    expect(JSON.stringify(result)).not.toContain("no known secret");
  });

  test("is none that only appears in the environment while the run works", async () => {
    const live: Record<string, string> = {};
    const made = only("made", work());
    const outer = only(
      "outer",
      work<Json>({
        act: async (scope) => {
          live.VAULT_TOKEN = "q8w7e6r5t4y3u2i1";
          return completed(await scope.runChildren("go", [{ key: "k", pipeline: made.spec, input: {} }]));
        },
      }),
    );
    expect(await session({ model: noModel, env: live }).run(outer, {})).toMatchObject({ status: "completed" });
  });
});
