import {
  type AllowedTool,
  type CallOutcome,
  type CallRequest,
  defineTool,
  done,
  type GuardHook,
  type Json,
  type OpenRequest,
  pipeline,
  type RunHost,
  SluiceError,
  type Subject,
  type ToolSpec,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import {
  type AnswerSeal,
  createConcurrencySlots,
  createRunMeter,
  createSecretFilter,
  type People,
  pipelineProgram,
} from "@sluice/core/runtime";
import fc from "fast-check";
import { z } from "zod";
import { compileEnvelope } from "../../packages/core/src/gate/envelope.ts";
import type { RunDeps } from "../../packages/core/src/run/deps.ts";
import { createAnswerRule } from "../../packages/core/src/run/requests/answer.ts";
import { handClock } from "./hand-clock.ts";
import { changed } from "./journal.ts";
import { completed, json, work, workExecutor } from "./run-kit.ts";

// Random tool calls through the run loop: turns of calls, a process that dies at some record, another one in which anything may have
// changed, cancels, and people who answer anything.

const TOOLS = ["Peek", "Look", "Note", "Push", "Ask"] as const;
type ToolName = (typeof TOOLS)[number];

/** How a tool is made in one process. */
export interface ToolMade {
  readonly effect: "read" | "write" | "ask";
  readonly input: "any" | "strict" | "one" | "two";
  readonly touches: "nothing" | "a" | "b" | "outside" | "unknown" | "throws" | "odd";
  readonly prepares: "no" | "yes" | "throws" | "odd";
  readonly runs: "well" | "throws" | "odd" | "slowly";
  readonly recovers: "no" | "done" | "not_started" | "unknown" | "odd";
}
export interface Life {
  readonly tools: Readonly<Record<ToolName, ToolMade>>;
  readonly missing: readonly ToolName[];
  readonly builtins: readonly ToolName[];
  readonly allowedTools: readonly AllowedTool[] | undefined;
  readonly mode: "ask" | "allowlist" | "yolo";
  readonly allow: readonly AllowedTool[];
  readonly hooks: Readonly<
    Record<"session" | "pipeline" | "state", "none" | "fine" | "vetoes" | "throws" | "odd" | "cancels">
  >;
  readonly protects: boolean;
  readonly reachable: boolean;
}
export type AnswerGiven =
  | "approve"
  | "deny"
  | "defer"
  | "none"
  | "value"
  | "other digest"
  | "no digest"
  | "garbage"
  | "cancel";
export interface CallScenario {
  readonly turns: readonly (readonly Omit<CallRequest, "id">[])[];
  readonly first: Life;
  readonly second: Life;
  /** The record that the first process fails to write: the `nth` of a step with this ending. */
  readonly stop: RecordPlace | undefined;
  /** The record after which the run is cancelled. */
  readonly cancel: RecordPlace | undefined;
  readonly answers: readonly AnswerGiven[];
}

/** The `nth` record of this phase whose step id holds `at`. */
interface RecordPlace {
  readonly at: string;
  readonly phase: "open" | "done";
  readonly nth: number;
}

/** What came of a scenario, without what differs between any two runs. */
export interface CallTrace {
  /** What tools did, in order. */
  readonly acted: readonly Acted[];
  /** Calls that guard hooks were asked about. */
  readonly guarded: readonly string[];
  readonly outcomes: readonly CallOutcome[];
  /** The records of the run: step, phase, value and events. */
  readonly records: readonly TracedRecord[];
  /** How each process ended. */
  readonly ends: readonly string[];
}
export interface Acted {
  /** The process, from 1. */
  readonly life: number;
  readonly what: "prepare" | "execute" | "recover";
  readonly tool: string;
  readonly callId: string;
  readonly input: Json;
  /** The last record that was written before: its step and phase. */
  readonly after: string;
}
export interface TracedRecord {
  readonly stepId: string;
  readonly phase: string;
  readonly value: string;
  readonly events: string;
}

const made = fc.record<ToolMade>({
  effect: fc.constantFrom("read", "write"),
  input: fc.constantFrom("any", "any", "any", "strict", "one", "two"),
  touches: fc.constantFrom("nothing", "a", "a", "a", "b", "outside", "unknown", "throws", "odd"),
  prepares: fc.constantFrom("no", "yes", "yes", "throws", "odd"),
  runs: fc.constantFrom("well", "well", "well", "throws", "odd", "slowly"),
  recovers: fc.constantFrom("no", "done", "not_started", "not_started", "not_started", "unknown", "odd"),
});
const rules = fc.constantFrom("Peek", "Look", "Note", "Push", "Ask", "Peek(src/**)", "Note(src/**)", "Push(src/a.ts)");
const listed = fc.array(rules, { maxLength: 4 });
const hook = fc.constantFrom(
  "none",
  "none",
  "none",
  "none",
  "none",
  "none",
  "none",
  "fine",
  "fine",
  "vetoes",
  "vetoes",
  "throws",
  "odd",
  "cancels",
);

const lifeOf: fc.Arbitrary<Life> = fc.record({
  tools: fc.record({
    Peek: made.map((tool) => ({ ...tool, effect: "read" as const })),
    Look: made.map((tool) => ({ ...tool, effect: "read" as const })),
    Note: made.map((tool) => ({ ...tool, effect: "write" as const })),
    Push: made,
    Ask: made.map((tool) => ({ ...tool, effect: "ask" as const })),
  }),
  missing: fc.subarray([...TOOLS], { maxLength: 1 }).map((names) => (names[0] === "Push" ? names : [])),
  builtins: fc.subarray([...TOOLS]),
  allowedTools: fc.option(listed, { nil: undefined, freq: 4 }),
  mode: fc.constantFrom("ask", "allowlist", "yolo"),
  allow: listed,
  hooks: fc.record({ session: hook, pipeline: hook, state: hook }),
  protects: fc.boolean(),
  reachable: fc.integer({ min: 0, max: 9 }).map((dice) => dice > 1),
});

const fault = fc.constantFrom<NonNullable<CallRequest["inputFault"]>>(
  { code: "invalid_tool_input", message: "not JSON" },
  { code: "invalid_tool_input", message: "not JSON", raw: "{" },
  { code: "truncated_call", message: "cut off", raw: '{"n":' },
);
const request: fc.Arbitrary<Omit<CallRequest, "id">> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      tool: fc.constantFrom(...TOOLS, ...TOOLS, ...TOOLS, "Gone"),
      input: fc.constantFrom<Json>(
        { n: 1 },
        { n: 1 },
        { n: 2 },
        { n: 1, deep: { key: "hunter22" } },
        { m: 1 },
        Number.NaN,
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ tool: fc.constantFrom(...TOOLS), inputFault: fault }) },
);

