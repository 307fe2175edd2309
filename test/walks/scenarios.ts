import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AllowedTool,
  callbackInteractor,
  done,
  fanOut,
  type Json,
  type Pipeline,
  pipeline,
  stage,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import {
  createSession,
  type ResolvedModel,
  type RunResult,
  type ScriptedTurn,
  type Session,
  scriptedModel,
} from "@sluice/stages";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import type { Counter, Counts } from "./coverage.ts";

/** Does one thing, and counts what it takes. */
export type Scenario = (counter: Counter) => Promise<Counts>;

const workspace = mkdtempSync(join(tmpdir(), "sluice-walks-"));
process.once("exit", () => rmSync(workspace, { recursive: true, force: true }));
writeFileSync(join(workspace, "notes.txt"), "one\ntwo\n");

const input = z.object({ task: z.string() });
const task = { task: "Do it." };
const text = ({ output }: { readonly output: { readonly text: string } }) => done(output.text);
const common = {
  prompt: "Work.",
  visibility: "session",
  completionTool: "finish",
  completionSchema: z.object({ text: z.string() }),
  turnCap: 4,
} as const;
const plain = (allowedTools: readonly AllowedTool[] = []) => stage({ ...common, allowedTools });

const work = plain(["Read"]);
const reading = pipeline({ id: "reading", input, stages: { work }, initial: "work", next: { work: text } });
const writer = plain(["Read", "Write"]);
const writing = pipeline({ id: "writing", input, stages: { writer }, initial: "writer", next: { writer: text } });

const first = plain();
const second = plain(["Read"]);
const next = { first: () => to("second"), second: text };
const two = pipeline({ id: "two", input, stages: { first, second }, initial: "first", next });

const four = { start: plain(), left: plain(), right: plain(), end: plain() };
const forked = pipeline({
  id: "forked",
  input,
  stages: four,
  initial: "start",
  next: { start: () => fanOut(["left", "right"], { join: "end" }), end: text },
});
const chained = pipeline({
  id: "chained",
  input,
  stages: four,
  initial: "start",
  next: { start: () => to("left"), left: () => to("right"), right: () => to("end"), end: text },
});

type Turns = Readonly<Record<string, readonly ScriptedTurn[]>>;

const call = (tool: string, input: Json): ScriptedTurn => ({ calls: [{ tool, input }] });
const finish = call("finish", { text: "done" });
const read = call("Read", { file_path: "notes.txt" });
const words: ScriptedTurn = { text: "I look first." };
let written = 0;
/** Each into a file that is new. */
function write(): ScriptedTurn {
  written += 1;
  return call("Write", { file_path: `new-${written}.txt`, content: "one\n" });
}

const turnsOfTwo: Turns = { first: [finish], second: [read, finish] };
const turnsOfFour: Turns = { start: [finish], left: [finish], right: [finish], end: [finish] };

/** A session whose results depend on nothing of this machine: no environment, no sandbox, and time that does not pass. */
function sessionWith(model: ResolvedModel, memory = createMemoryJournals()): Session {
  const clock = handClock();
  const store = createHost(memory.connect(), { clock });
  const yes = callbackInteractor("yes", () => ({ kind: "approve" }));
  return createSession({ model, cwd: workspace, env: {}, sandbox: "off", host: store, interactors: [yes], clock });
}

const playing = (stages: Turns): ResolvedModel => scriptedModel({ stages }, { clock: handClock() });

function check(result: RunResult<unknown>): void {
  if (result.status === "completed" && result.denied.length === 0) return;
  throw new Error(`the run ended as ${result.status}: ${JSON.stringify(result)}`);
}

/** A whole run, from `start` to its result. */
function run(pipeline: Pipeline<{ task: string }, string>, turns: () => Turns): Scenario {
  return async (counter) => {
    const session = sessionWith(playing(turns()));
    counter.start();
    const result = await session.start(pipeline, task);
    const counts = counter.stop();
    check(result);
    await session.close();
    return counts;
  };
}

/** A run that was suspended while its last turn was asked for: from `resume` in another session to its result. */
const resumed: Scenario = async (counter) => {
  const memory = createMemoryJournals();
  const before = sessionWith(playing({ ...turnsOfTwo, second: [read, { ...finish, delayMs: 1_000 }] }), memory);
  const handle = before.start(two, task);
  let turns = 0;
  for await (const { type } of handle.events) {
    if (type === "turn.started") turns += 1;
    if (turns === 3) break;
  }
  await handle.suspend();
  await before.close();
  const session = sessionWith(playing(turnsOfTwo), memory);
  counter.start();
  const result = await session.resume(two, handle.runId);
  const counts = counter.stop();
  check(result);
  await session.close();
  return counts;
};

/** What happens between a result and the next state's first hook: the first stage's `assert` begins, `setup` of the second ends it. */
const route: Scenario = async (counter) => {
  let counts: Counts = {};
  const first = stage({
    ...common,
    allowedTools: [],
    assert: () => {
      counter.start();
      return "ok";
    },
  });
  const second = stage({
    ...common,
    allowedTools: [],
    setup: () => {
      counts = counter.stop();
      return null;
    },
  });
  const routed = pipeline({ id: "routed", input, stages: { first, second }, initial: "first", next });
  const session = sessionWith(playing({ first: [finish], second: [finish] }));
  check(await session.start(routed, task));
  await session.close();
  return counts;
};

/** From one model call of a stage to its next. */
const turn: Scenario = async (counter) => {
  let counts: Counts = {};
  const script = playing({ work: [words, finish] });
  const at: ResolvedModel["at"] = (position) => {
    if (position.turn === 0) counter.start();
    else counts = counter.stop();
    return script.at(position);
  };
  const session = sessionWith({ ...script, at });
  check(await session.start(reading, task));
  await session.close();
  return counts;
};

export const SCENARIOS = {
  "two turns": run(reading, () => ({ work: [words, finish] })),
  "a read call": run(reading, () => ({ work: [read, finish] })),
  "a write": run(writing, () => ({ writer: [write(), finish] })),
  "a granted write": run(reading, () => ({ work: [write(), finish] })),
  "four states": run(chained, () => turnsOfFour),
  "a fan-out": run(forked, () => turnsOfFour),
  "two states": run(two, () => turnsOfTwo),
  "two states resumed": resumed,
  "a turn": turn,
  "a route": route,
} as const satisfies Readonly<Record<string, Scenario>>;
