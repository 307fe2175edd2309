import { type Answer, isSluiceError, messageOf, SluiceError } from "@sluice/core";
import { type RunView, rootOf } from "@sluice/view";
import type { Line } from "@sluice/view/text";
import { withCode } from "@sluice/view/words";
import type { Card, CardAction } from "../cards/desk.ts";
import { CardController } from "../cards/keeper.ts";
import type { NamedCard } from "../cards/names.ts";
import type { Command, NoticeTone, Steering } from "../commands/command.ts";
import { COMMANDS, PLAIN_COMMANDS } from "../commands/registry.ts";
import type { FrameSize } from "../screen/frame.ts";
import { FrameThrottle } from "../screen/throttle.ts";
import { secretMask } from "../user/secrets.ts";
import type { AppExit, AppOptions, AppState } from "./app-state.ts";
import { Choices } from "./choices.ts";
import type { Engine, KnownRun } from "./engine.ts";
import { Input } from "./input.ts";
import { isChord, type Key } from "./keys.ts";
import { INTERRUPTED, Leaving } from "./leaving.ts";
import { cancelQuestion, trustQuestion } from "./overlay/asking.ts";
import { Overlay } from "./overlay/overlay.ts";
import { type Question, Questions } from "./overlay/question.ts";
import type { Viewer } from "./overlay/viewer.ts";
import { Scroll } from "./scroll.ts";
import { commandIn, talk } from "./talk.ts";
import { chosenOf, keyAfter, WatchedRuns } from "./watched.ts";

/**
 * What happens between keys, runs and the screen. It holds no rule of any run: runs are begun by the engine, seen through
 * watches, and answered through their store.
 */
export class App implements Steering {
  readonly engine: Engine;
  readonly commands: readonly Command[];
  readonly here: string;
  readonly #options: AppOptions;
  readonly #runs: WatchedRuns;
  readonly #pulse: FrameThrottle;
  readonly #leaving: Leaving;
  readonly #scroll: Scroll;
  readonly #input: Input;
  readonly #choices: Choices;
  readonly #overlay = new Overlay(() => this.#runs.focus?.watch.view());
  readonly #questions = new Questions(() => this.now());
  readonly #keeper: CardController;
  #size: FrameSize;
  #busy: string | undefined;
  #lent = false;

