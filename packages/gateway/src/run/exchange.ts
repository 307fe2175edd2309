import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { Clock, GuardHook, Interactor, Json, ToolCall, ToolResult } from "@sluice/core";
import { messageOf, parseExecutionId } from "@sluice/core/runtime";
import { AGENT_GONE } from "@sluice/stages/runtime";
import type { AgentTurn, TurnCalls } from "./agent-model.ts";
import {
  beforeParts,
  type Caller,
  type CallFacts,
  type CallInFlight,
  endApproval,
  isAnswered,
  keyOfCall,
  newCall,
  newCaller,
  passApproval,
  replyAgain,
  withdraw,
} from "./call-in-flight.ts";
import { type CallOrder, createCallOrder, type First } from "./call-order.ts";
import type { AgentCall, CallReply, OpenQuestion, PendingCall, ReplyPart } from "./gateway-run-types.ts";
import { News } from "./news.ts";
import { createOpenQuestions, type OpenQuestions } from "./open-questions.ts";
import { createOpenTurns, type OpenTurns } from "./open-turns.ts";
import { callOfState, type Phase, phaseOf, type WorkTools } from "./phase.ts";
import type { EarlierCall, RecordedCallPlace } from "./recorded-calls.ts";
import { createThreads, readOn, type Thread } from "./transcripts.ts";
import {
  awaitedText,
  CALLER_LEFT,
  gatewayPart,
  gatewayReply,
  LAST_TURN,
  LOST_REPORT,
  lostAnswer,
  MAIN_READS_FIRST,
  NOT_REPEATED,
  NOT_RUN,
  NOT_YET,
  otherPhaseText,
  partsOf,
  READ_FIRST,
  replyOf,
  replyWith,
  TRANSITION,
  waitingText,
} from "./words.ts";

/** How long a call waits for a person before its answer is that a request is open. */
const PATIENCE_MS = 45_000;

export interface ExchangeOptions {
  readonly clock: Clock;
  readonly workTools: () => WorkTools;
  /** The input of a call as the run has it. */
  readonly masked: (input: Json) => Json;
  /** The recorded result of a call whose transcript does not say it. */
  readonly recorded: (call: RecordedCallPlace) => Promise<Recorded | undefined>;
  /** Whether a run of the tree has ended. */
  readonly isOver: (runId: string) => Promise<boolean>;
  readonly onPhase: () => void;
}

/** What the exchange knows of the run. */
export interface ExchangeView {
  /** The phase that the agent last entered. */
  readonly phase: Phase | undefined;
  /** Whether the run waits for a call of the agent. */
  readonly isOpen: boolean;
  readonly waiting: OpenQuestion | undefined;
  /** What the agent reads about an approved call that its program has to make again, if the run waits for that. */
  readonly awaited: string | undefined;
}

type Recorded = Pick<ToolResult, "ok" | "output">;
type CallOfRun = Pick<ToolCall, "runId" | "executionId" | "attempt" | "proposalId">;

