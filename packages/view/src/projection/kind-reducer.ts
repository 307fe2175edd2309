// What states without a model record: the commands they ran, and what they completed with.
import { field, type JournalRecord, type Json, parseJson, type SluiceEvent } from "@sluice/core";
import { parseAttemptStep, redactJson, redactText } from "@sluice/core/runtime";
import { numberAt, textAt, textsAt } from "../words/fields.ts";
import type { ListBuilder } from "./append-only-list.ts";
import type { CommandView, TranscriptItem } from "./run-view.ts";

type AttemptStep = NonNullable<ReturnType<typeof parseAttemptStep>>;

/** What one record says of a state's own work. Redacted like events. */
export type KindEntry = { readonly executionId: string; readonly attempt: number } & (
  | { readonly kind: "prepared"; readonly words: readonly string[] }
  | { readonly kind: "began"; readonly number: number }
  | ({ readonly kind: "ended"; readonly number: number; readonly endedAt: number } & CommandEnd)
  | { readonly kind: "completed"; readonly output: Json }
);
type CommandEnd = Pick<CommandView, "state" | "exitCode" | "why" | "stdout" | "stderr" | "files">;

/** The entry of a record; undefined if it has none, or one that cannot be read. Never throws. */
export function kindEntry(record: JournalRecord): KindEntry | undefined {
  const step = parseAttemptStep(record.stepId);
  if (step === undefined) return undefined;
  const { executionId, attempt } = step;
  const number = commandNumber(step);
  if (number !== undefined && record.phase === "open") return { executionId, attempt, kind: "began", number };
  if (record.phase !== "done" || (number === undefined && !isKept(step, record))) return undefined;
  const read = parseJson(record.value);
  if (!read.ok) return undefined;
  if (number !== undefined) {
    const end = commandEnd(read.value);
    return end === undefined ? undefined : { executionId, attempt, kind: "ended", number, ...end };
  }
  if (step.kind === "enter") {
    // The list and not each word: a value is known by the flag before it.
    const words = textsAt(redactJson(field(read.value, "init") ?? null), "argv");
    return words.length === 0 ? undefined : { executionId, attempt, kind: "prepared", words: withoutShell(words) };
  }
  const result = field(read.value, "result");
  const output = field(result, "output");
  if (textAt(result, "status") !== "completed" || output === undefined) return undefined;
  return { executionId, attempt, kind: "completed", output: redactJson(output) };
}

/** The records of stages are large, and few of them are read here. */
function isKept({ kind }: AttemptStep, { value }: JournalRecord): boolean {
  return kind === "leave" || (kind === "enter" && value.includes('"argv"'));
}

/** The number of a start of a state's command, by the names of the steps of scripts and polls. */
function commandNumber(step: AttemptStep): number | undefined {
  if (step.kind !== "custom") return undefined;
  if (step.name === "command") return 1;
  const [, number] = /^attempt\/(\d{1,9})$/.exec(step.name) ?? [];
  return number === undefined ? undefined : Number(number);
}

/** A shell line is what its author wrote. */
function withoutShell(words: readonly string[]): readonly string[] {
  const [file, option, line] = words;
  return file === "/bin/sh" && option === "-c" && line !== undefined && words.length === 3 ? [line] : words;
}

function commandEnd(value: Json): (CommandEnd & { readonly endedAt: number }) | undefined {
  const endedAt = field(value, "endedAt");
  if (typeof endedAt !== "number") return undefined;
  const text = (key: string): string => redactText(textAt(value, key));
  const files = [text("stdoutFile"), text("stderrFile")].filter((file) => file !== "");
  const printed = { endedAt, stdout: text("stdout"), stderr: text("stderr"), files };
  switch (textAt(value, "kind")) {
    case "exited": {
      const isDone = field(value, "parsed") !== undefined;
      const misfit = text("misfit");
      const state = isDone ? "ok" : misfit === "" ? "ended" : "error";
      return { ...printed, state, exitCode: numberAt(value, "exitCode"), why: misfit };
    }
    case "broken":
    case "limit":
      return { ...printed, state: "error", why: text("message") };
    case "cancelled":
      return { ...printed, state: "error", why: "cancelled" };
    default:
      // Such as an attempt that did not start, as its poll was over.
      return undefined;
  }
}

/** Kinds of states whose completion is shown as it is; the items of others show it. */
const ANSWERS: ReadonlySet<string> = new Set(["human", "timer", "subPipeline", "authored"]);

/** The commands and answers of one execution. */
export class KindReducer {
  readonly #items: ListBuilder<TranscriptItem>;
  #words: readonly string[] = [];
  /** The index of the last command, while it can still change. */
  #open: number | undefined;

  constructor(items: ListBuilder<TranscriptItem>) {
    this.#items = items;
  }

  /** `of` is the kind of the state; `since` is when the entry's work began, if that is known. */
  entry(entry: KindEntry, of: string, since: number | undefined): void {
    switch (entry.kind) {
      case "prepared":
        this.#words = entry.words;
        break;
      case "began":
        this.#put(entry, of, { ...NOTHING, state: "running" });
        break;
      case "ended": {
        const { state, why, stdout, stderr, files, exitCode, endedAt } = entry;
        const ms = since === undefined ? {} : { ms: Math.max(0, endedAt - since) };
        const exit = exitCode === undefined ? {} : { exitCode };
        this.#put(entry, of, { state, why, stdout, stderr, files, ...exit, ...ms });
        break;
      }
      case "completed":
        if (ANSWERS.has(of)) this.#items.push({ kind: "answer", of, value: entry.output });
        break;
    }
  }

  /** Returns whether an item shows the event. */
  event({ type, data }: SluiceEvent): boolean {
    if (type === "attempt.finished") this.end("");
    const last = this.#last();
    if (type !== "sleep.started" || last === undefined || last.number !== numberAt(data, "attempt")) return false;
    this.#settle({ ...last, state: "not_yet", nextAt: numberAt(data, "until") });
    return true;
  }

  /** The command does not run any more. */
  end(why: string): void {
    const last = this.#last();
    if (last !== undefined) this.#settle({ ...last, state: "error", ...(why === "" ? {} : { why }) });
  }

  #last(): CommandView | undefined {
    const item = this.#open === undefined ? undefined : this.#items.at(this.#open);
    return item?.kind === "command" ? item : undefined;
  }

  #settle(command: CommandView): void {
    if (this.#open !== undefined) this.#items.replace(this.#open, command);
    this.#open = undefined;
  }

  #put({ attempt, number }: { readonly attempt: number; readonly number: number }, of: string, end: End): void {
    const command: CommandView = {
      kind: "command",
      ...{ attempt, number, isPoll: of === "poll", words: this.#words },
      ...end,
    };
    const last = this.#last();
    const isSame = last?.attempt === attempt && last.number === number;
    if (!isSame) this.end("");
    const index = this.#open ?? this.#items.length;
    if (isSame) this.#items.replace(index, command);
    else this.#items.push(command);
    this.#open = command.state === "running" || command.state === "ended" ? index : undefined;
  }
}

type End = Pick<CommandView, "state" | "exitCode" | "why" | "stdout" | "stderr" | "files" | "ms">;
const NOTHING = { why: "", stdout: "", stderr: "", files: [] } as const;
