import { field, type SluiceEvent } from "@sluice/core";
import { argsSummary } from "@sluice/core/gate";
import { parseRequestId } from "@sluice/core/runtime";
import { approvalWords, type EventLine } from "../words/describe-event.ts";
import { numberAt, textAt } from "../words/fields.ts";
import type { DecisionView, MessageView } from "./run-view.ts";

const ANSWERS: ReadonlyMap<string, DecisionView["outcome"]> = new Map([
  ["approve", "approved"],
  ["value", "answered"],
  ["deny", "denied"],
  ["defer", "deferred"],
]);

/** Requests, refusals and approvals of a run and the runs below it. */
export class DecisionReducer {
  readonly #all: DecisionView[] = [];
  readonly #byRequest = new Map<string, number>();
  readonly #byCall = new Map<string, number>();
  readonly #approvals = new Map<string, number>();
  readonly #people = new Set<string>();
  readonly #messages: MessageView[] = [];
  #view: ReturnType<DecisionReducer["view"]> | undefined;

  event(event: SluiceEvent, { by, why }: EventLine): void {
    const { type, data, at } = event;
    switch (type) {
      case "grant.requested":
      case "request.opened":
        this.#requested(event);
        break;
      case "grant.answered":
      case "request.answered": {
        const outcome = ANSWERS.get(textAt(data, "answer")) ?? "unanswered";
        this.#change(this.#byRequest.get(requestKey(event)), { at, by, why, outcome });
        if (textAt(data, "answer") !== "none") this.#people.add(textAt(data, "by"));
        break;
      }
      case "grant.expired":
      case "request.expired":
        this.#change(this.#byRequest.get(requestKey(event)), { at, by, why, outcome: "expired" });
        break;
      case "grant.consumed":
        this.#change(this.#byRequest.get(requestKey(event)), { used: true });
        break;
      case "call.decided":
        if (textAt(data, "verdict") === "refused") this.#refused(event, by, why);
        else this.#approvals.set(by, (this.#approvals.get(by) ?? 0) + 1);
        break;
      case "message.received":
        this.#people.add(textAt(data, "by"));
        this.#messages.push(messageIn(event));
        break;
      default:
        return;
    }
    this.#view = undefined;
  }

  view(): {
    readonly decisions: readonly DecisionView[];
    readonly approvals: ReadonlyMap<string, number>;
    readonly people: readonly string[];
    readonly messages: readonly MessageView[];
  } {
    this.#view ??= {
      decisions: [...this.#all],
      approvals: new Map(this.#approvals),
      people: [...this.#people].filter((name) => name !== ""),
      messages: [...this.#messages],
    };
    return this.#view;
  }

  #requested(event: SluiceEvent): void {
    const { type, data, at } = event;
    const body = field(data, "body");
    const isCall = type === "grant.requested";
    const callId = isCall ? textAt(body, "proposalId") : (parseRequestId(textAt(data, "requestId"))?.callId ?? "");
    // A new summary of the event's arguments: members whose names look secret are redacted only there.
    const call = argsSummary(textAt(body, "tool"), field(body, "input") ?? null);
    this.#byRequest.set(requestKey(event), this.#all.length);
    if (isCall) this.#byCall.set(callKey(event, callId), this.#all.length);
    this.#add(event, {
      kind: isCall ? "call" : "question",
      callId,
      what: isCall ? call : textAt(body, "question") || approvalWords(body) || textAt(data, "kind"),
      because: isCall ? textAt(body, "why") : "",
      requestedAt: at,
      outcome: "open",
      by: "",
      why: "",
      digest: textAt(data, "digest"),
    });
  }

  #refused(event: SluiceEvent, by: string, why: string): void {
    const { data, at } = event;
    const callId = textAt(data, "callId");
    const index = this.#byCall.get(callKey(event, callId));
    const known = index === undefined ? undefined : this.#all[index];
    if (known === undefined) {
      this.#add(event, {
        kind: "call",
        callId,
        what: textAt(data, "tool"),
        because: textAt(data, "cause") || textAt(field(data, "result"), "code"),
        at,
        outcome: "refused",
        by,
        why,
        digest: textAt(data, "argsDigest"),
      });
    } else if (known.outcome === "approved") {
      // A hook or a limit can refuse what a person approved.
      this.#change(index, { outcome: "refused", by, why });
    } else this.#change(index, { at: known.at ?? at, by: known.by || by, why: known.why || why });
  }

  #add(
    { runId, executionId = "", attempt = 1 }: SluiceEvent,
    decision: Omit<DecisionView, "runId" | "executionId" | "attempt" | "used">,
  ): void {
    this.#all.push({ runId, executionId, attempt, used: false, ...decision });
  }

  #change(index: number | undefined, change: Partial<DecisionView>): void {
    const known = index === undefined ? undefined : this.#all[index];
    if (index !== undefined && known !== undefined) this.#all[index] = { ...known, ...change };
  }
}

function messageIn({ runId, executionId = "", data }: SluiceEvent): MessageView {
  return {
    ...{ runId, executionId, turn: numberAt(data, "turn"), by: textAt(data, "by"), text: textAt(data, "text") },
    kind: textAt(data, "kind") === "followUp" ? "followUp" : "steer",
    sentAt: numberAt(data, "sentAt"),
  };
}

function requestKey({ runId, data }: SluiceEvent): string {
  return JSON.stringify([runId, textAt(data, "requestId")]);
}

function callKey({ runId, executionId, attempt }: SluiceEvent, callId: string): string {
  return JSON.stringify([runId, executionId, attempt ?? 1, callId]);
}
