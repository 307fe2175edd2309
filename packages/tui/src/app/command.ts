import { type Answer, SluiceError } from "@sluice/core";
import type { MessageKind } from "@sluice/stages";
import type { RunView } from "@sluice/view";
import type { NamedCard } from "../cards/card-controller.ts";
import type { Card } from "../cards/card-stack.ts";
import type { CommandSpec } from "../composer/completion/completion.ts";
import type { Engine, KnownRun } from "./engine.ts";
import type { NewQuestion } from "./overlay/question.ts";
import type { Viewer } from "./overlay/viewer.ts";

/** A slash command. Commands work while runs are active. */
export interface Command extends CommandSpec {
  /** The syntax after the name: `<pipeline> <task>`. */
  readonly usage: string;
  /** `words` is the text after the name. Errors are shown. */
  run(words: string, app: Steering): void | Promise<void>;
}

export type NoticeTone = "plain" | "good" | "bad" | "notice";

/** A command that cannot be run as it was typed. */
export function usageError(message: string): SluiceError {
  return new SluiceError("Validation", "usage", message);
}

/** The app, as commands use it. */
export interface Steering {
  readonly engine: Engine;
  /** The run on screen. */
  focus(): { readonly run: KnownRun; readonly view: RunView } | undefined;
  /** Watches a run and shows it. */
  turnTo(run: KnownRun): void;
  /** A run by its id or a unique prefix. Throws if no or several runs match. */
  find(runId: string): Promise<KnownRun>;
  /** The run that the first word names, else the run on screen. Throws if there is none. */
  named(words: string): Promise<KnownRun>;
  /** Opens a viewer over the frame; `onEnter` is called with the chosen row. */
  show(viewer: Viewer, onEnter?: (row: number) => void): void;
  /** Opens the transcript of an execution, by default of the one on screen. */
  showTranscript(execution?: string): void;
  /** Sends a message to a run, or to one below it, without the secrets that are known here. Throws why it is not accepted. */
  send(run: Pick<KnownRun, "runId" | "host">, text: string, kind: MessageKind): Promise<void>;
  ask(question: NewQuestion): void;
  /** The waiting cards with the names that commands use. */
  waiting(): readonly NamedCard[];
  answer(card: Card, answer: Answer): void;
  say(text: string, tone?: NoticeTone): void;
  /** Runs a longer operation, named in the status line, and shows its errors. */
  perform(work: () => Promise<void>, what?: string): Promise<void>;
  /** Restores a text in the composer. */
  putBack(text: string): void;
  quit(): void;
  readonly commands: readonly Command[];
  readonly here: string;
  now(): number;
}
