import type { Clock } from "@sluice/core";
import type { RunView } from "@sluice/view";
import type { Line } from "@sluice/view/text";
import type { CardStack } from "../cards/card-stack.ts";
import type { Composer } from "../composer/composer.ts";
import type { Command } from "./command.ts";
import type { AppContext, AppFlags, Engine, EngineHooks } from "./engine.ts";
import type { SentMessage } from "./outbox.ts";
import type { Question } from "./overlay/question.ts";
import type { FrameSize, Viewer } from "./overlay/viewer.ts";
import type { Watched } from "./watched.ts";

export interface AppOptions {
  /** The slash commands, in the order of /help. */
  readonly commands: readonly Command[];
  readonly flags: AppFlags;
  readonly context: AppContext;
  readonly createEngine: (hooks: EngineHooks) => Engine;
  readonly clock: Clock;
  readonly size: FrameSize;
  /** What the app does with the terminal besides drawing frames. */
  readonly terminal: AppTerminal;
}

export interface AppTerminal {
  /** Appends to the native scrollback, above the frame; no effect in fullscreen, which has no scrollback. */
  append(lines: readonly Line[]): void;
  /** Gives the terminal to `work` and draws the frame again afterwards. */
  lend<T>(work: () => Promise<T>): Promise<T>;
  /** Rings the bell. */
  alert(): void;
}

export interface AppExit {
  readonly exitCode: number;
  /** Printed after the terminal is restored. */
  readonly lines: readonly string[];
}

/** What a frame shows. */
export interface AppState {
  readonly composer: Composer;
  readonly cards: CardStack;
  readonly question: Question | undefined;
  readonly viewer: Viewer | undefined;
  readonly focus: Watched | undefined;
  readonly view: RunView | undefined;
  /** Messages of this app to the run on screen that no model has read yet. */
  readonly sent: readonly SentMessage[];
  readonly others: readonly RunView[];
  /** Shown in fullscreen before there is a run. */
  readonly welcome: readonly Line[];
  readonly notices: readonly Line[];
  readonly size: FrameSize;
  readonly now: number;
  readonly flags: AppFlags;
  readonly busy: string | undefined;
  readonly quitting: boolean;
}
