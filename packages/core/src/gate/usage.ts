// What the calls of an execution have used of its hard limits, and which call would go beyond one.
import type { StateLimits } from "../definition/state-rules.ts";
import { isWalled } from "./envelope.ts";
import { type Cleaning, commandExcerpt } from "./excerpt.ts";
import type { FileEdit, Subject, ToolEffect } from "./subjects.ts";

/** The sum over calls in their order. Each of `countCall`, `countAllowed` and `countResult` adds to it. */
export interface CallUsage {
  /** The `key` of the last call. */
  readonly last: string;
  /** How often it was made in a row. */
  readonly times: number;
  /** Calls that were allowed to run. */
  readonly calls: number;
  /** Lines that they edit; 0 where edits are not limited. */
  readonly editLines: number;
  /** Real paths of the files that they edit, without duplicates; none where edits are not limited. */
  readonly files: readonly string[];
  /** Bytes of UTF-8 of their results; 0 where these are not limited. */
  readonly resultBytes: number;
}
export const NO_CALLS: CallUsage = { last: "", times: 0, calls: 0, editLines: 0, files: [], resultBytes: 0 };

/** With a call that was made, whether or not it may run. */
export function countCall(usage: CallUsage, { key }: { readonly key: string }): CallUsage {
  return { ...usage, last: key, times: key === usage.last ? usage.times + 1 : 1 };
}

/** With a call that may run, and with what it edits. */
export function countAllowed(usage: CallUsage, edits?: readonly FileEdit[]): CallUsage {
  const { calls, editLines, files } = usage;
  if (edits === undefined) return { ...usage, calls: calls + 1 };
  return {
    ...usage,
    calls: calls + 1,
    editLines: editLines + linesOf(edits),
    files: [...files, ...newFiles(edits, files)],
  };
}

/** With the bytes of a result. */
export function countResult(usage: CallUsage, bytes: number): CallUsage {
  return { ...usage, resultBytes: usage.resultBytes + bytes };
}

/** Whether a state limits what its calls edit. Then commands may not write. */
export function limitsEdits({ maxEditLines, maxLinesPerEdit, maxFiles }: StateLimits = {}): boolean {
  return maxEditLines !== undefined || maxLinesPerEdit !== undefined || maxFiles !== undefined;
}

/** What a call would edit, or why that is not known. */
export type MeasuredEdits =
  | { readonly ok: true; readonly edits: readonly FileEdit[] }
  | { readonly ok: false; readonly reason: string };

interface MeasuredCall {
  readonly tool: string;
  readonly effect: ToolEffect;
  readonly subjects: readonly Subject[];
  /** Absent if its tool does not measure its calls. */
  readonly measured?: MeasuredEdits | undefined;
}

/** Why a call would go beyond a limit; undefined if it would not. `usage` is that of the calls before it. */
export function whyBeyond(
  call: MeasuredCall,
  limits: StateLimits,
  usage: CallUsage = NO_CALLS,
  cleaning: Cleaning = {},
): string | undefined {
  const { maxToolCalls } = limits;
  if (maxToolCalls !== undefined && usage.calls >= maxToolCalls)
    return `this stage may run ${counted(maxToolCalls, "tool call")}, and ${usage.calls} were run`;
  if (!limitsEdits(limits) || !mayWrite(call)) return undefined;
  const { measured } = call;
  if (measured === undefined) return whyUnmeasured(call, cleaning);
  return measured.ok ? whyTooMuch(measured.edits, limits, usage) : measured.reason;
}

function whyTooMuch(
  edits: readonly FileEdit[],
  limits: StateLimits,
  { editLines, files }: CallUsage,
): string | undefined {
  const { maxEditLines, maxLinesPerEdit, maxFiles } = limits;
  const lines = linesOf(edits);
  if (maxLinesPerEdit !== undefined && lines > maxLinesPerEdit)
    return `one call may edit ${counted(maxLinesPerEdit, "line")} in this stage, and this call would edit ${lines}; make smaller edits`;
  if (maxEditLines !== undefined && editLines + lines > maxEditLines)
    return `this stage may edit ${counted(maxEditLines, "line")}: ${editLines} are used, and this call would edit ${lines}`;
  const more = newFiles(edits, files).length;
  if (maxFiles !== undefined && files.length + more > maxFiles)
    return `this stage may edit ${counted(maxFiles, "file")}: ${files.length} are used, and this call would edit ${more} more`;
  return undefined;
}

/** Without a measure, only commands may run: those that are known to only read, or whose sandbox keeps the workspace as it is. */
function whyUnmeasured({ tool, subjects }: MeasuredCall, cleaning: Cleaning): string | undefined {
  const commands = subjects.filter((subject) => subject.kind === "command");
  const writes = subjects.some((subject) => subject.kind === "path" && subject.access === "write");
  if (isWalled(subjects)) return undefined;
  const rule = "this stage limits what its calls edit";
  if (commands.length === 0 && !subjects.some(({ kind }) => kind === "line"))
    return `${rule}, and ${tool} does not report what its calls change`;
  const unread = commands.find(({ readOnly }) => !readOnly);
  if (unread !== undefined)
    return `${rule}, so commands may only read: ${commandExcerpt(unread.argv, cleaning)} ${unread.why === undefined ? "is not known to only read" : `does more (${unread.why})`}`;
  if (commands.length > 0 && !writes && subjects.every(({ kind }) => READING.includes(kind))) return undefined;
  return `${rule}, so commands may only read, and this line may do more`;
}

/** What a line that only reads consists of, beside commands and paths that are checked one by one. */
const READING: readonly Subject["kind"][] = ["command", "path", "line"];

/** Whether a call may write as far as its tool says. */
function mayWrite({ effect, subjects }: MeasuredCall): boolean {
  return (
    effect === "write" ||
    subjects.some(
      (subject) =>
        (subject.kind === "path" && subject.access === "write") || (subject.kind === "command" && !subject.readOnly),
    )
  );
}

function linesOf(edits: readonly FileEdit[]): number {
  return edits.reduce((sum, { removed, added }) => sum + Math.max(removed, added), 0);
}

function newFiles(edits: readonly FileEdit[], files: readonly string[]): readonly string[] {
  return [...new Set(edits.map(({ real }) => real))].filter((real) => !files.includes(real));
}

function counted(count: number, what: string): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}
