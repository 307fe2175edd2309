import { randomUUID } from "node:crypto";
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import {
  type Clock,
  field,
  type GuardHook,
  type Interactor,
  isJson,
  isJsonObject,
  type Json,
  type PersonRequest,
  type ToolCall,
  type ToolResult,
} from "@sluice/core";
import { digestOf, visible } from "@sluice/core/runtime";
import { AGENT_GONE } from "@sluice/stages/runtime";
import type { AgentTurn, TurnCalls } from "./agent-model.ts";
import type {
  AgentCall,
  CallReply,
  NativeReport,
  NativeVerdict,
  OpenQuestion,
  PendingCall,
  ReplyPart,
} from "./gateway-run-types.ts";
import {
  CALLER_LEFT,
  completionText,
  gatewayPart,
  LAST_TURN,
  LOST_REPORT,
  lostAnswer,
  NOT_REPEATED,
  NOT_RUN,
  partsOf,
  phaseText,
  questionOf,
  RAN_BEFORE,
  replyOf,
  replyWith,
  TRANSITION,
  waitingText,
} from "./words.ts";

/** How long a call waits for a person before its answer is that a request is open. */
const PATIENCE_MS = 45_000;

export interface ExchangeOptions {
  readonly clock: Clock;
  /** Names of the tools that the session runs: any other tool that a state offers completes it. */
  readonly workTools: () => { has(name: string): boolean };
  /** The recorded result of a call whose transcript does not say it. */
  readonly recorded: (call: RecordedCallPlace) => Promise<{ readonly ok: boolean; readonly output: Json } | undefined>;
  /** Whether a run of the tree has ended. */
  readonly isOver: (runId: string) => Promise<boolean>;
  readonly onPhase: () => void;
}
export interface RecordedCallPlace {
  readonly runId: string;
  readonly turn: number;
  readonly index: number;
}

/** A call that an agent made in an earlier process, which may not have read its answer. */
export interface EarlierCall extends RecordedCallPlace {
  readonly tool: string;
  readonly input: Json;
  readonly native: boolean;
  /** Whether it had ended when the run was resumed. */
  readonly hasEnded: boolean;
}

/** What the exchange knows of the run. */
export interface ExchangeView {
  /** The phase that the agent last entered. */
  readonly phase: Phase | undefined;
  /** Whether the run waits for a call of the agent. */
  readonly isOpen: boolean;
  readonly waiting: OpenQuestion | undefined;
}
export interface Phase {
  readonly runId: string;
  readonly state: string;
  readonly text: string;
  readonly tools: readonly string[];
}

/** Passes the calls of an agent to its run, as replies of a model, and gives back their results. */
export class Exchange {
  readonly #options: ExchangeOptions;
  readonly #threads = new WeakMap<LanguageModelV4Message, Thread>();
  /** Turns that wait for calls. The first one gets the next calls: an agent works on one state after the other. */
  readonly #turns: OpenTurn[] = [];
  readonly #queue: Work[] = [];
  /** The calls that the run has, by their ids in the transcript. */
  readonly #given = new Map<string, Work>();
  readonly #requests = new Map<string, OpenQuestion>();
  /** What the agent has to read with its next answer. */
  readonly #notices: ReplyPart[] = [];
  #phase: Phase | undefined;
  #isPhaseRead = true;
  #end: CallReply | undefined;
  #isReleased = false;
  #pumping = false;
  #isClosed = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  get view(): ExchangeView {
    const [waiting] = this.#requests.values();
    return { phase: this.#phase, isOpen: this.#turns.length > 0, waiting };
  }

