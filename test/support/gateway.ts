import type { Clock, Json, Pipeline, RunHost } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { type CallReply, type GatewayRun, type GatewayRunOptions, openGatewayRun } from "@sluice/gateway";
import { createSession, type SessionOptions } from "@sluice/stages";
import { onTestFinished } from "vitest";
import { loadDocument } from "./workflows.ts";

/** A workflow in three phases: look, then edit, then check. */
export const PLAN_FIRST = {
  id: "plan-first",
  initial: "plan",
  states: {
    plan: {
      instructions: "Read what you need and write a plan. Edit nothing.",
      allowed_tools: ["Read", "Grep", "Glob"],
      on: { READY: "build" },
    },
    build: {
      instructions: "Make the change.",
      allowed_tools: ["Read", "Edit", "Write"],
      on: { BUILT: "check" },
    },
    check: {
      instructions: "Check it.",
      allowed_tools: ["Read", "Bash"],
      allowed_commands: ["cat"],
      on: { GOOD: "done", BAD: "build" },
    },
    done: { type: "final" },
  },
};

export async function pipelineOf(document: unknown): Promise<Pipeline<{ readonly task: string }, unknown>> {
  const { pipeline, diagnostics } = await loadDocument(document);
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics, null, 2));
  return pipeline;
}

export interface GatewaySetUp {
  readonly pipeline: Pipeline<{ readonly task: string }, unknown>;
  readonly root: string;
  readonly host?: RunHost;
  readonly resume?: string;
  readonly wait?: boolean | number;
  readonly clock?: Clock;
  readonly session?: Partial<SessionOptions>;
  readonly native?: GatewayRunOptions["native"];
}

/** A gateway run over a folder, closed with the test. */
export function gatewayRun(setUp: GatewaySetUp): GatewayRun {
  const { pipeline, root, resume, wait = false, clock, session = {}, native } = setUp;
  const host = setUp.host ?? createHost(createMemoryJournals().connect(), clock === undefined ? {} : { clock });
  const run = openGatewayRun({
    pipeline,
    agent: { name: "test", class: "hard" },
    wait: wait !== false,
    ...(clock === undefined ? {} : { clock }),
    ...(native === undefined ? {} : { native }),
    ...(resume === undefined ? {} : { resumes: resume }),
    session: (added) =>
      createSession({
        cwd: root,
        host,
        wait,
        sandbox: "off",
        env: {},
        ...(clock === undefined ? {} : { clock }),
        ...session,
        ...added,
      }),
    begin: (opened, task = "Change it.") =>
      resume === undefined ? opened.start(pipeline, { task }) : opened.resume(pipeline, resume),
  });
  onTestFinished(() => run.close());
  return run;
}

/** Makes one call and waits for its answer. */
export async function ask(run: GatewayRun, tool: string, input: Json = {}): Promise<CallReply> {
  return await run.call({ tool, input }).answer;
}

export const leave = (run: GatewayRun, event: string, data: Json = { rationale: "done" }): Promise<CallReply> =>
  ask(run, "transition", { event, data });
