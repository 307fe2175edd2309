import type { Answer } from "@sluice/core";
import type { RunView } from "@sluice/view";
import type { Engine, KnownRun } from "../app/engine.ts";
import type { Question } from "../app/overlay/question.ts";
import type { Viewer } from "../app/overlay/viewer.ts";
import type { NamedCard } from "../cards/card-controller.ts";
import type { Card } from "../cards/card-stack.ts";
import type { CommandSpec } from "../composer/completion/completion.ts";

/** A slash command. It works while runs are at work: the state machine gates tools, never the person. */
export interface Command extends CommandSpec {
  /** How it is written, after the name: `<pipeline> <task>`. */
  readonly usage: string;
  /** `words` is all that follows the name. What it throws is told, and nothing is lost. */
  run(words: string, app: Steering): void | Promise<void>;
}

export type NoticeTone = "plain" | "good" | "bad" | "notice";

/** What commands can do with the app. */
export interface Steering {
  readonly engine: Engine;
  /** The run that is looked at. */
  focus(): { readonly run: KnownRun; readonly view: RunView } | undefined;
  /** Turns to a run and follows it. */
  turnTo(run: KnownRun): void;
  /** A run by its id, or by what its id begins with. Throws when there is none or there are several. */
  find(runId: string): Promise<KnownRun>;
  /** The run a command is about: the one that is named, else the one that is looked at. Throws when there is neither. */
  named(words: string): Promise<KnownRun>;
  /** Opens something over the frame; `onEnter` gets the row that was chosen. */
  show(viewer: Viewer, onEnter?: (row: number) => void): void;
  /** Opens the transcript of an execution, of the one that is looked at when omitted. */
  showTranscript(execution?: string): void;
  ask(question: Omit<Question, "chosen" | "since">): void;
  /** What waits for an answer, with the names by which it is answered in words. */
  waiting(): readonly NamedCard[];
  answer(card: Card, answer: Answer): void;
  say(text: string, tone?: NoticeTone): void;
  /** Does something that takes a while; what it throws is told. */
  perform(work: () => Promise<void>, what?: string): Promise<void>;
  /** Puts a text back into the composer, so that nothing typed is lost. */
  putBack(text: string): void;
  quit(): void;
  readonly commands: readonly Command[];
  readonly here: string;
  now(): number;
}