  /** What the agent has not read yet, which counts as read from now on. */
  takeNews(): readonly ReplyPart[] {
    const phase = this.#isPhaseRead || this.#phase === undefined ? [] : [gatewayPart(phaseText(this.#phase))];
    this.#isPhaseRead = true;
    return [...this.#notices.splice(0), ...phase];
  }

  call(call: AgentCall): PendingCall {
    const caller = newCaller();
    if (this.#end !== undefined) {
      if (this.#isReleased && call.native === true) caller.allow(call.input);
      caller.settle(this.#end);
      return caller.pending;
    }
    const key = keyOfCall(call);
    const same = [...this.#given.values()].find(
      (work) => work.key === key && work.caller === undefined && work.progress.kind !== "over",
    );
    const work = same ?? this.#added(call);
    this.#attach(work, caller, call);
    if (same === undefined) this.#movedOn(work);
    this.#pump();
    return caller.pending;
  }

  /** Adopts the calls that an earlier process left. A call that the agent has made again is the same call. */
  adopt(calls: readonly EarlierCall[]): void {
    for (const { tool, input, native, hasEnded, ...place } of calls) {
      const call = { tool, input, ...(native ? { native } : {}) } as const;
      const key = keyOfCall(call);
      const at = this.#queue.findIndex((work) => work.key === key);
      const [again] = at < 0 ? [] : this.#queue.splice(at, 1);
      const work: Work = again ?? newWork(call);
      work.progress = { kind: "given" };
      work.place = place;
      if (hasEnded) work.earlier = "ended";
      else if (again === undefined) work.earlier = "begun";
      this.#given.set(work.id, work);
    }
  }

  /** The next calls of the agent, for the model of a state. */
  async next(turn: AgentTurn): Promise<TurnCalls> {
    const thread = this.#threadOf(turn);
    const texts = this.#read(thread, turn.prompt);
    this.#notices.push(...texts);
    const workTools = turn.tools.filter(({ name }) => this.#options.workTools().has(name));
    await this.#settleOthers(thread);
    if (thread.isNew) {
      thread.isNew = false;
      this.#isPhaseRead = false;
      thread.phase = this.#phaseOf(turn);
    } else if (workTools.length === 0 && thread.worksWithTools && texts.length === 0)
      this.#notices.push(gatewayPart(LAST_TURN));
    thread.worksWithTools = workTools.length > 0;
    // After an interrupt, a state continues that was entered before.
    this.#phase = thread.phase;
    this.#passResults();
    thread.turns += 1;
    return await this.#open({ ...turn, thread });
  }

  /** Vetoes a call whose agent is not there any more: an earlier process approved it, and its agent has seen it fail. */
  readonly guard: GuardHook = ({ proposalId }, { runId }) =>
    this.#liveAt(runId, proposalId) === undefined ? { veto: AGENT_GONE } : undefined;

  /** Lets the agent's own program run a native call, and waits for its report. */
  async handOver({ runId, proposalId, signal }: ToolCall, input: Json): Promise<ToolResult> {
    const work = this.#liveAt(runId, proposalId);
    if (work?.native !== true || signal.aborted || this.#isClosed)
      return { ok: false, output: { code: "caller_gone", message: "no agent waits for this call" } };
    // The agent has made another call while this one waited for a person.
    if (work.caller === undefined && this.#queue.length > 0) return { ok: false, output: NOT_REPEATED };
    const stopped = Promise.withResolvers<ToolResult>();
    const stop = (): void => stopped.resolve(LOST_REPORT);
    signal.addEventListener("abort", stop, { once: true });
    try {
      work.progress = { kind: "handed", input };
      this.#handOver(work);
      return await Promise.race([work.reported.promise, stopped.promise]);
    } finally {
      endApproval(work);
      signal.removeEventListener("abort", stop);
    }
  }

  /** The gateway stops: it does not wait for reports about calls that the agent's program runs. */
  close(): void {
    this.#isClosed = true;
    for (const work of this.#given.values()) {
      if (work.progress.kind === "handed") work.reported.resolve(LOST_REPORT);
    }
  }

  /** The call at a place of the run whose result is not known yet. */
  #liveAt(runId: string, proposalId: string): Work | undefined {
    return [...this.#given.values()].find(
      ({ progress, earlier, place }) =>
        (progress.kind === "given" || progress.kind === "handed") &&
        earlier === undefined &&
        place?.runId === runId &&
        proposalId === `t${place.turn}.c${place.index}`,
    );
  }

  /** Sees every request of the run and answers none. */
  readonly observer: Interactor = {
    name: "gateway",
    observes: true,
    answer: (request, signal) =>
      new Promise((resolve) => {
        const question = questionOf(request);
        const key = keyOf(request);
        this.#requests.set(key, question);
        const close = (): void => {
          this.#requests.delete(key);
          this.#options.onPhase();
          resolve(undefined);
        };
        if (signal.aborted) close();
        else signal.addEventListener("abort", close, { once: true });
        this.#options.onPhase();
      }),
  };

  /** The run has ended or is suspended: `reply` answers every further call. Native calls may be released then. */
  async end(reply: CallReply, isReleased = false): Promise<void> {
    this.#end = reply;
    this.#isReleased = isReleased;
    for (const work of [...this.#given.values()]) {
      const recorded = await this.#recorded(work);
      if (recorded === undefined) this.#settle(work, reply);
      else {
        const own = replyOf(recorded.ok, recorded.output);
        this.#settle(work, replyWith(own, [...partsOf(own), gatewayPart(reply.text)]));
      }
    }
    for (const work of this.#queue.splice(0)) this.#settle(work, reply);
    this.#options.onPhase();
  }

  #added(call: AgentCall): Work {
    const work = newWork(call);
    this.#queue.push(work);
    return work;
  }

  #attach(work: Work, caller: Caller, { signal, patienceMs = PATIENCE_MS }: AgentCall): void {
    work.caller = caller;
    if (work.earlier === "begun") delete work.earlier;
    caller.report = (result) => work.reported.resolve(result);
    const arm = (): (() => void) =>
      this.#options.clock.after(patienceMs, () => void this.#impatient(work, caller, again));
    const again = (): void => {
      caller.disarm = arm();
    };
    again();
    const leave = (): void => this.#left(work, caller);
    if (signal?.aborted === true) leave();
    else signal?.addEventListener("abort", leave, { once: true });
    if (work.progress.kind === "answered") this.#settle(work, work.progress.reply);
    else this.#handOver(work);
  }

  /** A caller that gave up. Its call is not passed to the run, unless the run has it already. */
  #left(work: Work, caller: Caller): void {
    caller.disarm();
    if (work.caller !== caller) return;
    delete work.caller;
    const at = this.#queue.indexOf(work);
    if (at >= 0) this.#queue.splice(at, 1);
    this.#withdraw(work, LOST_REPORT);
    caller.settle(replyOf(false, CALLER_LEFT));
  }

  /** Ends a native call that no program runs. */
  #withdraw(work: Work, report: NativeReport): void {
    if (work.progress.kind !== "handed") return;
    endApproval(work);
    work.reported.resolve(report);
  }

  /** The agent makes another call than one that was granted meanwhile. */
  #movedOn(next: Work): void {
    for (const work of [...this.#given.values()]) {
      if (work === next || work.caller !== undefined) continue;
      if (work.progress.kind === "answered") {
        const about = gatewayPart(`Your earlier call of ${visible(work.tool)} has ended with this result:`);
        this.#notices.push(about, ...partsOf(work.progress.reply));
        this.#given.delete(work.id);
      } else this.#withdraw(work, { ok: false, output: NOT_REPEATED });
    }
  }

  #handOver({ caller, progress }: Work): void {
    if (caller === undefined || progress.kind !== "handed") return;
    caller.disarm();
    caller.allow(progress.input);
  }

  /** A caller has waited for long: it reads what it waits for, and may make the same call again. */
  async #impatient(work: Work, caller: Caller, again: () => void): Promise<void> {
    if (work.caller !== caller) return;
    const waiting = [...this.#requests.values()].find(
      ({ runId }) => work.place === undefined || runId === work.place.runId,
    );
    if (waiting !== undefined) {
      this.#park(work, caller, waiting);
      return;
    }
    const recorded = await this.#recorded(work);
    if (work.caller !== caller) return;
    if (recorded === undefined) again();
    else this.#settle(work, replyOf(recorded.ok, recorded.output));
  }

  #park(work: Work, caller: Caller, waiting: OpenQuestion): void {
    delete work.caller;
    const text = waitingText(waiting);
    caller.settle(replyWith({ ok: false, output: { code: "request_open" }, text, waiting }, [gatewayPart(text)]));
    const at = this.#queue.indexOf(work);
    // A call that the run does not have yet is not the one that was asked about.
    if (at >= 0) this.#queue.splice(at, 1);
  }

