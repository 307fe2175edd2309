import { argsSummary, field, type Json, parseRequestId, type SluiceEvent } from "@sluice/core";
import { decisionIn } from "../../words/audit-trail.ts";
import { numberAt, textAt } from "../../words/fields.ts";

/** One call that was put to somebody or refused, or one question. */
export interface Decision {
  readonly kind: "call" | "question";
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly callId: string;
  /** What was asked or refused, in one line. */
  readonly what: string;
  /** Why it needed leave, or was refused at once. */
  readonly because: string;
  /** Epoch milliseconds; absent where nobody was asked. */
  readonly askedAt?: number;
  readonly at?: number;
  readonly outcome: "approved" | "answered" | "denied" | "deferred" | "refused" | "expired" | "open" | "nobody";
  readonly by: string;
  readonly why: string;
  /** SHA-256 of what was decided upon. */
  readonly digest: string;
  /** Whether what was granted was used. */
  readonly used: boolean;
}

/** What people and rules decided, in the order it was asked, and how many calls passed by which rule. */
export function decisionsIn(events: readonly SluiceEvent[]): {
  readonly decisions: readonly Decision[];
  readonly passed: ReadonlyMap<string, number>;
} {
  const book = new DecisionBook();
  for (const event of events) book.take(event);
  return { decisions: book.all(), passed: book.passed };
}

class DecisionBook {
  readonly passed = new Map<string, number>();
  readonly #all: Decision[] = [];
  /** Where a request's decision stands, and the one on a call. */
  readonly #byRequest = new Map<string, number>();
  readonly #byCall = new Map<string, number>();

  all(): readonly Decision[] {
    return this.#all.toSorted((a, b) => (a.askedAt ?? a.at ?? 0) - (b.askedAt ?? b.at ?? 0));
  }

  take(event: SluiceEvent): void {
    switch (event.type) {
      case "grant.requested":
      case "request.opened":
        this.#asked(event);
        break;
      case "grant.answered":
      case "request.answered":
      case "grant.expired":
      case "request.expired":
        this.#answered(event);
        break;
      case "grant.consumed":
        this.#change(this.#byRequest.get(requestOf(event)), { used: true });
        break;
      case "call.decided":
        this.#decided(event);
        break;
      default:
        break;
    }
  }

  #asked(event: SluiceEvent): void {
    const { type, data, at, runId, executionId = "", attempt = 1 } = event;
    const body = field(data, "body");
    const requestId = textAt(data, "requestId");
    const isCall = type === "grant.requested";
    const callId = isCall ? textAt(body, "proposalId") : (parseRequestId(requestId)?.callId ?? "");
    this.#byRequest.set(requestOf(event), this.#all.length);
    if (isCall) this.#byCall.set(callOf(event, callId), this.#all.length);
    this.#all.push({
      kind: isCall ? "call" : "question",
      runId,
      executionId,
      attempt,
      callId,
      what: isCall ? summaryOf(body) : textAt(body, "question") || textAt(data, "kind"),
      because: isCall ? textAt(body, "why") : "",
      askedAt: at,
      outcome: "open",
      by: "",
      why: "",
      digest: textAt(data, "digest"),
      used: false,
    });
  }

  #answered(event: SluiceEvent): void {
    const { by, why } = decisionIn(event);
    const outcome = event.type.endsWith(".expired") ? "expired" : outcomeOf(textAt(event.data, "answer"));
    this.#change(this.#byRequest.get(requestOf(event)), { at: event.at, by, why, outcome });
  }

  #decided(event: SluiceEvent): void {
    const { data, at, runId, executionId = "", attempt = 1 } = event;
    const callId = textAt(data, "callId");
    const { by, why } = decisionIn(event);
    if (textAt(data, "verdict") !== "refused") {
      this.passed.set(by, (this.passed.get(by) ?? 0) + 1);
      return;
    }
    const asked = this.#byCall.get(callOf(event, callId));
    if (asked !== undefined) {
      // A hook or a limit may refuse what a person had approved.
      const known = this.#all[asked];
      if (known?.outcome === "approved") this.#change(asked, { outcome: "refused", by, why });
      else if (known !== undefined)
        this.#change(asked, { at: known.at ?? at, by: known.by || by, why: known.why || why });
      return;
    }
    this.#all.push({
      kind: "call",
      runId,
      executionId,
      attempt,
      callId,
      // Its arguments are in the transcript, without secrets; in one line with them they would be looked at as text only.
      what: textAt(data, "tool"),
      because: textAt(data, "cause") || textAt(field(data, "result"), "code"),
      at,
      outcome: "refused",
      by,
      why,
      digest: textAt(data, "argsDigest"),
      used: false,
    });
  }

  #change(at: number | undefined, change: Partial<Decision>): void {
    const known = at === undefined ? undefined : this.#all[at];
    if (at !== undefined && known !== undefined) this.#all[at] = { ...known, ...change };
  }
}

/** Made anew of the arguments as the event has them: what stands under the name of a secret is replaced there. */
function summaryOf(body: Json | undefined): string {
  return argsSummary(textAt(body, "tool"), field(body, "input") ?? null);
}

function outcomeOf(answer: string): Decision["outcome"] {
  switch (answer) {
    case "approve":
      return "approved";
    case "value":
      return "answered";
    case "deny":
      return "denied";
    case "defer":
      return "deferred";
    default:
      return "nobody";
  }
}

function requestOf({ runId, data }: SluiceEvent): string {
  return JSON.stringify([runId, textAt(data, "requestId")]);
}

function callOf({ runId, executionId, attempt }: SluiceEvent, callId: string): string {
  return JSON.stringify([runId, executionId, attempt ?? 1, callId]);
}

/** Who took part: those who answered or spoke to the run, each once. */
export function peopleIn(events: readonly SluiceEvent[]): readonly string[] {
  const people = new Set<string>();
  for (const { type, data } of events) {
    const isPerson = type === "message.received" || type === "grant.answered" || type === "request.answered";
    const by = isPerson && textAt(data, "answer") !== "none" ? textAt(data, "by") : "";
    if (by !== "") people.add(by);
  }
  return [...people];
}

/** Calls that models made, whatever came of them. */
export function callsIn(events: readonly SluiceEvent[]): number {
  return events.reduce((sum, { type, data }) => (type === "turn.finished" ? sum + numberAt(data, "calls") : sum), 0);
}
