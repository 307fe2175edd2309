import { join } from "node:path";
import { callbackInteractor, field, type Json, type JsonObject, type RunHost, type Tool } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import {
  createSession,
  type ResolvedModel,
  type ScriptedTurn,
  type Session,
  scriptedModel,
  type TurnPosition,
} from "@sluice/stages";
import type { LoadedWorkflow } from "@sluice/workflows";
import fc from "fast-check";
import { handClock } from "./hand-clock.ts";
import { type DocumentOptions, randomDocument } from "./random-documents.ts";
import { tool } from "./run-kit.ts";
import { loadTexts } from "./workflows.ts";

// Documents that run: what their agents say, and what people answer, depends on nothing but where it is said, so that a run that is
// killed and resumed hears the same.

const FILES = ["db/a.sql", "db/b.js", "notes.md", "src/x.ts"] as const;

const RUNNING: DocumentOptions = {
  states: ["plan", "build", "check", "fix"],
  events: ["GO", "BACK", "TRY"],
  tools: ["Peek", "Note", "Note(db/**)", "Push", "P*"],
  files: ["db/**", "**/*.sql", "notes.md"],
  workflows: ["./child.json"],
  everyField: false,
};
/** The workflow that they invoke. */
export const CHILD: JsonObject = {
  id: "child",
  initial: "within",
  context: { n: 0 },
  states: {
    within: {
      allowed_tools: ["Peek"],
      turn_cap: 3,
      on: { GO: { target: "over", guard: "ready" }, NEXT: "over", BACK: "within", STOP: "failed" },
    },
    over: { type: "final", outcome: "completed" },
    failed: { type: "final" },
  },
  guards: { ready: { field: "n", op: "eq", value: 1 } },
};

const data = fc.dictionary(
  fc.constantFrom("a", "b", "n", "tags"),
  fc.constantFrom<Json>(null, 0, 1, 2, "a", "pass", ["a"]),
  {
    maxKeys: 2,
    noNullPrototype: true,
  },
);
const said = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom("NEXT", "GO", "BACK", "TRY", "STOP", "GO", "BACK", "TRY", "what else"), data)
      .map(([event, given]) => ({ tool: "transition", input: { event, data: given } })),
  },
  { weight: 3, arbitrary: fc.constantFrom(...FILES).map((path) => ({ tool: "Note", input: { path } })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("Peek", "Push", "get_state", "Gone").map((name) => ({ tool: name, input: {} })),
  },
);
const turn: fc.Arbitrary<ScriptedTurn> = fc.array(said, { minLength: 1, maxLength: 3 }).map((calls) => ({ calls }));

export const documentStory = fc.record({
  document: randomDocument(RUNNING).map(bounded),
  /** What agents say; where they say it picks one. */
  turns: fc.array(turn, { minLength: 3, maxLength: 12, size: "max" }),
  /** What people answer, picked in the same way. */
  answers: fc.array(fc.constantFrom("approve", "approve", "deny", "nothing"), { minLength: 1, maxLength: 5 }),
  mode: fc.constantFrom("ask", "allowlist", "yolo"),
});
export type DocumentStory = typeof documentStory extends fc.Arbitrary<infer T> ? T : never;

/** Few turns and calls, so that random agents come to an end, and their limits are met. */
function bounded(document: JsonObject): JsonObject {
  const states = Object.entries(Object(document.states)).map(([name, state], index): readonly [string, Json] => {
    const own: JsonObject = Object(state);
    if (own.type === "final") return [name, own];
    const limits = { turn_cap: 4, ...(index % 2 === 1 ? { max_iterations: 2 } : {}) };
    const { allowed_tools, ...open } = own;
    // One in four has no envelope.
    return [name, { ...(index === 3 ? open : { ...open, allowed_tools: allowed_tools ?? [] }), ...limits }];
  });
  return { ...document, states: Object.fromEntries(states) };
}

export async function loadStory({ document }: DocumentStory): Promise<LoadedWorkflow> {
  return await loadTexts("w.json", { "w.json": JSON.stringify(document), "child.json": JSON.stringify(CHILD) });
}

/** A number that a place has, the same each time. */
function numberOf(...place: readonly (string | number)[]): number {
  let number = 7;
  for (const character of place.join("\n")) number = (number * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003;
  return number;
}

/** Without the id of its root, which no two runs share. */
export function placeOf(runId: string): string {
  return runId.includes("/") ? runId.slice(runId.indexOf("/")) : "";
}

function agents(turns: readonly ScriptedTurn[]): ResolvedModel {
  return {
    id: "random",
    secrets: [],
    at: (position: TurnPosition) => {
      const { stage, turn: at, attempt, runId = "" } = position;
      const reply = turns[numberOf(placeOf(runId), stage, at) % turns.length] ?? {};
      return scriptedModel({ stages: { [stage]: [reply] } }).at({ stage, turn: 0, attempt });
    },
  };
}

/** A real execution of a tool. */
export interface Ran {
  readonly tool: string;
  readonly path: string | undefined;
  readonly runId: string;
  readonly executionId: string;
  readonly callId: string;
}

export interface DocumentWorld {
  readonly ran: readonly Ran[];
  readonly host: RunHost;
  /** Another process on the same store. The caller closes it. */
  process(wrap?: (store: JournalStore) => JournalStore): Session;
}

const cwd = import.meta.dirname;

/** A store, the tools and the people of one story. */
export function documentWorld({ turns, answers, mode }: DocumentStory): DocumentWorld {
  const clock = handClock();
  const memory = createMemoryJournals();
  const ran: Ran[] = [];
  const noted = (name: string, spec: Parameters<typeof tool>[1] = {}): Tool =>
    tool(name, {
      prepare: () => null,
      // A call of a process that is gone had not begun, as far as these tools know.
      recover: () => "not_started",
      execute: async (input, { runId, executionId, proposalId }) => {
        const path = field(input, "path");
        ran.push({
          tool: name,
          path: typeof path === "string" ? path : undefined,
          runId,
          executionId,
          callId: proposalId,
        });
        return { ok: true, output: "done" };
      },
      ...spec,
    });
  const tools = [
    noted("Peek", { effect: "read" }),
    noted("Push"),
    noted("Note", {
      subjects: (input) => [{ kind: "path", real: join(cwd, String(field(input, "path"))), access: "write" }],
    }),
  ];
  const person = callbackInteractor("person", ({ runId, requestId }) => {
    const kind = answers[numberOf(placeOf(runId), requestId) % answers.length];
    return kind === "approve" || kind === "deny" ? { kind } : undefined;
  });
  const process: DocumentWorld["process"] = (wrap = (store) => store) =>
    createSession({
      env: {},
      sandbox: "off",
      model: agents(turns),
      clock,
      cwd,
      mode,
      allow: ["Push"],
      tools,
      interactors: [person],
      host: createHost(wrap(memory.connect()), { clock }),
    });
  return { ran, process, host: createHost(memory.connect(), { clock }) };
}