  #threadOf({ prompt: [system], runId, prompt }: AgentTurn): Thread {
    const known = system === undefined ? undefined : this.#threads.get(system);
    if (known !== undefined) return known;
    // A resumed run has rebuilt the transcript: the agent has not read what follows its last call.
    const turns = prompt.filter(({ role }) => role === "assistant").length;
    const read = Math.max(2, prompt.findLastIndex(({ role }) => role === "assistant") + 1);
    const thread: Thread = { runId, read, turns, isNew: true, worksWithTools: false };
    if (system !== undefined) this.#threads.set(system, thread);
    return thread;
  }

  /** Answers the calls whose results the transcript has now. Returns what it says to the agent besides. */
  #read(thread: Thread, prompt: LanguageModelV4Prompt): readonly ReplyPart[] {
    const texts: ReplyPart[] = [];
    for (const message of prompt.slice(thread.read)) {
      if (message.role === "user") texts.push(gatewayPart(textOf(message)));
      if (message.role !== "tool") continue;
      for (const [index, part] of message.content.entries()) {
        if (part.type !== "tool-result") continue;
        const { output } = part;
        const value = "value" in output && isJson(output.value) ? output.value : null;
        const reply = replyOf(output.type !== "error-json", value);
        const work = this.#given.get(part.toolCallId) ?? (thread.isNew ? this.#earlierAt(thread, index) : undefined);
        if (work !== undefined) this.#results.push({ work, reply });
        else if (thread.isNew) texts.push(...lostAnswer({ tool: part.toolName }, reply));
      }
    }
    thread.read = prompt.length;
    return texts;
  }

  /** A call of the last turn that an earlier process recorded. */
  #earlierAt(thread: Thread, index: number): Work | undefined {
    const found = [...this.#given.values()].find(
      ({ place }) => place?.runId === thread.runId && place.turn === thread.turns && place.index === index,
    );
    if (found?.place !== undefined) found.place = { ...found.place, thread };
    return found;
  }

  /** Results that are given to their callers with the notices of this turn. */
  readonly #results: { readonly work: Work; readonly reply: CallReply }[] = [];

  #passResults(): void {
    const results = this.#results.splice(0);
    for (const { work, reply } of results) {
      if (!isLeft(work)) continue;
      this.#notices.push(...lostAnswer(work, reply));
      this.#given.delete(work.id);
    }
    const last = results.findLast(({ work }) => work.caller !== undefined);
    const texts = last === undefined ? [] : this.takeNews();
    for (const one of results) {
      if (isLeft(one.work)) continue;
      const before = one.work.earlier === undefined ? [] : [gatewayPart(RAN_BEFORE)];
      const parts = [...before, ...partsOf(one.reply), ...(one === last ? texts : [])];
      this.#settle(one.work, parts.length === 1 ? one.reply : replyWith(one.reply, parts));
    }
  }

  /** The calls of other transcripts: what became of them is recorded, unless a parallel state still has them. */
  async #settleOthers(thread: Thread): Promise<void> {
    for (const work of [...this.#given.values()]) {
      const { place, progress } = work;
      if (place === undefined || place.thread === thread || progress.kind === "answered") continue;
      const recorded = await this.#recorded(work);
      if (recorded !== undefined) this.#results.push({ work, reply: replyOf(recorded.ok, recorded.output) });
      else if (place.runId === thread.runId || (await this.#options.isOver(place.runId)))
        this.#results.push({ work, reply: replyOf(false, progress.kind === "given" ? NOT_RUN : LOST_REPORT.output) });
    }
  }

  async #recorded({ place }: Work): Promise<{ readonly ok: boolean; readonly output: Json } | undefined> {
    return place === undefined ? undefined : await this.#options.recorded(place);
  }

  #phaseOf({ runId, state, prompt, tools }: AgentTurn): Phase {
    const texts = prompt.slice(0, 2).map(textOf);
    const own = tools.filter(({ name }) => !this.#options.workTools().has(name));
    const work = tools.filter(({ name }) => this.#options.workTools().has(name)).map(({ name }) => name);
    return { runId, state, tools: work, text: [...texts, ...own.flatMap(completionText)].join("\n\n") };
  }

  #open(turn: OpenTurnFacts): Promise<TurnCalls> {
    const { signal } = turn;
    return new Promise((resolve, reject) => {
      const open: OpenTurn = { ...turn, resolve };
      const close = (): void => {
        const at = this.#turns.indexOf(open);
        if (at >= 0) this.#turns.splice(at, 1);
        reject(signal?.reason instanceof Error ? signal.reason : new Error("the turn was stopped"));
      };
      if (signal?.aborted === true) {
        close();
        return;
      }
      signal?.addEventListener("abort", close, { once: true });
      this.#turns.push(open);
      this.#options.onPhase();
      this.#pump();
    });
  }

  /** Gives queued calls to the first open turn, once those that arrive together are there. */
  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      this.#give();
    });
  }

  #give(): void {
    const [turn] = this.#turns;
    if (turn === undefined || this.#queue.length === 0) return;
    const calls: { id: string; tool: string; input: Json }[] = [];
    const { thread } = turn;
    while (this.#queue.length > 0) {
      const work = this.#queue.shift();
      if (work === undefined) break;
      const wanted = this.#translated(work, turn);
      if ("reply" in wanted) {
        this.#settle(work, wanted.reply);
        continue;
      }
      work.progress = { kind: "given" };
      work.place = { thread, runId: turn.runId, turn: thread.turns, index: calls.length };
      this.#given.set(work.id, work);
      calls.push({ id: work.id, ...wanted });
      // What follows is meant for the next phase.
      if (work.tool === TRANSITION) break;
    }
    if (calls.length === 0) return;
    this.#turns.shift();
    turn.resolve({ calls });
    this.#options.onPhase();
  }

  /** The call as the state takes it, or the answer to one that no state takes. */
  #translated(
    { tool, input }: Work,
    { tools }: OpenTurn,
  ): { readonly tool: string; readonly input: Json } | { readonly reply: CallReply } {
    const own = tools.map(({ name }) => name).filter((name) => !this.#options.workTools().has(name));
    if (tool !== TRANSITION) {
      if (!own.includes(tool)) return { tool, input };
      return { reply: replyOf(false, { code: "unknown_tool", message: `call ${TRANSITION} with the event ${tool}` }) };
    }
    if (own.includes(TRANSITION)) return { tool, input };
    const event = field(input, "event");
    const data = field(input, "data") ?? {};
    if (typeof event === "string" && own.includes(event) && isJsonObject(data)) return { tool: event, input: data };
    const events = own.map((name) => JSON.stringify(name)).join(", ");
    const message = `This phase is left by the event ${events}, with its arguments in data. You are still in the phase.`;
    return { reply: replyOf(false, { code: "transition_rejected", message }) };
  }

  #settle(work: Work, reply: CallReply): void {
    work.progress = { kind: "answered", reply };
    const { caller } = work;
    if (caller === undefined) return;
    caller.settle(reply);
    this.#given.delete(work.id);
  }
}

