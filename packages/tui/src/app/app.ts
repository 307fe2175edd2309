import { isSluiceError, messageOf, SluiceError } from "@sluice/core";
import { rootOf } from "../work/lookup.ts";
import type { AppOptions, AppState, Quitted } from "./app-state.ts";
import { Choices } from "./choices.ts";
import type { Command, NoticeTone, Steering } from "./commands/command.ts";
import { COMMANDS } from "./commands/registry.ts";
import { createEngine, type Engine, type KnownRun, resumeLine } from "./engine.ts";
import { Input } from "./input.ts";
import { isChord, type Key } from "./keys.ts";
import { noticeLines, promptLines } from "./notices.ts";
import { Overlay } from "./overlay.ts";
import type { DeskAction } from "./people/desk.ts";
import { DeskKeeper } from "./people/keeper.ts";
import { Pulse } from "./pulse.ts";
import { type Question, Questions } from "./question.ts";
import { logLines } from "./runs/log.ts";
import type { RunView } from "./runs/run-view.ts";
import type { FrameSize } from "./screen/frame.ts";
import { commandIn, talk } from "./talk.ts";
import { clean } from "./text/clean.ts";
import { moreLine } from "./text/fold.ts";
import type { Line } from "./text/line.ts";
import type { Viewer } from "./viewer.ts";
import { choicesOf, chosenOf, type Watched, WatchedRuns } from "./watched.ts";

/** Notices on a screen of its own, where there is no scrollback to keep them. */
const KEPT_NOTICES = 4;
/** A second Ctrl-C within this time quits. */
const TWICE_MS = 2_000;
/** Rows of what had happened before a run was turned to. */
const MOST_HISTORY = 400;

/**
 * What happens between keys, runs and the screen. It holds no rule of any run: runs are begun by the engine, seen through
 * watches, and answered through their store.
 */
export class App implements Steering {
  readonly engine: Engine;
  readonly commands: readonly Command[] = COMMANDS;
  readonly here: string;
  readonly quitted: Promise<Quitted>;
  readonly #options: AppOptions;
  readonly #runs: WatchedRuns;
  readonly #pulse: Pulse;
  readonly #input: Input;
  readonly #choices: Choices;
  readonly #overlay = new Overlay(() => this.#runs.focus?.watch.view());
  readonly #questions = new Questions(() => this.now());
  readonly #keeper: DeskKeeper;
  #resolveQuit: (quitted: Quitted) => void = () => undefined;
  #notices: Line[] = [];
  #size: FrameSize;
  #busy: string | undefined;
  #interruptedAt: number | undefined;
  #quitting = false;

