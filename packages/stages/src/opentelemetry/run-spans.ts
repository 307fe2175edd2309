import type { Attributes } from "@opentelemetry/api";
import { type EventDraft, field, type Json } from "@sluice/core";
import { itemKeyOf, parseExecutionId } from "@sluice/core/runtime";
import type {
  Activity,
  ActivityEnd,
  AttemptScope,
  ModelCallEnd,
  ObservedModelCall,
  ObservedRun,
  ObservedToolCall,
  RunTelemetry,
} from "../telemetry/telemetry.ts";
import { CallSpans } from "./call-spans.ts";
import { endModelSpan, modelSpan } from "./model-span.ts";
import { clean, spanName, textIn } from "./names.ts";
import type { OpenSpan } from "./open-span.ts";
import { spanEvent, transitionOf } from "./span-events.ts";

/** What the spans of a run and its siblings share. */
export interface RunOfSpans {
  readonly root: OpenSpan;
  /** The id of the run, never a sibling's. */
  readonly conversation: string;
  readonly kinds: ObservedRun["kinds"];
}

/** The kinds of states that call a model. */
const AGENT_KINDS: ReadonlySet<string> = new Set(["agent", "router", "orchestrator"]);

/** Events that close a request, with the value of `sluice.request.answer` if the event has no answer. */
const ANSWERS: Partial<Record<EventDraft["type"], string>> = {
  "grant.answered": "answered",
  "grant.expired": "expired",
  "request.answered": "answered",
  "request.expired": "expired",
};

type RunEnded = (end: ActivityEnd, at: number) => void;

interface OpenAttempt extends AttemptScope {
  readonly span: OpenSpan;
  readonly calls: CallSpans;
  readonly shared: Attributes;
  turn: OpenTurn | undefined;
}
interface OpenTurn {
  readonly number: number;
  readonly span: OpenSpan;
  /** The code of its last model call's failure. */
  failure: string | undefined;
}

/** The spans of one run: attempts, their turns, and the turns' calls. A run executes one state at a time. */
export class RunSpans implements RunTelemetry {
  readonly #run: RunOfSpans;
  readonly #runId: string;
  /** Called when all spans but the run's own have ended. */
  readonly #onEnd: RunEnded;
  #attempt: OpenAttempt | undefined;
  /** One span per open request, by its id. */
  readonly #requests = new Map<string, OpenSpan>();
  readonly #models = new Set<OpenSpan>();

  constructor(run: RunOfSpans, runId: string, onEnd: RunEnded) {
    this.#run = run;
    this.#runId = runId;
    this.#onEnd = onEnd;
  }

