import type { Clock } from "@sluice/core";
import type { RunView } from "@sluice/view";
import type { Line } from "@sluice/view/text";
import type { CardStack } from "../cards/desk.ts";
import type { Composer } from "../composer/composer.ts";
import type { FrameSize } from "../screen/frame.ts";
import type { AppContext, AppFlags, Engine, EngineHooks } from "./engine.ts";
import type { Question } from "./overlay/question.ts";
import type { Viewer } from "./overlay/viewer.ts";
import type { Watched } from "./watched.ts";

export interface AppOptions {
  readonly flags: AppFlags;
  readonly context: AppContext;
  readonly createEngine: (hooks: EngineHooks) => Engine;
  readonly clock: Clock;
  readonly size: FrameSize;
  /** The terminal as the app uses it, beside drawing frames. */
  readonly terminal: AppTerminal;
}

export interface AppTerminal {
  /** Appends to the native scrollback, above the frame. Nothing happens on a screen of its own, which has none. */
  append(lines: readonly Line[]): void;
  /** Lets `work` have the terminal, and draws the frame anew afterwards. */
  lend<T>(work: () => Promise<T>): Promise<T>;
  /** Draws attention, where the person is elsewhere. */
  alert(): void;
}

/** How the app was left. */
export interface AppExit {
  readonly exitCode: number;
  /** What is said on the terminal when it is free again. */
  readonly lines: readonly string[];
}

/** What the frame is made of. */
export interface AppState {
  readonly composer: Composer;
  readonly desk: CardStack;
  readonly question: Question | undefined;
  readonly viewer: Viewer | undefined;
  readonly focus: Watched | undefined;
  readonly view: RunView | undefined;
  readonly others: readonly RunView[];
  /** What stands there before there is a run, on a screen of its own. */
  readonly welcome: readonly Line[];
  readonly notices: readonly Line[];
  readonly size: FrameSize;
  readonly now: number;
  readonly flags: AppFlags;
  readonly busy: string | undefined;
  readonly quitting: boolean;
}