  constructor(options: AppOptions) {
    const { context, flags, clock, size } = options;
    this.#options = options;
    this.#size = size;
    this.here = context.here;
    this.#pulse = new Pulse(clock, () => this.#runs.all().some(({ watch }) => watch.view().status === "running"));
    this.quitted = new Promise((resolve) => {
      this.#resolveQuit = resolve;
    });
    // Everything that is said aside is said here, in whatever room of the command it was found out.
    const terminal = { ...context.terminal, err: (text: string) => this.say(text.replace(/^sluice: /, "").trimEnd()) };
    this.engine = createEngine({
      flags,
      context: { ...context, terminal },
      askTrust: (question) => this.#askTrust(question),
      say: (text) => this.say(text),
    });
    this.#runs = new WatchedRuns(
      clock,
      (runId) => this.#runChanged(runId),
      (error) => this.say(messageOf(error), "bad"),
    );
    this.#keeper = new DeskKeeper({
      now: () => this.now(),
      hostOf: (runId) => this.#runs.get(rootOf(runId))?.run.host,
      told: (text) => this.say(text, "notice"),
      changed: () => this.#pulse.soon(),
    });
    this.#choices = new Choices(this.engine);
    this.#input = new Input({
      env: context.env,
      clock,
      root: this.here,
      commands: this.commands,
      choices: (kind) => this.#choices.of(kind),
      width: () => this.#size.width,
      submit: (text) => this.#submit(text),
      lend: (work) => {
        // Whoever comes back from an editor has not read the card.
        this.#keeper.do({ kind: "hidden" });
        return options.terminal.lend(work);
      },
      told: (text) => this.say(text, "notice"),
      changed: () => this.#pulse.now(),
    });
  }

  subscribe(listener: () => void): () => void {
    return this.#pulse.subscribe(listener);
  }

  state(): AppState {
    const focus = this.#runs.focus;
    return {
      composer: this.#input.composer,
      desk: this.#keeper.desk,
      question: this.#questions.current,
      viewer: this.#overlay.viewer,
      focus,
      view: focus?.watch.view(),
      others: this.#runs
        .all()
        .filter((one) => one !== focus)
        .map(({ watch }) => watch.view()),
      notices: this.#notices,
      size: this.#size,
      now: this.now(),
      flags: this.engine.flags,
      busy: this.#busy,
      quitting: this.#quitting,
    };
  }

  /** Reads what there is to complete: pipelines and runs. Asks for trust where the folder holds code. */
  async open(): Promise<void> {
    await this.#choices.refresh();
  }

  resize(size: FrameSize): void {
    if (size.width === this.#size.width && size.height === this.#size.height) return;
    this.#size = size;
    this.#pulse.soon();
  }

  /** What a frame showed: a card counts as seen only when it was drawn. */
  drawn(shown: { readonly viewer?: FrameSize; readonly card?: Extract<DeskAction, { readonly kind: "shown" }> }): void {
    if (shown.viewer !== undefined) this.#overlay.drawn(shown.viewer);
    this.#keeper.do(shown.card ?? { kind: "hidden" });
  }

  key(key: Key): void {
    if (this.#quitting) return;
    const now = this.now();
    this.#dispatch(key, now);
    if (this.#options.flags.fullscreen === true && key.name === "enter") this.#notices = [];
    this.#pulse.now();
  }

  #dispatch(key: Key, now: number): void {
    if (isChord(key, "c")) {
      this.#keeper.key(key, true);
      this.#interrupt(now);
      return;
    }
    this.#interruptedAt = undefined;
    if (this.#questions.key(key)) {
      this.#keeper.key(key, true);
      return;
    }
    if (this.#keeper.wantsKeys()) {
      if (this.#keeper.key(key, false)) return;
      this.#beyondDesk(key, true);
      return;
    }
    this.#beyondDesk(key, false);
  }

  /** The viewer and the composer; `asked` when the desk had the key already. */
  #beyondDesk(key: Key, asked: boolean): void {
    if (this.#overlay.key(key) || this.#input.key(key)) {
      if (!asked) this.#keeper.key(key, true);
      return;
    }
    if (asked || !this.#keeper.key(key, false)) this.#unhandled(key);
  }

  #unhandled(key: Key): void {
    if (key.name === "tab" && key.shift) this.#lookAtNext();
    else if (isChord(key, "o")) this.showTranscript();
    else if (key.name === "pageUp") this.showTranscript();
    else if (isChord(key, "d")) this.quit();
    else if (key.name === "escape") this.#askCancel();
  }

  #interrupt(now: number): void {
    if (!this.#input.isEmpty && this.#interruptedAt === undefined) {
      this.#input.clear();
      return;
    }
    if (this.#interruptedAt !== undefined && now - this.#interruptedAt < TWICE_MS) {
      this.quit(130);
      return;
    }
    this.#interruptedAt = now;
    const working = this.#working().length;
    const what =
      working === 0 ? "" : `; ${working === 1 ? "the run is" : `${working} runs are`} suspended and can be resumed`;
    this.say(`Ctrl-C once more quits${what}`, "notice");
  }

  #submit(text: string): void {
    this.#options.terminal.append([[], ...promptLines(text)]);
    const name = commandIn(text)?.name;
    void this.perform(() => talk(text, this, this.#runs.focus), name === undefined ? "" : `/${name}`);
  }

  putBack(text: string): void {
    this.#input.replace(text);
  }

  async perform(work: () => Promise<void>, what = ""): Promise<void> {
    this.#busy = what;
    try {
      await work();
    } catch (thrown) {
      this.say(isSluiceError(thrown) ? `${thrown.message} (${thrown.code})` : messageOf(thrown), "bad");
    }
    this.#busy = undefined;
    this.#pulse.now();
  }

  focus(): { readonly run: KnownRun; readonly view: RunView } | undefined {
    const focus = this.#runs.focus;
    return focus === undefined ? undefined : { run: focus.run, view: focus.watch.view() };
  }

  turnTo(run: KnownRun): void {
    this.#runs.turnTo(run);
    this.#overlay.close();
    this.#runChanged(run.runId);
  }

  async find(runId: string): Promise<KnownRun> {
    // The demo's run is in a store of its own, which only its watch knows.
    return this.#runs.get(runId)?.run ?? (await this.engine.find(runId));
  }

  async named(words: string): Promise<KnownRun> {
    const [runId = ""] = words.split(/\s/, 1);
    if (runId !== "") return await this.find(runId);
    const run = this.#runs.focus?.run;
    if (run !== undefined) return run;
    throw new SluiceError("Validation", "usage", "no run is looked at; name one, /runs lists what is there");
  }

  show(viewer: Viewer, onEnter?: (row: number) => void): void {
    this.#overlay.show(viewer, onEnter);
    this.#pulse.soon();
  }

  showTranscript(execution?: string): void {
    const focus = this.#runs.focus;
    const view = focus?.watch.view();
    const chosen = view === undefined ? undefined : chosenOf(view, execution ?? focus?.chosen);
    if (focus === undefined || view === undefined || chosen === undefined) {
      this.say("there is no transcript yet");
      return;
    }
    focus.chosen = chosen.key;
    this.#overlay.read(chosen.key);
    this.#pulse.soon();
  }

  ask(question: Omit<Question, "chosen" | "since">): void {
    this.#questions.ask(question);
    this.#pulse.soon();
  }

  say(text: string, tone: NoticeTone = "plain"): void {
    const lines = noticeLines(text, tone);
    this.#options.terminal.append(lines);
    if (this.#options.flags.fullscreen === true) this.#notices = [...this.#notices, ...lines].slice(-KEPT_NOTICES);
    this.#pulse.soon();
  }

  quit(exitCode = 0): void {
    if (this.#quitting) return;
    this.#quitting = true;
    this.#pulse.now();
    void this.#leave(exitCode);
  }

  now(): number {
    return this.#options.clock.now();
  }

  async #leave(exitCode: number): Promise<void> {
    const working = this.#working().map(({ run }) => run);
    try {
      await this.engine.close();
    } catch (thrown) {
      this.say(messageOf(thrown), "bad");
    }
    this.#pulse.close();
    this.#input.close();
    this.#runs.close();
    this.#resolveQuit({ exitCode, lines: working.map((run) => resumeLine(run, this.#options.context)) });
  }

  #working(): readonly Watched[] {
    return this.#runs.all().filter(({ run, watch }) => run.handle !== undefined && watch.view().endedAt === undefined);
  }

  #runChanged(runId: string): void {
    const open = this.#runs.all().flatMap(({ watch }) => watch.view().requests);
    const before = this.#keeper.desk.cards.length;
    this.#keeper.do({ kind: "requests", open });
    if (this.#keeper.desk.cards.length > before) this.#options.terminal.alert();
    const focus = this.#runs.focus;
    if (focus?.run.runId === runId) this.#log(focus);
    this.#pulse.soon();
  }

  #log(watched: Watched): void {
    const { lines, printed } = logLines(watched.watch.view(), watched.printed, this.#size.width);
    const most = watched.printed === 0 ? MOST_HISTORY : Number.POSITIVE_INFINITY;
    watched.printed = printed;
    const left = lines.length - most;
    const shown = left > 0 ? [moreLine(left, "earlier: Ctrl+O shows a stage whole"), ...lines.slice(left)] : lines;
    if (shown.length > 0) this.#options.terminal.append(shown);
    this.#overlay.grow();
  }

  #askTrust(question: string): Promise<boolean> {
    const [title = "", ...rest] = clean(question).split("\n");
    const lines = rest.map((text): Line => [{ text }]);
    return new Promise((resolve) => {
      this.ask({
        title,
        lines,
        choices: ["Not now: nothing of it is loaded", "Trust these files as they are now"],
        answer: (choice) => resolve(choice === 1),
      });
    });
  }

  #askCancel(): void {
    const focus = this.#runs.focus;
    if (focus === undefined || focus.watch.view().endedAt !== undefined) return;
    const { runId } = focus.run;
    this.ask({
      title: `Cancel run ${runId}?`,
      lines: [[{ text: "A cancelled run cannot be resumed. /quit suspends it instead.", style: "dim" }]],
      choices: ["No, it goes on", "Yes, cancel it"],
      answer: (choice) => {
        if (choice === 1) void this.perform(() => talk(`/cancel ${runId}`, this, focus));
      },
    });
  }

  #lookAtNext(): void {
    const focus = this.#runs.focus;
    if (focus === undefined) return;
    const view = focus.watch.view();
    const choices = choicesOf(view);
    const at = choices.findIndex(({ key }) => key === chosenOf(view, focus.chosen)?.key);
    focus.chosen = choices[(at + 1) % Math.max(1, choices.length)]?.key;
    this.#pulse.soon();
  }
}
