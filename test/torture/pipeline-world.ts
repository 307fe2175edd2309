import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  callbackInteractor,
  done,
  fanOut,
  type GuardHook,
  type Json,
  pipeline,
  type StageContext,
  stage,
  to,
} from "@sluice/core";
import { createHost } from "@sluice/core/host";
import { openJournalStore, type SqliteStore } from "@sluice/sqlite";
import { createSession } from "@sluice/stages";
import { z } from "zod";
import type { Points } from "./points.ts";
import { torturedModel } from "./script.ts";
import { torturedTools } from "./tools.ts";
import { letGoOn, placeOf, watched } from "./watched-store.ts";
import type { OpenedWorld, WorldOptions } from "./world.ts";

/** The sleep of the first gate, in milliseconds, unless a case asks for another. */
const NAP_MS = 40;

const FILES = { "src/a.txt": "hello\nentries\n", "src/b.txt": "one\n" };

/** What a run finds in its folder. */
export function layOut(workspace: string): void {
  mkdirSync(join(workspace, "src"), { recursive: true });
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(workspace, name), text);
}

/** What the model makes of its calls, as the run's output. */
export const PIPELINE_OUTPUT: Json = {
  plan: { results: ["Read ok", "Grep ok", "Long ok", "Edit ok", "Write ok", "Bash denied", "AskUser ok"] },
  lint: { results: ["Bash ok"] },
  test: { results: ["Read ok", "Edit ok"] },
  docs: { results: ["Ledger ok", "Post ok"] },
  wrap: { results: ["Read ok", "Edit ok", "Edit ok"] },
};

interface PipelineOptions {
  readonly points: Points;
  readonly store: SqliteStore;
  readonly napMs: number;
  /** Another pipeline than the one the run was started with. */
  readonly changed: boolean;
}

type HookContext = Pick<StageContext, "runId" | "visit" | "attempt">;

/** Two attempts with a gate that sleeps; reads, edits, grants and a question; three siblings; edits that would show if made twice. */
function tortured({ points, store, napMs, changed }: PipelineOptions) {
  const hook = (state: string, name: string, step: "enter" | "precondition/1" | "leave", ctx: HookContext): void => {
    const execution = `${state}#${ctx.visit}/a${ctx.attempt}`;
    points.deed(`${name} ${execution} ${step}`, `step ${placeOf(ctx.runId)} ${execution}/${step}`);
    points.at(`${name} ${execution} ${step}`);
  };
  const results = z.object({ results: z.array(z.string()) });
  const work = (state: string, allowedTools: readonly string[]) =>
    stage({
      prompt: (ctx) => {
        hook(state, "prompt", "enter", ctx);
        return changed ? `Do ${state} in another way.` : `Do ${state}.`;
      },
      allowedTools,
      completionTool: `submit_${state}`,
      completionSchema: results,
      turnCap: 5,
      setup: (ctx) => {
        hook(state, "setup", "enter", ctx);
        return null;
      },
      exit: (_result, ctx) => hook(state, "exit", "leave", ctx),
    });
  const draft = stage({
    prompt: changed ? "Draft it in another way." : "Draft it.",
    allowedTools: [],
    completionTool: "submit_draft",
    completionSchema: z.object({ text: z.string() }),
    turnCap: 2,
    // What it answers follows from the journal, so that it answers the same when it is asked again after a crash.
    precondition: (ctx) => {
      const slept = store.records(ctx.runId, 0);
      const again =
        !(slept instanceof Promise) && slept.some(({ stepId }) => stepId === "draft#1/a1/precondition/1/sleep");
      hook("draft", "gate", again && ctx.attempt === 1 ? "precondition/1" : "enter", ctx);
      return again ? "proceed" : { retryAfterMs: napMs };
    },
    assert: (_result, ctx) => {
      hook("draft", "assert", "leave", ctx);
      return ctx.attempt === 1 ? { retry: "once more" } : "ok";
    },
  });
  const plan = work("plan", ["Read", "Grep", "Long", "Edit(src/**)", "AskUser"]);
  const lint = work("lint", ["Bash", "Write"]);
  const test = work("test", ["Read"]);
  const docs = work("docs", ["Ledger", "Post"]);
  const wrap = work("wrap", ["Read", "Edit(src/**)"]);
  return pipeline({
    id: "torture",
    input: z.object({ task: z.string() }),
    stages: { draft, plan, lint, test, docs, wrap },
    initial: "draft",
    next: {
      draft: () => to("plan"),
      plan: ({ attempts }, ctx) => {
        hook("plan", "next", "leave", { ...ctx, attempt: attempts });
        return fanOut(["lint", "test", "docs"], { join: "wrap" });
      },
      wrap: ({ output }, { upstream: { plan: planned, lint: linted, test: tested, docs: documented } }) =>
        done({
          plan: planned ?? null,
          lint: linted ?? null,
          test: tested ?? null,
          docs: documented ?? null,
          wrap: output,
        }),
    },
  });
}

export function openPipelineWorld({ folder, points, napMs = NAP_MS, changed = false }: WorldOptions): OpenedWorld {
  const workspace = join(folder, "workspace");
  const real = openJournalStore(join(folder, "store"));
  const { store, clock } = watched(real, points, (runId, { phase, stepId }) => {
    // The process that resumes the run may find the call judged.
    if (runId.endsWith("/lint") && /^(?:done .*\/verdicts|open .*\/call)$/.test(`${phase} ${stepId}`))
      letGoOn(workspace, "lint.log", points);
  });
  const onCall: GuardHook = ({ executionId, attempt, proposalId }, ctx) => {
    const call = `${executionId}/a${attempt} ${proposalId}`;
    // Of a call that was judged and has no end, the process that resumes the run asks once more.
    points.deed(`judged ${call}`, `call.finished ${placeOf(ctx.runId)} ${call}`);
    points.at(`judges ${call}`);
    return undefined;
  };
  const onlooker = callbackInteractor("onlooker", ({ runId, requestId }) => {
    points.deed(`asked about ${placeOf(runId)} ${requestId}`, `answered ${placeOf(runId)} ${requestId}`);
    return undefined;
  });
  const host = createHost(store, { clock });
  const session = createSession({
    model: torturedModel(points),
    env: { PATH: "/usr/bin:/bin" },
    cwd: workspace,
    host: host,
    // In a sandbox, a command ends with its process; without one it outlives it.
    sandbox: "off",
    tools: torturedTools(points),
    interactors: [onlooker],
    wait: true,
    onCall,
  });
  const pipe = tortured({ points, store: real, napMs, changed });
  return {
    host,
    start: async () => (await session.start(pipe, { task: "work" }, { answers: "any" })).status,
    resume: async (runId) => (await session.resume(pipe, runId)).status,
    close: async () => {
      await session.close();
      await host.close();
    },
  };
}