/** One transcript of a state. */
interface Thread {
  readonly runId: string;
  /** How many of its messages were read. */
  read: number;
  /** Its model steps so far. */
  turns: number;
  isNew: boolean;
  phase?: Phase;
  /** Whether its last turn offered tools besides those that complete the state. */
  worksWithTools: boolean;
}

interface OpenTurnFacts extends AgentTurn {
  readonly thread: Thread;
}
interface OpenTurn extends OpenTurnFacts {
  readonly resolve: (calls: TurnCalls) => void;
}

/** A call on its way. */
interface Work {
  readonly id: string;
  readonly tool: string;
  readonly input: Json;
  readonly native?: true;
  /** Equal for calls of one tool with the same arguments. */
  readonly key: string;
  readonly reported: PromiseWithResolvers<NativeReport>;
  /** Who waits for the answer; none while a person is asked and the agent knows that. */
  caller?: Caller;
  progress: Progress;
  /** Its place in the run, once the run has it. */
  place?: RecordedCallPlace & { readonly thread?: Thread };
  /** An earlier process took it, and the agent has not made it again, or made it again after it had ended. */
  earlier?: "begun" | "ended";
}

/** How far a call is. Each step follows the one before; an answer may follow any of them. */
type Progress =
  /** It waits for a turn of the run. */
  | { readonly kind: "queued" }
  /** The run has it. */
  | { readonly kind: "given" }
  /** It was approved, and the agent's program may run it with this input. */
  | { readonly kind: "handed"; readonly input: Json }
  /** Its approval has been used, or is not valid any more. */
  | { readonly kind: "over" }
  /** While it has no caller, the answer waits for the same call made again. */
  | { readonly kind: "answered"; readonly reply: CallReply };

