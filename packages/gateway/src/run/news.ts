import { type AnsweredCall, type Caller, type CallInFlight, isAnswered } from "./call-in-flight.ts";
import type { CallReply, ReplyPart } from "./gateway-run-types.ts";
import type { Phase } from "./phase.ts";
import { gatewayPart, isRefusal, lostAnswer, partsOf, phaseText, replyWith, shownCall } from "./words.ts";

/**
 * What an agent has not read yet: the answers of calls that ended while no caller waited for them, what people say, and the phase that
 * it is in. A call whose answer it has read answers the same call once more, until the next phase: calls of a batch may come in any order.
 */
export class News {
  readonly #calls: Map<string, CallInFlight>;
  readonly #notices: ReplyPart[] = [];
  #phase: Phase | undefined;
  #isPhaseRead = true;
  #hasWords = false;

  /** `calls` are those that the run has. */
  constructor(calls: Map<string, CallInFlight>) {
    this.#calls = calls;
  }

  /** The phase that the agent last entered. */
  get phase(): Phase | undefined {
    return this.#phase;
  }

  /** Whether a person says something, or the phase has changed. */
  get hasWords(): boolean {
    return this.#hasWords;
  }

  /** Whether there are answers of calls that may have changed something. */
  get hasResults(): boolean {
    return this.#unread().some(({ progress }) => !isRefusal(progress.reply));
  }

  add(parts: readonly ReplyPart[]): void {
    this.#notices.push(...parts);
  }

  says(text: string): void {
    this.#notices.push(gatewayPart(text));
    this.#hasWords = true;
  }

  enter(phase: Phase, isNew: boolean): void {
    if (isNew) this.#forgetRead();
    // After an interrupt, a state continues that was entered before. A parallel one is a phase of its own.
    if (isNew || phase.runId !== this.#phase?.runId) {
      this.#isPhaseRead = false;
      this.#hasWords ||= this.#phase !== undefined;
    }
    this.#phase = phase;
  }

  /** There is no phase any more. */
  end(): void {
    this.#isPhaseRead = true;
  }

  /** All of it, which counts as read from now on. */
  take(): readonly ReplyPart[] {
    const answers = this.#unread().flatMap((call) => {
      call.progress.isRead = true;
      return newsOf(call, call.progress.reply);
    });
    const phase = this.#isPhaseRead || this.#phase === undefined ? [] : [gatewayPart(phaseText(this.#phase))];
    this.#isPhaseRead = true;
    this.#hasWords = false;
    return [...answers, ...this.#notices.splice(0), ...phase];
  }

  /** A reply with all of it. Only the main agent reads it: another one would not bring it all of that. */
  with(reply: CallReply, { agent }: Pick<Caller, "agent">): CallReply {
    const news = agent === undefined ? this.take() : [];
    return news.length === 0 ? reply : replyWith(reply, [...partsOf(reply), ...news]);
  }

  /** Another call is made. What was refused before, and read, answers the same call no longer: it is asked about again. */
  forgetRefusals(): void {
    for (const { id, progress } of this.#answered())
      if (progress.isRead && isRefusal(progress.reply)) this.#calls.delete(id);
  }

  #forgetRead(): void {
    for (const { id, progress } of this.#answered()) if (progress.isRead) this.#calls.delete(id);
  }

  #answered(): readonly AnsweredCall[] {
    return [...this.#calls.values()].filter(isAnswered);
  }

  #unread(): readonly AnsweredCall[] {
    return this.#answered().filter(({ caller, progress }) => caller === undefined && !progress.isRead);
  }
}

/** What an agent reads of a call whose answer no caller waited for. */
function newsOf(call: CallInFlight, reply: CallReply): readonly ReplyPart[] {
  if (call.earlier !== undefined) return lostAnswer(call, reply);
  return [gatewayPart(`Your earlier call of ${shownCall(call)} has ended with this result:`), ...partsOf(reply)];
}