/** Passes the calls of an agent to its run, as replies of a model, and gives back their results. */
export class Exchange {
  readonly #options: ExchangeOptions;
  readonly #threadOf = createThreads();
  readonly #turns: OpenTurns;
  readonly #requests: OpenQuestions;
  readonly #queue: CallInFlight[] = [];
  /** The calls that the run has, by their ids in the transcript. */
  readonly #given = new Map<string, CallInFlight>();
  readonly #news = new News(this.#given);
  readonly #order: CallOrder;
  #end: CallReply | undefined;
  #isReleased = false;
  #pumping = false;
  #isClosed = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#requests = createOpenQuestions(options.onPhase);
    this.#turns = createOpenTurns(() => {
      options.onPhase();
      // The run continues where the agent passed over a call, and another one still waits.
      for (const { caller, place } of this.#given.values())
        if (caller?.passesOver !== undefined && place !== undefined) caller.hurry();
      this.#pump();
    });
    this.#order = createCallOrder({ calls: this.#given, turns: this.#turns, requests: this.#requests });
  }

  /** Sees every request of the run and answers none. */
  get observer(): Interactor {
    return this.#requests.observer;
  }

  get view(): ExchangeView {
    const { turn, call } = this.#order.first() ?? {};
    return {
      phase: this.#news.phase,
      isOpen: !this.#turns.isEmpty,
      waiting: this.#requests.first(),
      awaited: turn && call && awaitedText(parseExecutionId(turn.executionId).state, call),
    };
  }

  /** What the agent has not read yet, which counts as read from now on. */
  takeNews(): readonly ReplyPart[] {
    return this.#news.take();
  }

  call(made: AgentCall): PendingCall {
    const caller = newCaller(made.agent);
    if (this.#end !== undefined) {
      if (this.#isReleased && made.native === true) caller.allow(made.input);
      caller.settle(this.#news.with(this.#end, caller));
      return caller.pending;
    }
    const same = [...this.#given.values()].find(
      (call) =>
        call.caller === undefined &&
        call.progress.kind !== "over" &&
        !this.#order.isOfOtherTurn(call) &&
        this.#isSame(call, made),
    );
    const call = same ?? this.#added(made);
    this.#attach(call, caller, made);
    this.#pump();
    return caller.pending;
  }

  /** Adopts the calls that an earlier process left. A call that the agent has made again is the same call. */
  adopt(calls: readonly EarlierCall[]): void {
    for (const { tool, input, native, hasEnded, denial, ...place } of calls) {
      const whose = native === undefined ? ({ isUnclear: true } as const) : native ? { native } : {};
      const earlier = newCall({ tool, input, isAdopted: true, ...whose });
      const at = this.#queue.findIndex((call) => this.#isSame(earlier, call));
      const [again] = at < 0 ? [] : this.#queue.splice(at, 1);
      const call = again ?? earlier;
      call.progress = { kind: "given" };
      // The transcript says what became of the last turn's calls.
      if (denial === undefined) call.place = place;
      else call.progress = { kind: "answered", reply: replyOf(false, denial), isRead: false };
      if (hasEnded) call.earlier = "ended";
      else if (again === undefined) call.earlier = "begun";
      this.#given.set(call.id, call);
      if (isAnswered(call) && call.caller !== undefined) this.#settle(call, replyAgain(call));
    }
  }

  /** The next calls of the agent, for the model of a state. */
  async next(turn: AgentTurn): Promise<TurnCalls> {
    const thread = this.#threadOf(turn);
    const saysMore = this.#read(thread, turn.prompt);
    const workTools = turn.tools.filter(({ name }) => this.#options.workTools().has(name));
    await this.#settleOthers(thread);
    if (thread.isNew) {
      thread.isNew = false;
      thread.phase = phaseOf(turn, this.#options.workTools());
      this.#news.enter(thread.phase, true);
    } else {
      if (workTools.length === 0 && thread.worksWithTools && !saysMore) this.#news.add([gatewayPart(LAST_TURN)]);
      if (thread.phase !== undefined) this.#news.enter(thread.phase, false);
    }
    thread.worksWithTools = workTools.length > 0;
    this.#passResults();
    return await this.#turns.open({ ...turn, thread });
  }

  /** Vetoes a call whose agent is not there any more: an earlier process approved it, and its agent has seen it fail. */
  readonly guard: GuardHook = (call, { runId }) =>
    this.#liveAt({ ...call, runId }) === undefined ? { veto: AGENT_GONE } : undefined;

  /** Lets the agent's own program run a native call, and waits for its report. */
  async handOver(made: ToolCall, input: Json): Promise<ToolResult> {
    const { signal } = made;
    const call = this.#liveAt(made);
    if (call?.native !== true || signal.aborted || this.#isClosed)
      return { ok: false, output: { code: "caller_gone", message: "no agent waits for this call" } };
    const stopped = Promise.withResolvers<ToolResult>();
    const stop = (): void =>
      stopped.resolve(call.caller === undefined ? { ok: false, output: NOT_REPEATED } : LOST_REPORT);
    signal.addEventListener("abort", stop, { once: true });
    try {
      call.progress = { kind: "handed", input };
      passApproval(call);
      this.#parkBehind(call);
      return await Promise.race([call.reported.promise, stopped.promise]);
    } finally {
      endApproval(call);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Answers those who wait behind a call that was approved while it has no caller. */
  #parkBehind(first: CallInFlight): void {
    if (first.caller !== undefined) return;
    for (const call of [...this.#given.values(), ...this.#queue])
      if (call.caller !== undefined && this.#order.heldBy(call) !== undefined) call.caller.hurry();
  }

  #parkHeld(call: CallInFlight, caller: Caller, { turn, call: awaited }: First): void {
    const { state } = parseExecutionId(turn.executionId);
    if (awaited === undefined) call.waitsFor = turn;
    else awaited.goesBefore.add(keyOfCall(call));
    const text = awaited === undefined ? otherPhaseText(state) : `${NOT_YET} ${awaitedText(state, awaited)}`;
    this.#park(call, caller, gatewayReply("call_waits", text));
  }

  /** The gateway stops: it does not wait for reports about calls that the agent's program runs, nor for calls to be made again. */
  close(): void {
    this.#isClosed = true;
    for (const call of this.#given.values())
      withdraw(call, call.caller === undefined ? { ok: false, output: NOT_REPEATED } : LOST_REPORT);
  }

  /** The agent's call that a call of the run is, if its result is not known yet. Ids are unique in an attempt only. */
  #liveAt({ runId, executionId, attempt, proposalId }: CallOfRun): CallInFlight | undefined {
    return [...this.#given.values()].find(
      ({ progress, earlier, place }) =>
        (progress.kind === "given" || progress.kind === "handed") &&
        earlier === undefined &&
        place?.runId === runId &&
        place.executionId === executionId &&
        place.attempt === attempt &&
        proposalId === `t${place.turn}.c${place.index}`,
    );
  }

  /** The run has ended or is suspended: `reply` answers every further call. Native calls may be released then. */
  async end(reply: CallReply, isReleased = false): Promise<void> {
    this.#end = reply;
    this.#isReleased = isReleased;
    this.#news.end();
    const begun = [...this.#given.values()].filter((call) => !isAnswered(call));
    for (const call of [...begun, ...this.#queue.splice(0)]) {
      const own = begun.includes(call) ? await this.#recordedReply(call) : undefined;
      const all = own === undefined ? reply : replyWith(own, [...partsOf(own), gatewayPart(reply.text)]);
      this.#settle(call, call.caller === undefined ? all : this.#news.with(all, call.caller));
    }
    this.#options.onPhase();
  }

  /** Whether an agent's call is one that it has made before. The input of an adopted one has no known secrets. */
  #isSame(known: CallInFlight, made: CallFacts): boolean {
    if (known.isUnclear !== true && known.native !== made.native) return false;
    const { tool, input } = made;
    return (
      keyOfCall(known) === keyOfCall(known.isAdopted === true ? { tool, input: this.#options.masked(input) } : made)
    );
  }

  #added(made: AgentCall): CallInFlight {
    const call = newCall(made);
    this.#queue.push(call);
    return call;
  }

  #attach(call: CallInFlight, caller: Caller, made: AgentCall): void {
    const { signal, patienceMs = PATIENCE_MS } = made;
    call.caller = caller;
    if (made.native === true) call.native = true;
    if (call.earlier === "begun") delete call.earlier;
    caller.report = (result) => call.reported.resolve(result);
    caller.hurry = () => void this.#impatient(call, caller, made);
    caller.wait = () => {
      caller.disarm = this.#options.clock.after(patienceMs, caller.hurry);
    };
    caller.wait();
    const leave = (): void => this.#left(call, caller);
    if (signal?.aborted === true) {
      leave();
      return;
    }
    signal?.addEventListener("abort", leave, { once: true });
    if (isAnswered(call)) {
      this.#settle(call, replyAgain(call));
      return;
    }
    const first = this.#order.heldBy(call);
    if (first === undefined) passApproval(call);
    else if (first.call?.goesBefore.has(keyOfCall(call)) === true) caller.passesOver = first.call;
    else caller.hurry();
  }

  /** A caller that gave up. Its call is not passed to the run, unless the run has it already. */
  #left(call: CallInFlight, caller: Caller): void {
    caller.disarm();
    if (call.caller !== caller) return;
    delete call.caller;
    const at = this.#queue.indexOf(call);
    if (at >= 0) this.#queue.splice(at, 1);
    withdraw(call, LOST_REPORT);
    caller.settle(replyOf(false, CALLER_LEFT));
  }

  /** A caller has waited for long: it reads what it waits for, and may make the same call again. */
  async #impatient(call: CallInFlight, caller: Caller, { asking }: AgentCall): Promise<void> {
    if (call.caller !== caller) return;
    caller.disarm();
    // Behind an approved call, no request is the one that it waits for.
    const isBehind = this.#order.heldBy(call)?.call !== undefined;
    const waiting = isBehind ? undefined : this.#requests.first(call.place?.runId);
    if (waiting !== undefined) {
      const shown = asking?.();
      if (shown?.runId === waiting.runId && shown.requestId === waiting.requestId) {
        caller.wait();
        return;
      }
      this.#park(call, caller, { ...gatewayReply("request_open", waitingText(waiting)), waiting });
      return;
    }
    let recorded: Recorded | undefined;
    try {
      recorded = await this.#recorded(call);
    } catch (thrown) {
      if (call.caller !== caller) return;
      // The same call made again takes its answer.
      delete call.caller;
      caller.settle(unreadable(thrown));
      return;
    }
    if (call.caller !== caller) return;
    if (recorded !== undefined) {
      this.#settle(call, replyOf(recorded.ok, recorded.output));
      return;
    }
    const first = this.#order.heldBy(call);
    const isPassedOver = first?.call !== undefined && first.call === caller.passesOver;
    if (first !== undefined && !isPassedOver) {
      this.#parkHeld(call, caller, first);
      return;
    }
    if (isPassedOver) withdraw(first.call, { ok: false, output: NOT_REPEATED });
    caller.wait();
  }

  /** Answers a caller whose call takes longer. The same call made again takes the answer. */
  #park(call: CallInFlight, caller: Caller, reply: CallReply): void {
    delete call.caller;
    caller.settle(this.#news.with(reply, caller));
    const at = this.#queue.indexOf(call);
    // A call that the run does not have yet is not the one that was asked about.
    if (at >= 0) this.#queue.splice(at, 1);
  }

  /** Collects the results that the transcript has now. Returns whether it says more than that. */
  #read(thread: Thread, prompt: LanguageModelV4Prompt): boolean {
    let saysMore = false;
    for (const part of readOn(thread, prompt)) {
      if (part.kind === "message") {
        this.#news.says(part.text);
        saysMore = true;
        continue;
      }
      const { callId, tool, index, reply } = part;
      const call = this.#given.get(callId) ?? (thread.isNew ? this.#earlierAt(thread, index) : undefined);
      if (call !== undefined) this.#results.push({ call, reply });
      else if (thread.isNew) this.#news.add(lostAnswer({ tool }, reply));
    }
    return saysMore;
  }

  /** A call of the last turn that an earlier process recorded. */
  #earlierAt(thread: Thread, index: number): CallInFlight | undefined {
    const found = [...this.#given.values()].find(
      ({ place }) =>
        place?.runId === thread.runId &&
        place.executionId === thread.executionId &&
        place.attempt === thread.attempt &&
        place.index === index,
    );
    if (found?.place !== undefined) found.place = { ...found.place, thread };
    return found;
  }

  /** Results that are given to their callers with the notices of this turn. */
  readonly #results: { readonly call: CallInFlight; readonly reply: CallReply }[] = [];

  #passResults(): void {
    const results = this.#results.splice(0);
    for (const { call, reply } of results) if (call.caller === undefined) this.#settle(call, reply);
    const awaited = results.filter(({ call }) => call.caller !== undefined);
    // Of a call that its own program runs, the agent reads only a refusal.
    const last = awaited.findLast(({ call }) => call.native !== true);
    const texts = last === undefined ? [] : this.#news.take();
    for (const one of awaited) {
      const parts = [...beforeParts(one.call, one.reply), ...partsOf(one.reply), ...(one === last ? texts : [])];
      this.#settle(one.call, parts.length === 1 ? one.reply : replyWith(one.reply, parts));
    }
  }

  /** The calls of other transcripts: what became of them is recorded, unless a parallel state still has them. */
  async #settleOthers(thread: Thread): Promise<void> {
    for (const call of [...this.#given.values()]) {
      const { place, progress } = call;
      if (place === undefined || place.thread === thread || progress.kind === "answered") continue;
      const reply = await this.#recordedReply(call);
      if (reply !== undefined) this.#results.push({ call, reply });
      else if (place.runId === thread.runId || (await this.#options.isOver(place.runId)))
        this.#results.push({ call, reply: replyOf(false, progress.kind === "given" ? NOT_RUN : LOST_REPORT.output) });
    }
  }

  /** The answer that the journal has, or says that it could not be read. */
  async #recordedReply(call: CallInFlight): Promise<CallReply | undefined> {
    try {
      const recorded = await this.#recorded(call);
      return recorded && replyOf(recorded.ok, recorded.output);
    } catch (thrown) {
      return unreadable(thrown);
    }
  }

  async #recorded({ place }: CallInFlight): Promise<Recorded | undefined> {
    return place === undefined ? undefined : await this.#options.recorded(place);
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
    const turn = this.#turns.first;
    if (turn === undefined || this.#queue.length === 0) return;
    this.#refuseUnread();
    if (this.#queue.length === 0) return;
    this.#news.forgetRefusals();
    const calls: { id: string; tool: string; input: Json }[] = [];
    const { thread } = turn;
    while (this.#queue.length > 0) {
      const call = this.#queue.shift();
      if (call === undefined) break;
      const wanted = callOfState(call, turn.tools, this.#options.workTools());
      if ("reply" in wanted) {
        this.#settle(call, wanted.reply);
        continue;
      }
      call.progress = { kind: "given" };
      const { runId, executionId, attempt } = turn;
      call.place = { thread, runId, executionId, attempt, turn: turn.turn, index: calls.length };
      this.#given.set(call.id, call);
      calls.push({ id: call.id, ...wanted });
      // What follows is meant for the next phase.
      if (call.tool === TRANSITION) break;
    }
    if (calls.length === 0) return;
    this.#turns.give({ calls });
    this.#options.onPhase();
  }

  /** An agent reads what its earlier calls did, and what a person says, before another call of it runs. */
  #refuseUnread(): void {
    const isMain = ({ caller }: CallInFlight): boolean => caller?.agent === undefined;
    const { hasResults, hasWords } = this.#news;
    const refused = this.#queue.filter((call) => hasResults || (hasWords && isMain(call)));
    if (refused.length === 0) return;
    const first = gatewayReply("read_first", READ_FIRST);
    const parts = refused.some(isMain) ? [...partsOf(first), ...this.#news.take()] : [];
    for (const call of refused) {
      this.#queue.splice(this.#queue.indexOf(call), 1);
      this.#settle(call, isMain(call) ? replyWith(first, parts) : gatewayReply("read_first", MAIN_READS_FIRST));
      if (!isMain(call)) continue;
      // Made once more, it is a call of its own.
      const same = [...this.#given.values()].find((one) => isAnswered(one) && this.#isSame(one, call));
      if (same !== undefined) this.#given.delete(same.id);
    }
  }

  #settle(call: CallInFlight, reply: CallReply): void {
    call.progress = { kind: "answered", reply, isRead: false };
    const { caller } = call;
    if (caller === undefined) return;
    caller.settle(reply);
    this.#given.delete(call.id);
  }
}

/** The answer to a call whose result could not be read. */
function unreadable(thrown: unknown): CallReply {
  const message = `the run's journal could not be read, so it is unknown how this call ended: ${messageOf(thrown)}`;
  return replyOf(false, { code: "journal_unreadable", message });
}