const place: fc.Arbitrary<RecordPlace> = fc.record({
  at: fc.constantFrom("/verdicts", "/approvals", "/call", "/call", "/call", "/question", "/answer", "wait/", "/leave"),
  phase: fc.constantFrom("open", "done", "done"),
  nth: fc.integer({ min: 1, max: 3 }),
});

export const callScenario: fc.Arbitrary<CallScenario> = fc
  .record({
    turns: fc.array(fc.array(request, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 4 }),
    // The same call again and again, for what is counted.
    repeats: fc.option(fc.integer({ min: 2, max: 7 }), { freq: 8 }),
    first: lifeOf,
    other: lifeOf,
    changes: fc.subarray<keyof Life>([
      "tools",
      "missing",
      "builtins",
      "allowedTools",
      "mode",
      "allow",
      "hooks",
      "protects",
      "reachable",
    ]),
    stays: fc.boolean(),
    stop: fc.option(place, { nil: undefined, freq: 6 }),
    cancel: fc.option(place, { nil: undefined, freq: 1 }).map((at) => (at?.nth === 3 ? at : undefined)),
    answers: fc.array(
      fc.constantFrom<AnswerGiven>(
        ...([
          "approve",
          "approve",
          "approve",
          "approve",
          "deny",
          "defer",
          "none",
          "value",
          "other digest",
          "no digest",
          "garbage",
        ] as const),
        ...(["approve", "approve", "cancel"] as const),
      ),
      { minLength: 1, maxLength: 4 },
    ),
  })
  .map(({ turns, repeats, first, other, changes, stays, stop, cancel, answers }) => {
    const [call] = turns[0] ?? [];
    const again = repeats === null || call === undefined ? [] : Array.from({ length: repeats }, () => [call]);
    const second = stays ? first : { ...first, ...Object.fromEntries(changes.map((key) => [key, other[key]])) };
    return { turns: [...turns, ...again], first, second, stop, cancel, answers };
  });

/** How many calls a scenario asks for. */
export function callsIn({ turns }: CallScenario): number {
  return turns.reduce((sum, calls) => sum + calls.length, 0);
}

const root = "/ws";

