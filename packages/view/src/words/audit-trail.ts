import { field, type Json, type JsonObject, type SluiceEvent } from "@sluice/core";
import { forkedFrom, numberAt, textAt, usageAt } from "./fields.ts";
import { count, milliseconds, oneLine, spending } from "./words.ts";

/** The events of one run, in its own order. */
export interface RunEvents {
  readonly runId: string;
  readonly events: readonly SluiceEvent[];
}
export interface PlacedEvent {
  readonly event: SluiceEvent;
  /** How deep its run is below the first. */
  readonly depth: number;
}

/** A run's events in their order, those of its children behind the fork that started them. The first run is the top. */
export function inForkOrder(runs: readonly RunEvents[]): readonly PlacedEvent[] {
  const shown = new Set<RunEvents>();
  const placed: PlacedEvent[] = [];
  const put = (run: RunEvents, depth: number): void => {
    shown.add(run);
    for (const event of run.events) {
      placed.push({ event, depth });
      if (event.type !== "fanOut.started") continue;
      const fork = `${run.runId}/${textAt(event.data, "fanOut")}/`;
      for (const child of runs) {
        const below = child.runId.startsWith(fork) && !child.runId.slice(fork.length).includes("/");
        if (below && !shown.has(child)) put(child, depth + 1);
      }
    }
  };
  const [top] = runs;
  if (top !== undefined) put(top, 0);
  // What no fork accounts for is shown all the same: an audit hides nothing.
  for (const run of runs) if (!shown.has(run)) put(run, 1);
  return placed;
}

/** An event's data as it stands, on one line. */
export function detailOf(data: JsonObject): string {
  return Object.entries(data)
    .map(([key, value]) => `${oneLine(key, 40)}=${oneLine(plainText(value), 120)}`)
    .join(" ");
}

/** Who or what decided, and why. Empty where nothing was decided, or no reason is known. */
export interface Decision {
  readonly by: string;
  readonly why: string;
}

/** The decision an event tells of. */
export function decisionIn({ type, data }: SluiceEvent): Decision {
  const text = (key: string): string => textAt(data, key);
  const made = (by: string, why: string): Decision => ({ by: oneLine(by, 80), why: oneLine(why, 1_000) });
  switch (type) {
    case "call.decided": {
      const result = field(data, "result");
      const by =
        text("verdict") === "refused" ? (REFUSED_BY.get(text("cause")) ?? "the gate") : APPROVED_BY.get(text("by"));
      return made(by ?? "the gate", textAt(result, "reason") || textAt(result, "message"));
    }
    case "grant.answered":
    case "request.answered":
      return made(text("by"), text("reason") || text("cause"));
    case "grant.expired":
    case "request.expired":
      return made("the run", text("cause"));
    case "hook.vetoed":
      return made(`the ${text("hook")}'s hook`, text("reason"));
    case "stage.precondition":
      return text("answer") === "" ? NO_DECISION : made("precondition", "");
    case "stage.assert":
      return text("answer") === "" ? NO_DECISION : made("assert", "");
    case "attempt.finished":
      return text("outcome") === "retry" ? made("assert", text("feedback")) : made("", text("message"));
    case "completion.rejected":
      return made("the completion's schema", issuesOf(data));
    case "route.decided":
      return made(ROUTED_BY.get(textAt(field(data, "why"), "by")) ?? "the route", text("reason"));
    case "route.rejected":
      return made("the machine", text("reason"));
    case "limit.near":
    case "limit.reached":
      return made(`the limit ${text("limit")}`, text("message"));
    case "model.retried":
      return made("", text("message"));
    case "run.resumed":
    case "run.forked": {
      const changed = field(data, "changed");
      return changed === undefined
        ? NO_DECISION
        : made(textAt(changed, "by"), textsIn(field(changed, "changes")).join("; "));
    }
    case "run.finished":
      return made("", textAt(field(data, "error"), "message") || text("reason"));
    default:
      return NO_DECISION;
  }
}

const NO_DECISION: Decision = { by: "", why: "" };
const APPROVED_BY: ReadonlyMap<string, string> = new Map([
  ["envelope", "the envelope"],
  ["grant", "a grant"],
  ["mode", "the mode"],
]);
const REFUSED_BY: ReadonlyMap<string, string> = new Map([
  ["denied", "a person"],
  ["deferred", "a person, for now"],
  ["timeout", "nobody in time"],
  ["no_interactor", "nobody there"],
  ["hook", "a hook"],
  ["mode", "the mode"],
  ["limit", "a hard limit"],
]);
const ROUTED_BY: ReadonlyMap<string, string> = new Map([
  ["function", "its route's function"],
  ["table", "the table"],
  ["default", "the machine, as no route took it"],
]);

/** What an event says that only the audit shows: what, and more about it. */
export function auditWords({ type, data, attempt }: SluiceEvent): readonly [what: string, more: string] {
  const text = (key: string): string => textAt(data, key);
  const { phase, ...rest } = data;
  switch (type) {
    case "run.started": {
      const from = forkedFrom(data);
      return [
        "started",
        text("state") === "" ? [text("pipeline"), from].filter(Boolean).join(", ") : `sibling ${text("state")}`,
      ];
    }
    case "run.resumed":
      return [
        "resumed",
        field(data, "changed") === undefined ? text("incarnation") : `with a changed pipeline, ${text("incarnation")}`,
      ];
    case "run.forked":
      return ["forked", `what stands above is the past of ${text("from")} before ${text("execution")}`];
    case "run.finished":
      return ["finished", text("status")];
    case "attempt.started":
      return [`attempt ${attempt ?? 1}`, text("feedback")];
    case "attempt.finished":
      return ["attempt", `${text("outcome")}${text("code") === "" ? "" : ` (${text("code")})`}`];
    case "turn.started":
      return [`turn ${numberAt(data, "turn")}`, `asks ${text("model")}${triesOf(data)}`];
    case "turn.finished":
      return [
        `turn ${numberAt(data, "turn")}`,
        `made ${count(numberAt(data, "calls"), "call")}, ${spending(usageAt(data))}`,
      ];
    case "call.decided":
      return [text("verdict"), text("args")];
    case "call.started":
      return ["runs", `${text("callId")} ${text("tool")}`];
    case "call.finished":
      return ["ran", `${text("callId")} ${text("tool")}: ${text("outcome")} in ${milliseconds(numberAt(data, "ms"))}`];
    case "grant.answered":
    case "request.answered":
      return ["answered", text("answer")];
    case "grant.consumed":
      return ["granted", `${text("requestId")} is used up`];
    case "completion.accepted":
      return ["accepted", text("callId")];
    case "message.received":
      return ["hears", `${text("by")}: ${text("text")}`];
    case "context.changed":
      return ["context", plainText(field(data, "patch"))];
    default:
      return typeof phase === "string"
        ? [`${type.replace("stage.", "")} ${phase}`, detailOf(rest)]
        : [type, detailOf(data)];
  }
}

function triesOf(data: Json): string {
  const tries = numberAt(data, "try");
  return tries > 1 ? `, try ${tries}` : "";
}

function issuesOf(data: Json): string {
  const issues = field(data, "issues");
  if (!Array.isArray(issues)) return "";
  return issues.map((issue: Json) => `${textAt(issue, "path")}: ${textAt(issue, "message")}`).join("; ");
}

function textsIn(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function plainText(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return JSON.stringify(value ?? null);
}
