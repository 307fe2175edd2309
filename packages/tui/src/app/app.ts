import type { Answer } from "@sluice/core";
import { messageOf, rootRunId } from "@sluice/core/runtime";
import { type MessageKind, sendMessage } from "@sluice/stages";
import { type RunView, stateLabel } from "@sluice/view";
import { headOf, type Line } from "@sluice/view/text";
import type { CardView } from "../cards/card.ts";
import { CardController, type NamedCard } from "../cards/card-controller.ts";
import type { Card } from "../cards/card-stack.ts";
import { ARM_MS, isChord, type Key } from "../composer/keys.ts";
import { secretMask } from "../user/environment.ts";
import { userName } from "../user/person.ts";
import { failureText, frameAt } from "../user/source-frame.ts";
import type { AppExit, AppOptions, AppState } from "./app-state.ts";
import { Choices } from "./choices.ts";
import { type Command, type NoticeTone, type Steering, usageError } from "./command.ts";
import type { Engine, KnownRun } from "./engine.ts";
import { FrameThrottle } from "./frame-throttle.ts";
import { Input } from "./input.ts";
import { INTERRUPTED, Leaving } from "./leaving.ts";
import { Outbox } from "./outbox.ts";
import { Overlay } from "./overlay/overlay.ts";
import { type NewQuestion, type Question, Questions, trustQuestion } from "./overlay/question.ts";
import type { FrameSize, Viewer } from "./overlay/viewer.ts";
import { Scroll } from "./scroll.ts";
import { commandIn, talk } from "./talk.ts";
import { chosenOf, keyAfter, WatchedRuns } from "./watched.ts";

/** UTF-16 units of a message in a notice. */
const LONGEST_MESSAGE = 200;

/** Connects keys, runs and the screen. The engine starts runs, watches read them, and their hosts take the answers. */
export class App implements Steering {
  readonly engine: Engine;
  readonly commands: readonly Command[];
  readonly here: string;
  readonly #options: AppOptions;
  readonly #runs: WatchedRuns;
  readonly #throttle: FrameThrottle;
  readonly #leaving: Leaving;
  readonly #scroll: Scroll;
  readonly #input: Input;
  readonly #choices: Choices;
  readonly #overlay = new Overlay(() => this.#runs.focus?.watch.view());
  readonly #questions = new Questions(() => this.now());
  readonly #cards: CardController;
  readonly #outbox = new Outbox();
  #size: FrameSize;
  /** When the last key arrived, whatever handled it; epoch milliseconds. */
  #lastKeyAt: number | undefined;
  #busy: string | undefined;
  #lent = false;