  sibling(runId: string): RunTelemetry {
    return new RunSpans(this.#run, runId, () => undefined);
  }

  attempt({ executionId, attempt }: AttemptScope, at: number): void {
    const current = this.#attempt;
    if (current?.executionId === executionId && current.attempt === attempt) return;
    this.#closeAttempt(at);
    const { state: stage } = parseExecutionId(executionId);
    const key = itemKeyOf(this.#runId, stage);
    const agent = AGENT_KINDS.has(this.#run.kinds.get(stage) ?? "");
    const shared = {
      "gen_ai.conversation.id": this.#run.conversation,
      ...(agent ? { "gen_ai.agent.name": stage } : {}),
    };
    const span = this.#run.root.open({
      name: spanName(agent ? "invoke_agent" : "state", stage),
      attributes: {
        ...shared,
        ...(agent ? { "gen_ai.operation.name": "invoke_agent" } : {}),
        "sluice.run.id": this.#runId,
        "sluice.execution.id": executionId,
        "sluice.attempt": attempt,
        ...(key === undefined ? {} : { "sluice.item.key": clean(key) }),
      },
      at,
    });
    const calls = new CallSpans(shared, (callId, begunAt) => this.#turnOf(callId, begunAt));
    this.#attempt = { executionId, attempt, span, calls, shared, turn: undefined };
  }

  recorded(events: readonly EventDraft[], at: number): void {
    let attemptFinished = false;
    for (const event of events) {
      const { type } = event;
      this.#attempt?.calls.recorded(event, at);
      this.#request(event, at);
      const reported = spanEvent(event);
      if (reported !== undefined) this.#innermost(type).event(reported.name, reported.attributes, at);
      if (type === "route.decided") this.#attempt?.span.set(transitionOf(event.data));
      if (type === "turn.finished") this.#closeTurn(event.data);
      if (type === "run.finished") this.#finishRun(event.data);
      if (type === "attempt.finished") {
        this.#finishAttempt(event.data);
        attemptFinished = true;
      }
    }
    // Later events of the same record, such as the route, belong to the attempt too.
    if (attemptFinished) this.#closeAttempt(at);
  }

  within(work: () => void): void {
    this.#innermost().within(work);
  }

  model(call: ObservedModelCall): Activity<ModelCallEnd> {
    const { executionId, attempt, at } = call;
    this.attempt({ executionId, attempt }, at);
    const turn = this.#turn(call.turn, at);
    const span = (turn?.span ?? this.#innermost()).open(modelSpan(call, this.#attempt?.shared ?? {}));
    this.#models.add(span);
    return {
      within: (work) => span.within(work),
      ended: (end, endedAt) => {
        // The run has ended in this process.
        if (!this.#models.delete(span)) return;
        endModelSpan(span, end);
        span.end(endedAt);
        turn?.span.reach(endedAt);
        if (turn !== undefined) turn.failure = end.ok || end.aborted ? undefined : end.code;
      },
    };
  }

  tool(call: ObservedToolCall): Activity<undefined> {
    const { executionId, attempt, at } = call;
    this.attempt({ executionId, attempt }, at);
    const calls = this.#attempt?.calls;
    if (calls === undefined) throw new TypeError("a call begins in an attempt");
    return calls.work(call);
  }

  ended(end: ActivityEnd, at: number): void {
    for (const span of [...this.#models, ...this.#requests.values()]) span.end(at);
    this.#models.clear();
    this.#requests.clear();
    this.#attempt?.span.set({ "sluice.attempt.outcome": end.status });
    this.#closeAttempt(at);
    this.#onEnd(end, at);
  }

  /** The current turn's, attempt's or run's span. Routes belong to the attempt. */
  #innermost(type?: EventDraft["type"]): OpenSpan {
    const attempt = this.#attempt;
    if (attempt === undefined) return this.#run.root;
    return (type?.startsWith("route.") === true ? undefined : attempt.turn?.span) ?? attempt.span;
  }

  #turn(number: number, at: number): OpenTurn | undefined {
    const attempt = this.#attempt;
    if (attempt === undefined || attempt.turn?.number === number) return attempt?.turn;
    this.#closeTurn();
    const attributes = { ...attempt.shared, "sluice.turn": number };
    attempt.turn = { number, span: attempt.span.open({ name: "turn", attributes, at }), failure: undefined };
    return attempt.turn;
  }

  /** The turn of a call, even if an earlier process received the reply. Only agent states have turns. */
  #turnOf(callId: string, at: number): OpenSpan {
    const [, number] = /^t(\d+)\./.exec(callId) ?? [];
    const turn =
      number !== undefined && this.#attempt?.shared["gen_ai.agent.name"] !== undefined ? Number(number) : undefined;
    return (turn === undefined ? undefined : this.#turn(turn, at)?.span) ?? this.#innermost();
  }

  #request(event: EventDraft, at: number): void {
    const { type } = event;
    const isOpened = type === "grant.requested" || type === "request.opened";
    const defaultAnswer = ANSWERS[type];
    if (!isOpened && defaultAnswer === undefined) return;
    const { requestId, kind, answer: given } = event.data;
    if (typeof requestId !== "string") return;
    const parent = this.#innermost();
    if (isOpened) {
      const kindName = typeof kind === "string" ? kind : "";
      const attributes = {
        "gen_ai.conversation.id": this.#run.conversation,
        "sluice.request.id": clean(requestId),
        "sluice.request.kind": clean(kindName),
      };
      this.#requests.set(requestId, parent.open({ name: spanName("request", kindName), attributes, at }));
      return;
    }
    const answer = textIn(given) ?? defaultAnswer;
    const span = this.#requests.get(requestId);
    this.#requests.delete(requestId);
    // An earlier process opened the request and has ended its span.
    if (span === undefined) {
      parent.event(`sluice.${type}`, { "sluice.request.id": clean(requestId), "sluice.request.answer": answer }, at);
      return;
    }
    span.set({ "sluice.request.answer": answer });
    span.end(at);
    parent.reach(at);
  }

  #closeTurn(finished?: EventDraft["data"]): void {
    const attempt = this.#attempt;
    const turn = attempt?.turn;
    if (attempt === undefined || turn === undefined) return;
    attempt.turn = undefined;
    turn.span.set({
      "sluice.finish_reason": textIn(finished?.finishReason),
      "sluice.calls": numberIn(finished?.calls),
    });
    if (turn.failure !== undefined) turn.span.fail(turn.failure);
    // A later record reports the end, so the turn ends with its last call.
    turn.span.end(turn.span.latest);
    attempt.span.reach(turn.span.latest);
  }

  /** Sets the totals of the whole run. */
  #finishRun({ denied, usage }: EventDraft["data"]): void {
    const costUsd = numberIn(field(usage, "costUsd"));
    this.#run.root.set({ "sluice.denied": numberIn(denied), "sluice.cost_usd": costUsd });
  }

  #finishAttempt({ outcome, code }: EventDraft["data"]): void {
    this.#attempt?.span.set({ "sluice.attempt.outcome": textIn(outcome) });
    if (outcome === "failed") this.#attempt?.span.fail(textIn(code) ?? "_OTHER");
  }

  #closeAttempt(at: number): void {
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    attempt.calls.close(at);
    this.#closeTurn();
    this.#attempt = undefined;
    attempt.span.end(at);
    this.#run.root.reach(at);
  }
}

function numberIn(value: Json | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}