/** The same call made from now on must not get the approval of this one. */
function endApproval(work: Work): void {
  if (work.progress.kind === "handed") work.progress = { kind: "over" };
}

/** A call of an earlier process that no caller has made again. */
function isLeft({ earlier, caller }: Work): boolean {
  return earlier !== undefined && caller === undefined;
}

interface Caller {
  readonly pending: PendingCall;
  report: PendingCall["report"];
  disarm: () => void;
  allow(input: Json): void;
  settle(reply: CallReply): void;
}

function newCaller(): Caller {
  const verdict = Promise.withResolvers<NativeVerdict>();
  const answer = Promise.withResolvers<CallReply>();
  const caller: Caller = {
    pending: { verdict: verdict.promise, answer: answer.promise, report: (result) => caller.report(result) },
    report: () => undefined,
    disarm: () => undefined,
    allow: (input) => verdict.resolve({ kind: "allow", input }),
    settle: (reply) => {
      caller.disarm();
      const { text, waiting } = reply;
      verdict.resolve({ kind: "deny", text, ...(waiting === undefined ? {} : { waiting }) });
      answer.resolve(reply);
    },
  };
  return caller;
}

function newWork(call: Pick<AgentCall, "tool" | "input" | "native">): Work {
  return {
    ...call,
    key: keyOfCall(call),
    id: `agent_${randomUUID()}`,
    reported: Promise.withResolvers(),
    progress: { kind: "queued" },
  };
}

function keyOfCall({ tool, input, native }: Pick<AgentCall, "tool" | "input" | "native">): string {
  return JSON.stringify([tool, digestOf(input), native === true]);
}

function textOf({ role, content }: LanguageModelV4Message): string {
  if (role === "system") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function keyOf({ runId, requestId }: PersonRequest): string {
  return JSON.stringify([runId, requestId]);
}
