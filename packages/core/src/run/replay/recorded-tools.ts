import { digestOf } from "../../base/canonical.ts";
import { SluiceError } from "../../base/errors.ts";
import { field, type Json, textField } from "../../base/json.ts";
import type { ToolEffect } from "../../gate/subjects.ts";
import type { Bound, BoundInput, Question, Tool } from "../../gate/tool.ts";
import { readEvents } from "../../journal/record.ts";
import type { JournalRecord, RunJournal } from "../../journal/seam.ts";
import { parseStepId } from "../../journal/step-id.ts";
import type { Issue } from "../../schema/schema.ts";
import { type RecordedVerdict, readVerdicts } from "../tool-calls/verdict.ts";

/**
 * The tools of a replay: those of the record in its order, then other live ones. A live tool validates arguments and makes its
 * questions; a missing one accepts what the record says it accepted. None of them reads files or acts.
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
  const bindWithoutWork = async (given: Json): Promise<Bound> => {
    const bound = await bind(given);
    return bound.ok ? inert(bound.input, bound.question) : bound;
  };
  return Object.freeze({ name, description, effect, inputSchema, schemaDigest, bind: bindWithoutWork });
}

/** An accepted input that touches nothing and cannot act. */
function inert(input: Json, question: Question | undefined): BoundInput {
  const execute = (): Promise<never> =>
    Promise.reject(new SluiceError("Host", "replay_acted", "a replay runs no tool; this is a bug in Sluice"));
  return Object.freeze({ ok: true, input, question, subjects: () => [], execute });
}

/** Replaces a missing tool by its recorded calls. */
function standIn(name: string, { effects, misfits }: RecordedCalls): Tool {
  return Object.freeze({
    name,
    description: "recorded",
    effect: effects.get(name) ?? "write",
    inputSchema: {},
    schemaDigest: "",
    bind: async (given: Json): Promise<Bound> => {
      const issues = misfits.get(keyOf(name, digestOf(given)));
      return issues === undefined ? inert(given, undefined) : { ok: false, issues };
    },
  });
}

interface RecordedCalls {
  /** Effects of the tools that were called, as far as the record shows them. */
  readonly effects: ReadonlyMap<string, ToolEffect>;
  /** Issues of arguments that did not fit, by tool and digest. */
  readonly misfits: ReadonlyMap<string, readonly Issue[]>;
}
const NO_CALLS: RecordedCalls = { effects: new Map(), misfits: new Map() };

function keyOf(tool: string, digest: string): string {
  return JSON.stringify([tool, digest]);
}

function recordedCalls(journals: readonly RunJournal[]): RecordedCalls {
  const effects = new Map<string, ToolEffect>();
  const misfits = new Map<string, readonly Issue[]>();
  for (const { runId, records } of journals) {
    const opened = new Set<string>();
    let verdicts: readonly RecordedVerdict[] = [];
    for (const record of records) {
      const { phase, stepId } = record;
      if (phase === "open") opened.add(stepId);
      const step = parseStepId(stepId);
      if (phase !== "done" || step.kind !== "calls") continue;
      if (step.part === "verdicts") {
        // A custom executor may give a step such a name.
        verdicts = readVerdicts(record.value) ?? [];
        // Only reads are in groups of several calls.
        if (verdicts.length > 1) for (const { tool } of verdicts) effects.set(tool, "read");
        for (const [key, issues] of misfitsIn(runId, record, verdicts)) misfits.set(key, issues);
      }
      const [only] = verdicts;
      if (only === undefined) continue;
      if (step.part === "question") effects.set(only.tool, "ask");
      // Only reads run without an open record.
      else if (step.part === "call" && !opened.has(stepId)) effects.set(only.tool, "read");
    }
  }
  return { effects, misfits };
}

function misfitsIn(runId: string, record: JournalRecord, verdicts: readonly RecordedVerdict[]) {
  const digests = new Map(readEvents(runId, record).map(({ data }) => [data.callId, data.argsDigest]));
  return verdicts.flatMap(({ id, tool, verdict }) => {
    const digest = digests.get(id);
    const refused = verdict.kind === "refused" && field(verdict.output, "code") === "invalid_tool_input";
    return refused && typeof digest === "string" ? [[keyOf(tool, digest), issuesIn(verdict.output)] as const] : [];
  });
}

function issuesIn(output: Json): readonly Issue[] {
  const issues = field(output, "issues");
  const all: readonly Json[] = Array.isArray(issues) ? issues : [];
  return all.map((issue) => ({ path: textField(issue, "path") ?? "", message: textField(issue, "message") ?? "" }));
}