  constructor(options: AppOptions) {
    const { context, flags, clock, size } = options;
    this.#options = options;
    this.#size = size;
    this.here = context.here;
    const width = (): number => this.#size.width;
    this.#scroll = new Scroll(options.terminal, flags.fullscreen !== true, width, secretMask(context.env).text, (at) =>
      frameAt(at, context.workspace, secretMask(context.env).text),
    );
    this.commands = options.commands;
    this.#throttle = new FrameThrottle(
      clock,
      () => this.#overlay.viewer?.ticks === true || this.#runs.all().some(({ watch }) => isTimed(watch.view())),
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
    this.#cards = new CardController({
      now: () => this.now(),
      runOf: (runId) => this.#runs.get(rootRunId(runId))?.run,
      secretsToward: (runId, host) => this.engine.secretsToward(runId, host),
      say: (text, tone) => this.say(text, tone),
      changed: () => this.#throttle.soon(),
    });
    this.#leaving = new Leaving({
      engine: this.engine,
      runs: this.#runs,
      now: () => this.now(),
      say: (text) => this.say(text, "notice"),
      closed: () => {
        this.#throttle.close();
        this.#input.close();
      },
    });
    this.#choices = new Choices(this.engine, () => this.focus()?.view);
    this.#input = new Input({
      env: context.env,
      clock,
      root: context.workspace,
      store: async () => (await this.engine.store())?.folder,
      commands: this.commands,
      choices: (kind) => this.#choices.of(kind),
      width,
      submit: (text) => this.submit(text),
      lend: (work) => this.#lend(work),
      warn: (text) => this.say(text, "notice"),
      changed: () => this.#throttle.now(),
    });
  }

  subscribe(listener: () => void): () => void {
    return this.#throttle.subscribe(listener);
  }

  state(): AppState {
    const focus = this.#runs.focus;
    return {
      composer: this.#input.composer,
      cards: this.#cards.stack,
      question: this.#questions.current,
      viewer: this.#overlay.viewer,
      focus,
      view: focus?.watch.view(),
      sent: focus === undefined ? [] : this.#outbox.of(focus.run.runId),
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

  welcome(lines: readonly Line[]): void {
    this.#scroll.greet(lines);
    this.#throttle.soon();
  }

  get quitted(): Promise<AppExit> {
    return this.#leaving.quitted;
  }

  /** Reads the pipelines and runs to complete; asks for trust if the folder has project code. */
  async open(): Promise<void> {
    await this.#choices.refresh();
  }

  resize(size: FrameSize): void {
    this.#size = size;
    this.#throttle.now();
  }

  /** What a frame showed. While another program has the terminal, no card counts as shown. */
  drawn({ viewer, card }: { readonly viewer: FrameSize | undefined; readonly card: CardView | undefined }): void {
    if (viewer !== undefined) this.#overlay.drawn(viewer);
    if (card === undefined || this.#lent) this.#cards.hide();
    else this.#cards.shown(card.key, card.shown);
  }

  key(key: Key): void {
    if (this.#leaving.begun) return;
    const now = this.now();
    const idle = this.#lastKeyAt === undefined ? Number.POSITIVE_INFINITY : now - this.#lastKeyAt;
    this.#lastKeyAt = now;
    if (idle >= ARM_MS) this.#cards.rest();
    this.#dispatch(key, idle);
    this.#throttle.now();
  }

  #dispatch(key: Key, idle: number): void {
    if (isChord(key, "c")) {
      if (this.#input.isEmpty) this.#leaving.interrupt();
      else this.#input.clear();
      return;
    }
    this.#leaving.resetInterrupt();
    if (this.#questions.key(key)) return;
    const cardFirst = this.#cards.wantsKeys;
    if (cardFirst && this.#cards.key(key, idle)) return;
    if (this.#overlay.key(key) || this.#input.key(key)) return;
    if (!cardFirst && this.#cards.key(key, idle)) return;
    this.#unhandled(key);
  }

  #unhandled(key: Key): void {
    if (key.name === "tab" && key.shift) this.#showNextStage();
    else if (isChord(key, "o")) this.showTranscript();
    else if (isChord(key, "t")) void this.perform(() => talk("/routes", this, this.#runs.focus));
    else if (key.name === "pageUp") this.showTranscript();
    else if (isChord(key, "d")) this.quit();
    else if (key.name === "escape") this.#confirmCancel();
  }

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
      const { workspace, env } = this.#options.context;
      this.say(failureText(thrown, workspace, secretMask(env).text), "bad");
    }
    this.#busy = undefined;
    this.#throttle.now();
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
    // The demo's run is in a separate store, which only its watch knows.
    return this.#runs.get(runId)?.run ?? (await this.engine.find(runId));
  }

  async named(words: string): Promise<KnownRun> {
    const [runId = ""] = words.split(/\s/, 1);
    if (runId !== "") return await this.find(runId);
    const run = this.#runs.focus?.run;
    if (run !== undefined) return run;
    throw usageError("no run is on screen; name one, /runs lists them");
  }

  show(viewer: Viewer, onEnter?: (row: number) => void): void {
    if (isPlain(this.#options.flags)) {
      this.#scroll.print(viewer);
      return;
    }
    this.#overlay.show(viewer, onEnter);
    this.#throttle.soon();
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
    this.#throttle.soon();
  }

  waiting(): readonly NamedCard[] {
    return this.#cards.named();
  }

  answer(card: Card, answer: Answer): void {
    this.#cards.answer(card, answer);
  }

  /** Answers the app's own question without keys. */
  answerQuestion(question: Question, choice: number): void {
    this.#questions.answer(question, choice);
    this.#throttle.soon();
  }

  async send({ runId, host }: Pick<KnownRun, "runId" | "host">, text: string, kind: MessageKind): Promise<void> {
    const secrets = await this.engine.secretsToward(runId, host);
    const message = { runId, text: secrets.text(text), by: secrets.text(userName()) };
    const from = this.now();
    await sendMessage(host, runId, message.text, message.by, kind);
    this.#outbox.add({ ...message, from, to: this.now() });
    this.#runChanged(rootRunId(runId));
  }

  ask(question: NewQuestion): void {
    this.#questions.ask(question);
    this.#throttle.soon();
  }

  say(text: string, tone: NoticeTone = "plain"): void {
    this.#scroll.say(text, tone);
    this.#throttle.soon();
  }

  quit(exitCode = 0): void {
    this.#leaving.quit(exitCode);
    this.#throttle.now();
  }

  /** Handles a signal. A Ctrl-C for another program that has the terminal reaches this process too and is ignored. */
  stopped(exitCode: number): void {
    if (!this.#lent || exitCode !== INTERRUPTED) this.quit(exitCode);
  }

  now(): number {
    return this.#options.clock.now();
  }

  async #lend<T>(work: () => Promise<T>): Promise<T> {
    this.#cards.hide();
    this.#lent = true;
    try {
      return await this.#options.terminal.lend(work);
    } finally {
      this.#lent = false;
    }
  }

  #runChanged(runId: string): void {
    const open = this.#runs.all().flatMap(({ watch }) => watch.view().requests);
    const before = this.#cards.stack.cards.length;
    this.#cards.requests(open);
    if (this.#cards.stack.cards.length > before) this.#options.terminal.alert();
    this.#tellFates(runId);
    const focus = this.#runs.focus;
    if (focus?.run.runId === runId) {
      this.#scroll.log(focus);
      this.#overlay.grow();
    }
    this.#throttle.soon();
  }

  /** Says what became of the messages to a run. */
  #tellFates(runId: string): void {
    const view = this.#runs.get(runId)?.watch.view();
    if (view === undefined) return;
    const { read, unread } = this.#outbox.settle(view);
    for (const { executionId, turn, text } of read)
      this.say(`${executionId} reads your message in turn ${turn}: ${headOf(text, LONGEST_MESSAGE)}`, "good");
    for (const { text } of unread)
      this.say(`the run ended before a model read your message: ${headOf(text, LONGEST_MESSAGE)}`, "notice");
  }

  #confirmCancel(): void {
    const focus = this.#runs.focus;
    if (focus === undefined || focus.watch.view().endedAt !== undefined) return;
    const { runId } = focus.run;
    const commands = [undefined, `/cancel ${runId}`, `/interrupt ${runId}`];
    const lines = ["A cancelled run cannot be resumed. After an interruption, /resume enters its state again."];
    this.ask({
      title: `Cancel run ${stateLabel(runId)}?`,
      lines: lines.map((text) => [{ text }]),
      choices: ["No, keep it running", "Yes, cancel it", "Interrupt what it does now"],
      answer: (choice) => {
        const command = commands[choice];
        if (command !== undefined) void this.perform(() => talk(command, this, focus));
      },
    });
  }

  #showNextStage(): void {
    const focus = this.#runs.focus;
    if (focus === undefined) return;
    focus.chosen = keyAfter(focus.watch.view(), focus.chosen);
    this.#throttle.soon();
  }
}

/** Whether a frame of the run shows a time that passes: what runs, what wakes, and the deadline of a question. */
function isTimed({ status, wakeAt, requests }: RunView): boolean {
  return status === "running" || wakeAt !== undefined || requests.some(({ body }) => typeof body.until === "number");
}

function isPlain({ screenReader }: AppOptions["flags"]): boolean {
  return screenReader === true;
}