export async function traceOf(scenario: CallScenario): Promise<CallTrace> {
  const clock = handClock();
  const memory = createMemoryJournals();
  const runId = "r1";
  const acted: Acted[] = [];
  const guarded: string[] = [];
  const ends: string[] = [];
  let outcomes: readonly CallOutcome[] = [];
  let written = "";
  let cancelNow = (): void => undefined;

  const hooked = (life: number, owner: keyof Life["hooks"], { hooks }: Life): GuardHook | undefined => {
    const does = hooks[owner];
    if (does === "none") return undefined;
    return (call) => {
      guarded.push(`${life} ${owner} ${call.tool} ${call.proposalId} ${call.approvedBy} ${JSON.stringify(call.input)}`);
      const isOdd = JSON.stringify(call.input).includes("2");
      if (does === "cancels" && isOdd) cancelNow();
      if (does === "fine" || does === "cancels" || !isOdd) return undefined;
      if (does === "throws") throw new Error("a hook's bug with hunter22");
      return does === "vetoes" ? { veto: "not with hunter22" } : JSON.parse("true");
    };
  };

  const toolsOf = (life: number, { tools, missing }: Life): readonly ToolSpec[] =>
    TOOLS.filter((name) => !missing.includes(name)).map((name) =>
      toolSpec(name, tools[name], (what, callId, input) => {
        acted.push({ life, what, tool: name, callId, input, after: written });
        if (what === "execute" && tools[name].runs === "slowly") clock.turn(6_000);
      }),
    );

  const stateOf = (life: number, given: Life) => {
    const onCall = hooked(life, "state", given);
    return work({
      ...(given.allowedTools === undefined ? {} : { allowedTools: given.allowedTools }),
      ...(onCall === undefined ? {} : { onCall }),
      limits: { timeoutMs: 15_000 },
      act: async (scope) => {
        const all: CallOutcome[] = [];
        for (const [turn, requests] of scenario.turns.entries()) {
          const calls = requests.map((call, index) => ({ ...call, id: `t${turn + 1}.c${index}` }));
          all.push(...(await scope.calls(turn + 1, calls)));
        }
        outcomes = all;
        return completed(json(all));
      },
    });
  };

  const counted = (place: RecordPlace | undefined) => {
    let seen = 0;
    return ({ stepId, phase }: { readonly stepId: string; readonly phase: string }): boolean =>
      place !== undefined && stepId.includes(place.at) && phase === place.phase && ++seen === place.nth;
  };
  const cancels = counted(scenario.cancel);

  const alive = async (life: number, given: Life, resumes: boolean): Promise<boolean> => {
    const store = memory.connect();
    const stops = counted(scenario.stop);
    const cancel = (): void => void host.cancel(runId, "enough", "me").catch(() => undefined);
    cancelNow = cancel;
    const host: RunHost = createHost(
      changed(store, {
        append: (commit) => {
          if (life === 1 && stops(commit.record)) throw new SluiceError("Host", "store_io", "the disk failed");
          written = `${commit.record.stepId} ${commit.record.phase}`;
          if (cancels(commit.record)) setImmediate(cancel);
          return store.append(commit);
        },
      }),
      { clock },
    );
    const people: People = {
      reachable: () => given.reachable,
      offer: (request, seal) => {
        const index = [...request.requestId].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
        const answer = scenario.answers[index % scenario.answers.length] ?? "deny";
        setImmediate(() => {
          const name = `request/${request.requestId}`;
          if (answer === "cancel") cancel();
          else host.signal(runId, { name, payload: payloadOf(answer, request, seal), by: "me" }).catch(() => undefined);
        });
      },
      withdraw: () => undefined,
    };
    const pipelineHook = hooked(life, "pipeline", given);
    const sessionHook = hooked(life, "session", given);
    const { spec } = pipeline({
      id: "calls",
      input: z.object({}),
      stages: { one: stateOf(life, given) },
      initial: "one",
      next: { one: ({ output }) => done(output) },
      ...(pipelineHook === undefined ? {} : { onCall: pipelineHook }),
    });
    const deps: Omit<RunDeps, "tools"> = {
      clock,
      executors: new Map([["work", workExecutor]]),
      mode: given.mode,
      allow: compileEnvelope(given.allow),
      builtins: new Set(given.builtins),
      ...(given.protects ? { protectedPaths: [`${root}/src/b.ts`] } : {}),
      ...(sessionHook === undefined ? {} : { onCall: sessionHook }),
      workspace: { root },
      env: {},
      secrets: createSecretFilter(new Map([["hunter22", "key"]])),
      slots: createConcurrencySlots(4),
      people,
      answers: createAnswerRule({ any: false, unwalled: false }),
      maxParallelReads: 8,
      atWork: { count: 0, started: 0 },
    };
    try {
      const tools = new Map(toolsOf(life, given).map((tool) => [tool.name, defineTool(tool)]));
      const meter = createRunMeter(spec.limits, clock);
      const program = pipelineProgram(spec, { ...deps, tools }, meter);
      const task = resumes
        ? await host.resume(runId, program)
        : await host.start({ runId, input: {}, events: [{ type: "run.started", data: {} }], program });
      const settled = await task.settled;
      ends.push("end" in settled ? settled.end.status : settled.suspended);
      return true;
    } catch (thrown) {
      ends.push(thrown instanceof SluiceError ? thrown.code : String(thrown));
      return false;
    } finally {
      await host.close();
    }
  };

  const isOver = await alive(1, scenario.first, false);
  if (!isOver) await alive(2, scenario.second, true);
  const reader = createHost(memory.connect(), { clock });
  const [journal] = await reader.journal(runId);
  await reader.close();
  const records = (journal?.records ?? []).map(({ stepId, phase, value, events }) => ({
    stepId,
    phase,
    value,
    events: events.replaceAll(/"incarnation":"[^"]*"/g, '"incarnation":"x"'),
  }));
  return { acted, guarded, outcomes, records, ends };
}

