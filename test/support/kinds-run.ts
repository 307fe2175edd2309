import { done, fail, type Pipeline, pipeline, to } from "@sluice/core";
import { human, poll, type RunHandle, router, type SessionOptions, script, scriptedModel, timer } from "@sluice/stages";
import { z } from "zod";
import type { RunView } from "../../packages/view/src/projection/run-view.ts";
import { type CommandSession, commandSession, node } from "./commands.ts";
import { type HandClock, handClock } from "./hand-clock.ts";
import { eventually } from "./run-kit.ts";
import { answerAll, readRecords, viewOf } from "./run-views.ts";

const input = z.object({ task: z.string() });
const files = z.object({ files: z.array(z.string()).min(1) });

/** A program that counts its starts in a file and succeeds at the fourth. */
const FOURTH_TIME = `
const { existsSync, readFileSync, writeFileSync } = require("node:fs");
const n = existsSync("n") ? Number(readFileSync("n", "utf8")) + 1 : 1;
writeFileSync("n", String(n));
console.log("try " + n);
process.exit(n < 4 ? 1 : 0);`;

/** Builds, waits for a deployment, waits a day, asks a person, and lets a model choose what follows. */
function delivery(): Pipeline<{ task: string }, unknown> {
  return pipeline({
    id: "delivery",
    input,
    stages: {
      build: script({ command: node('console.log("built"); console.error("1 warning")') }),
      ready: poll({ command: node(FOURTH_TIME), every: "30s" }),
      soak: timer({ for: "1d" }),
      approve: human({ question: "Ship {{ctx.task}}?", answer: z.enum(["yes", "no"]), deadline: "3h" }),
      pick: router({ targets: ["ship", "drop"], prompt: "Choose for {{ctx.task}}." }),
      ship: script({
        command: { shell: 'echo "$FILES" && exit 3' },
        env: { FILES: "{{ctx.input.files}}" },
        inputSchema: files,
      }),
      drop: script({ command: ["true"] }),
    },
    initial: "build",
    next: {
      build: () => to("ready"),
      ready: () => to("soak"),
      soak: () => to("approve"),
      approve: () => to("pick"),
      ship: { completed: () => done("shipped"), failed: ({ message }) => fail(message) },
      drop: () => done("dropped"),
    },
  });
}

const choose = (choice: object) => ({ calls: [{ tool: "choose", input: { choice: { ...choice } } }] });

/** A run of it that has begun, and how to lead it on. */
export interface DeliveryRun {
  readonly live: CommandSession;
  readonly clock: HandClock;
  readonly pipeline: Pipeline<{ task: string }, unknown>;
  readonly handle: RunHandle<unknown>;
  view(): Promise<RunView>;
  /** Waits until an execution sleeps, and returns the view. */
  asleep(executionId: string, sleeps?: number): Promise<RunView>;
}

const CHOICES = [choose({ to: "nowhere" }), choose({ to: "ship", input: { files: ["a.ts"] }, reason: "it is ready" })];

export function beginDelivery(turns: readonly object[] = CHOICES, options: Partial<SessionOptions> = {}): DeliveryRun {
  const clock = handClock();
  const model = scriptedModel({ stages: { pick: turns } }, { clock });
  const live = commandSession({ clock, wait: true, model, ...options });
  const made = delivery();
  const handle = live.start(made, { task: "v2" });
  const view = async (): Promise<RunView> => viewOf(handle.runId, await readRecords(live.host, handle.runId));
  const asleep = async (executionId: string, sleeps = 1): Promise<RunView> => {
    let seen = await view();
    await eventually(async () => {
      seen = await view();
      return seen.executions.some(
        (one) => one.executionId === executionId && one.sleeps === sleeps && one.nextWakeAt !== undefined,
      );
    }, `sleep ${sleeps} of ${executionId}`);
    // The timer of the sleep is armed after its record.
    await eventually(() => clock.waiting() > 0, "the timer");
    return seen;
  };
  return { live, clock, pipeline: made, handle, view, asleep };
}

/** Leads a run through its poll, its timer and its question to the end. */
export async function playDelivery(run: DeliveryRun = beginDelivery()): Promise<DeliveryRun> {
  const { clock, live, handle, asleep, view } = run;
  for (const sleeps of [1, 2, 3]) {
    await asleep("ready#1", sleeps);
    clock.turn(30_000);
  }
  await asleep("soak#1");
  clock.turn(86_400_000);
  await eventually(async () => (await view()).requests.length > 0, "the question");
  clock.turn(60_000);
  await answerAll(live, handle.runId, { kind: "value", value: "yes" });
  await handle;
  return run;
}