  constructor(options: AppOptions) {
    const { context, flags, clock, size } = options;
    this.#options = options;
    this.#size = size;
    this.here = context.here;
    const width = (): number => this.#size.width;
    this.#scroll = new Scroll(options.terminal, flags.fullscreen !== true, width, secretMask(context.env).text);
    this.commands = isPlain(flags) ? PLAIN_COMMANDS : COMMANDS;
    this.#pulse = new FrameThrottle(clock, () =>
      this.#runs.all().some(({ watch }) => watch.view().status === "running"),
    );
    this.engine = options.createEngine({
      askTrust: (question) => new Promise((resolve) => this.ask(trustQuestion(question, resolve))),
      say: (text) => this.say(text),
    });
    this.#runs = new WatchedRuns(
      clock,
      (runId) => this.#runChanged(runId),
      (error) => this.say(messageOf(error), "bad"),
    );
    this.#keeper = new CardController({
      now: () => this.now(),
      runOf: (runId) => this.#runs.get(rootOf(runId))?.run,
      secretsToward: (runId, host) => this.engine.secretsToward(runId, host),
      told: (text, good) => this.say(text, good ? "plain" : "notice"),
      changed: () => this.#pulse.soon(),
    });
    this.#leaving = new Leaving({
      engine: this.engine,
      runs: this.#runs,
      now: () => this.now(),
      say: (text) => this.say(text, "notice"),
      over: () => {
        this.#pulse.close();
        this.#input.close();
      },
    });
    this.#choices = new Choices(this.engine, () => this.focus()?.view);
    this.#input = new Input({
      env: context.env,
      clock,
      root: this.here,
      store: async () => (await this.engine.store())?.folder,
      commands: this.commands,
      choices: (kind) => this.#choices.of(kind),
      width,
      submit: (text) => this.submit(text),
      lend: (work) => this.#lend(work),
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
      others: this.#runs.others().map(({ watch }) => watch.view()),
      welcome: this.#scroll.welcome,
      notices: this.#scroll.notices,
      size: this.#size,
      now: this.now(),
      flags: this.engine.flags,
      busy: this.#busy,
      quitting: this.#leaving.begun,
    };
  }

  /** Says what stands at the beginning. */
  welcome(lines: readonly Line[]): void {
    this.#scroll.greet(lines);
    this.#pulse.soon();
  }

  get quitted(): Promise<AppExit> {
    return this.#leaving.quitted;
  }

  /** Reads what there is to complete: pipelines and runs. Asks for trust where the folder holds code. */
  async open(): Promise<void> {
    await this.#choices.refresh();
  }

  resize(size: FrameSize): void {
    this.#size = size;
    this.#pulse.now();
  }

  /** What a frame showed: a card counts as seen only when it was drawn, which it is not while another program has the terminal. */
  drawn(shown: { readonly viewer?: FrameSize; readonly card?: Extract<CardAction, { readonly kind: "shown" }> }): void {
    if (shown.viewer !== undefined) this.#overlay.drawn(shown.viewer);
    this.#keeper.do((this.#lent ? undefined : shown.card) ?? { kind: "hidden" });
  }

  key(key: Key): void {
    if (this.#leaving.begun) return;
    this.#dispatch(key);
    this.#pulse.now();
  }

  #dispatch(key: Key): void {
    if (isChord(key, "c")) {
      this.#keeper.key(key, true);
      // A line that was typed is emptied first.
      if (this.#input.isEmpty) this.#leaving.interrupt();
      else this.#input.clear();
      return;
    }
    this.#leaving.carryOn();
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

  /** What was typed and ended with Enter. */
  submit(text: string): void {
    if (!isPlain(this.#options.flags)) this.#scroll.echo(text);
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
      this.say(isSluiceError(thrown) ? withCode(thrown) : messageOf(thrown), "bad");
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
    if (isPlain(this.#options.flags)) {
      this.#scroll.print(viewer);
      return;
    }
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

  waiting(): readonly NamedCard[] {
    return this.#keeper.named();
  }

  answer(card: Card, answer: Answer): void {
    this.#keeper.answer(card, answer);
  }

  /** Answers the app's own question in words. */
  answerQuestion(question: Question, choice: number): void {
    this.#questions.answer(question, choice);
    this.#pulse.soon();
  }

  ask(question: Omit<Question, "chosen" | "since">): void {
    this.#questions.ask(question);
    this.#pulse.soon();
  }

  say(text: string, tone: NoticeTone = "plain"): void {
    this.#scroll.say(text, tone);
    this.#pulse.soon();
  }

  quit(exitCode = 0): void {
    this.#leaving.quit(exitCode);
    this.#pulse.now();
  }

  /** A signal. While another program has the terminal, its Ctrl-C reaches this process too, and is not meant for it. */
  stopped(exitCode: number): void {
    if (!this.#lent || exitCode !== INTERRUPTED) this.quit(exitCode);
  }

  now(): number {
    return this.#options.clock.now();
  }

  async #lend<T>(work: () => Promise<T>): Promise<T> {
    // Whoever comes back from another program has not read the card.
    this.#keeper.do({ kind: "hidden" });
    this.#lent = true;
    try {
      return await this.#options.terminal.lend(work);
    } finally {
      this.#lent = false;
    }
  }

  #runChanged(runId: string): void {
    const open = this.#runs.all().flatMap(({ watch }) => watch.view().requests);
    const before = this.#keeper.desk.cards.length;
    this.#keeper.do({ kind: "requests", open });
    if (this.#keeper.desk.cards.length > before) this.#options.terminal.alert();
    const focus = this.#runs.focus;
    if (focus?.run.runId === runId) {
      this.#scroll.log(focus);
      this.#overlay.grow();
    }
    this.#pulse.soon();
  }

  #askCancel(): void {
    const focus = this.#runs.focus;
    if (focus === undefined || focus.watch.view().endedAt !== undefined) return;
    const { runId } = focus.run;
    this.ask(cancelQuestion(runId, () => void this.perform(() => talk(`/cancel ${runId}`, this, focus))));
  }

  #lookAtNext(): void {
    const focus = this.#runs.focus;
    if (focus === undefined) return;
    focus.chosen = keyAfter(focus.watch.view(), focus.chosen);
    this.#pulse.soon();
  }
}

/** In plain lines nothing is drawn over. */
function isPlain({ screenReader }: AppOptions["flags"]): boolean {
  return screenReader === true;
}