function payloadOf(answer: AnswerGiven, { digest }: OpenRequest, { seal }: AnswerSeal): Json {
  switch (answer) {
    case "approve":
    case "deny":
    case "defer":
      return seal({ kind: answer, digest });
    case "none":
      return seal({ kind: "none", cause: "timeout" });
    case "value":
      return seal({ kind: "value", value: "left", digest });
    case "other digest":
      return seal({ kind: "approve", digest: "0".repeat(64) });
    case "no digest":
      return seal({ kind: "approve" });
    default:
      return "approve";
  }
}

type Tell = (what: Acted["what"], callId: string, input: Json) => void;

function toolSpec(name: string, how: ToolMade, tell: Tell): ToolSpec {
  const paths: Readonly<Record<"a" | "b" | "outside", Subject>> = {
    a: { kind: "path", real: `${root}/src/a.ts`, access: "write" },
    b: { kind: "path", real: `${root}/src/b.ts`, access: "write" },
    outside: { kind: "path", real: "/etc/passwd", access: "write" },
  };
  const inputs = {
    any: { type: "object" },
    strict: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    one: z.object({ n: z.number().default(0), extra: z.number().default(1) }),
    two: z.object({ n: z.number().default(0), extra: z.number().default(2) }),
  } as const;
  const spec: ToolSpec = {
    name,
    description: `${name}.`,
    input: inputs[how.input],
    effect: how.effect,
    subjects: () => {
      if (how.touches === "throws") throw new Error("cannot tell because of hunter22");
      if (how.touches === "nothing") return [];
      if (how.touches === "unknown") return [{ kind: "opaque", reason: "hunter22 decides" }];
      if (how.touches === "odd") return [Object({ kind: "path", real: "/ws/x", access: "read", size: 1n })];
      return [paths[how.touches]];
    },
    execute: async (input, call) => {
      tell("execute", call.proposalId, json(input));
      await new Promise((resolve) => setImmediate(resolve));
      if (how.runs === "throws") throw new Error("disk full of hunter22");
      if (how.runs === "odd") return { ok: true, output: Object(new Date(0)) };
      return { ok: true, output: `${name} ran`, notes: { [name]: call.proposalId } };
    },
    ...(how.effect === "ask" ? { question: () => ({ question: "Which one?", answer: { type: "string" } }) } : {}),
  };
  const prepared = {
    ...spec,
    prepare: (input: Json, call: { readonly proposalId: string }) => {
      tell("prepare", call.proposalId, json(input));
      if (how.prepares === "throws") throw new Error("cannot prepare");
      return how.prepares === "odd" ? Object({ at: 1n }) : { before: "hash" };
    },
  };
  const withPrepare = how.prepares === "no" ? spec : prepared;
  if (how.recovers === "no") return withPrepare;
  const answers = {
    done: { done: { notes: { again: 1 } } },
    not_started: "not_started",
    unknown: "unknown",
    odd: Object(7),
  } as const;
  const answer = answers[how.recovers];
  return {
    ...withPrepare,
    recover: (intent, call) => {
      tell("recover", call.proposalId, intent);
      return answer;
    },
  };
}
