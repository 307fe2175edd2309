import { digestOf } from "../../base/canonical.ts";
import { SluiceError } from "../../base/errors.ts";
import { field, type Json, parseJson } from "../../base/json.ts";
import type { ToolEffect } from "../../gate/subjects.ts";
import { type Bound, BoundCall, type PreparedCall, type Tool } from "../../gate/tool.ts";
import { readEvents } from "../../journal/record/hash-chain.ts";
import type { JournalRecord, RunJournal } from "../../journal/seam.ts";
import { parseStepId } from "../../journal/step-id.ts";
import type { Issue } from "../../schema/schema.ts";
import { type RecordedVerdict, readVerdicts } from "../tool-calls/verdict.ts";

/** What a replay has in the place of what acts: nothing ever comes to it. */
const NOTHING_RUNS: PreparedCall = {
  execute: () =>
    Promise.reject(new SluiceError("Host", "replay_acted", "a replay runs no tool; this is a fault of Sluice")),
};

/**
 * The tools of a replay: those of the record in its order, then what is live beside them. A live one checks arguments by its schema
 * and puts its questions; one that is not here takes what the record says was taken. None of them can look at the world or act.
 */
export function replayTools(
  live: ReadonlyMap<string, Tool>,
  recorded: readonly string[],
  journals: readonly RunJournal[],
): ReadonlyMap<string, Tool> {
  const names = [...new Set([...recorded, ...live.keys()])];
  const missing = names.some((name) => !live.has(name));
  const known = missing ? recordedCalls(journals) : NO_CALLS;
  return new Map(
    names.map((name) => {
      const tool = live.get(name);
      return [name, tool === undefined ? standIn(name, known) : withoutWork(tool)];
    }),
  );
}

function withoutWork({ name, description, effect, inputSchema, schemaDigest, bind }: Tool): Tool {
  const harmless = async (given: Json): Promise<Bound> => {
    const bound = await bind(given);
    return bound.ok ? { ok: true, call: boundCall(name, given, bound.call.input, bound.call.question) } : bound;
  };
  return Object.freeze({ name, description, effect, inputSchema, schemaDigest, bind: harmless });
}

function boundCall(tool: string, given: Json, input: Json, question: BoundCall["question"]): BoundCall {
  return new BoundCall({ tool, given, input, question, subjects: () => [], work: NOTHING_RUNS });
}

/** A tool of which nothing is known but its name and what was recorded of its calls. */
function standIn(name: string, { effects, misfits }: RecordedCalls): Tool {
  return Object.freeze({
    name,
    description: "recorded",
    effect: effects.get(name) ?? "write",
    inputSchema: {},
    schemaDigest: "",
    bind: async (given: Json): Promise<Bound> => {
      const issues = misfits.get(keyOf(name, digestOf(given)));
      return issues === undefined
        ? { ok: true, call: boundCall(name, given, given, undefined) }
        : { ok: false, issues };
    },
  });
}

interface RecordedCalls {
  /** Of the tools that were called; reads alone are judged in one group, and run without a record before them. */
  readonly effects: ReadonlyMap<string, ToolEffect>;
  /** Arguments that did not fit, by tool and digest. */
  readonly misfits: ReadonlyMap<string, readonly Issue[]>;
}
const NO_CALLS: RecordedCalls = { effects: new Map(), misfits: new Map() };

function keyOf(tool: string, digest: string): string {
  return JSON.stringify([tool, digest]);
}

/** What the records say of tools that are not here. */
function recordedCalls(journals: readonly RunJournal[]): RecordedCalls {
  const effects = new Map<string, ToolEffect>();
  const misfits = new Map<string, readonly Issue[]>();
  for (const { runId, records } of journals) {
    const announced = new Set<string>();
    let judged: readonly RecordedVerdict[] = [];
    for (const record of records) {
      const { phase, stepId } = record;
      if (phase === "open") announced.add(stepId);
      const step = parseStepId(stepId);
      if (phase !== "done" || step.kind !== "calls") continue;
      if (step.part === "verdicts") {
        // An executor may name a step of its own like one of these.
        judged = readVerdicts(record.value) ?? [];
        if (judged.length > 1) for (const { tool } of judged) effects.set(tool, "read");
        for (const [key, issues] of misfitsIn(runId, record, judged)) misfits.set(key, issues);
      }
      const [only] = judged;
      if (only === undefined) continue;
      if (step.part === "question") effects.set(only.tool, "ask");
      else if (step.part === "call" && !announced.has(stepId)) effects.set(only.tool, "read");
    }
  }
  return { effects, misfits };
}

function misfitsIn(runId: string, record: JournalRecord, judged: readonly RecordedVerdict[]) {
  const digests = new Map(readEvents(runId, record).map(({ data }) => [data.callId, data.argsDigest]));
  return judged.flatMap(({ id, tool, verdict }) => {
    const digest = digests.get(id);
    const refused = verdict.kind === "refused" && field(verdict.output, "code") === "invalid_tool_input";
    return refused && typeof digest === "string" ? [[keyOf(tool, digest), issuesIn(verdict.output)] as const] : [];
  });
}

function issuesIn(output: Json): readonly Issue[] {
  const read = parseJson(JSON.stringify(field(output, "issues") ?? []));
  const all = read.ok && Array.isArray(read.value) ? read.value : [];
  return all.map((issue: Json) => ({ path: textIn(issue, "path"), message: textIn(issue, "message") }));
}

function textIn(value: Json, key: string): string {
  const found = field(value, key);
  return typeof found === "string" ? found : "";
}
