import { addUsage, field, type Json, type SluiceEvent, type Usage } from "@sluice/core";
import { auditWords } from "./audit-trail.ts";
import { forkedFrom, numberAt, textAt, usageAt } from "./fields.ts";
import { count, milliseconds, oneLine, spending } from "./words.ts";

/** How a word is shown: good and bad news, what to notice, names. */
export type Tone = "plain" | "strong" | "faint" | "good" | "bad" | "notice" | "name";

/** What is said about one event: who, what happened, and more about it. */
export interface EventLine {
  /** How deep the run is below its root. */
  readonly depth: number;
  readonly who: string;
  readonly what: string;
  readonly more: string;
  readonly tone: Tone;
}

/** Turns events into one line per boundary. Remembers what later events refer to, so every event has to pass through it. */
export interface EventDescriber {
  say(event: SluiceEvent): EventLine | undefined;
}

const LONGEST_CALL = 80;
/** Causes of a denial that follow a request for leave. */
const ASKED: ReadonlySet<string> = new Set(["denied", "deferred", "timeout", "no_interactor"]);

type Said = readonly [what: string, more: string, tone?: Tone];

/** With `everything` it says something of each event, as an audit shows it. */
export function createEventDescriber({ everything = false }: { readonly everything?: boolean } = {}): EventDescriber {
  /** What was proposed, by call, until its end is told. */
  const proposed = new Map<string, string>();
  const spent = new Map<string, { turns: number; usage: Usage }>();

  const toldBefore = (event: SluiceEvent): Said | undefined => {
    const { type, data } = event;
    const callKey = JSON.stringify([event.runId, event.executionId, event.attempt, textAt(data, "callId")]);
    switch (type) {
      case "call.decided":
        if (field(data, "verdict") === "refused") return refusedCall(data);
        proposed.set(callKey, textAt(data, "args"));
        return undefined;
      case "call.finished": {
        const call = proposed.get(callKey) ?? textAt(data, "tool");
        proposed.delete(callKey);
        return finishedCall(call, data);
      }
      case "turn.finished": {
        const key = JSON.stringify([event.runId, event.executionId]);
        const sum = spent.get(key);
        const usage = usageAt(data);
        spent.set(key, {
          turns: (sum?.turns ?? 0) + 1,
          usage: sum === undefined ? usage : addUsage(sum.usage, usage),
        });
        return undefined;
      }
      case "stage.exit": {
        if (field(data, "phase") !== "left") return undefined;
        const sum = spent.get(JSON.stringify([event.runId, event.executionId]));
        const outcome = textAt(data, "outcome");
        const fault = textAt(data, "fault");
        const cost =
          sum === undefined
            ? ""
            : `${count(sum.turns, "turn")}, ${spending(field(data, "usage") === undefined ? sum.usage : usageAt(data))}`;
        return [outcome, fault === "" ? cost : fault, outcome === "completed" ? "good" : "bad"];
      }
      default:
        return saying(event);
    }
  };

  return {
    say(event) {
      const said = toldBefore(event) ?? (everything ? auditWords(event) : undefined);
      if (said === undefined) return undefined;
      const [what, more, tone = "plain"] = said;
      const depth = event.runId.split("/").filter((part) => part.startsWith("fan-")).length;
      const who = oneLine(event.executionId ?? "run", 40);
      return { depth, who, what: oneLine(what, 40), more: oneLine(more), tone };
    },
  };
}

/** What one event says by itself. Undefined for what only the audit shows. */
function saying({ type, data, attempt }: SluiceEvent): Said | undefined {
  const text = (key: string): string => textAt(data, key);
  switch (type) {
    case "run.started":
      return field(data, "parent") === undefined ? ["started", startedWith(data)] : undefined;
    case "run.resumed":
      return ["resumed", changesIn(data)];
    case "run.forked":
      return [
        "goes on",
        `from here by itself; the past is that of ${text("from")} before ${text("execution")}`,
        "notice",
      ];
    case "run.suspended":
      return ["suspended", text("reason") === "waiting" ? "waits for an answer" : "", "notice"];
    case "attempt.started":
      return (attempt ?? 1) > 1 ? [`attempt ${attempt}`, text("feedback"), "notice"] : undefined;
    case "stage.setup":
      return attempt === 1 && text("phase") === "left" ? ["entered", toolsOf(data), "strong"] : undefined;
    case "stage.precondition":
      return text("phase") === "left" && text("answer") !== "proceed" ? ["gate", text("answer"), "notice"] : undefined;
    case "model.retried":
      return ["retries", `${text("message")}; again in ${milliseconds(numberAt(data, "waitMs"))}`, "notice"];
    case "grant.requested": {
      const body = field(data, "body");
      return ["asks", `${shortCall(textAt(body, "argsSummary"))}: ${textAt(body, "why")}`, "notice"];
    }
    case "request.opened":
      return ["asks", textAt(field(data, "body"), "question"), "notice"];
    case "grant.answered":
    case "request.answered":
      if (text("answer") === "none") return undefined;
      return ["answered", `${text("answer")} by ${text("by")}${text("reason") === "" ? "" : `: ${text("reason")}`}`];
    case "grant.expired":
    case "request.expired":
      return ["expired", `${text("requestId")} (${text("cause")})`, "notice"];
    case "completion.rejected":
      return ["rejected", `the result does not fit its schema: ${issuesOf(data)}`, "notice"];
    case "completion.accepted":
      return undefined;
    case "route.rejected":
      return ["rejected", text("reason"), "notice"];
    case "route.decided":
      return routed(data);
    case "fanOut.started":
      return ["forked", `${listOf(field(data, "siblings"))}, then ${text("join")}`];
    case "fanOut.joined":
      return ["joined", outcomesOf(field(data, "outcomes"))];
    case "limit.near":
      return ["near limit", text("message"), "notice"];
    case "limit.reached":
      return ["limit", `${text("limit")}: ${text("message")}`, "bad"];
    case "hook.vetoed":
      return ["vetoed", `${text("tool")} by the ${text("hook")}'s hook: ${text("reason")}`, "bad"];
    default:
      return undefined;
  }
}

function startedWith(data: Json): string {
  const models = listOf(field(data, "models"));
  const from = forkedFrom(data);
  const parts = [textAt(data, "pipeline"), models, `mode ${textAt(data, "mode")}`, textAt(data, "cwd"), from];
  return parts.filter((part) => part !== "").join(" · ");
}

/** What is other in the pipeline that a run goes on with. */
function changesIn(data: Json): string {
  const changed = listOf(field(field(data, "changed"), "changes"), "; ");
  return changed === "" ? "" : `with a changed pipeline: ${changed}`;
}

function toolsOf(data: Json): string {
  const tools = listOf(field(data, "tools"));
  return tools === "" ? "without tools" : `with ${tools}`;
}

function refusedCall(data: Json): Said {
  const result = field(data, "result");
  const cause = textAt(data, "cause");
  const reason = textAt(result, "reason");
  // What was asked about has its call in the line before.
  const call = ASKED.has(cause) ? textAt(data, "tool") : shortCall(textAt(data, "args"));
  if (cause === "") return ["refused", `${call}: ${reason} (${textAt(result, "code")})`, "notice"];
  return ["denied", `${call}: ${reason.startsWith(cause) ? reason : `${reason} (${cause})`}`, "bad"];
}

function finishedCall(whole: string, data: Json): Said {
  const call = shortCall(whole);
  const outcome = textAt(data, "outcome");
  const took = milliseconds(numberAt(data, "ms"));
  return outcome === "ok" ? ["ran", `${call} in ${took}`] : ["ran", `${call}: ${outcome} after ${took}`, "notice"];
}

/** What was called and the beginning of its arguments: enough to tell calls apart. The audit has them whole. */
function shortCall(call: string): string {
  return call.length > LONGEST_CALL ? `${call.slice(0, LONGEST_CALL).toWellFormed()}…)` : call;
}

function routed(data: Json): Said {
  const to = field(data, "to");
  switch (textAt(data, "choice")) {
    case "to":
      return ["goes to", typeof to === "string" ? to : ""];
    case "fanOut":
      return ["goes to", `${listOf(to)} side by side`];
    case "done":
      return ["ends", "the run is done"];
    default:
      return ["ends", textAt(data, "reason"), "bad"];
  }
}

function issuesOf(data: Json): string {
  const issues = field(data, "issues");
  if (!Array.isArray(issues)) return "";
  return issues.map((issue: Json) => `${textAt(issue, "path")}: ${textAt(issue, "message")}`).join("; ");
}

function outcomesOf(value: Json | undefined): string {
  if (!Array.isArray(value)) return "";
  return value.map((sibling: Json) => `${textAt(sibling, "name")} ${textAt(sibling, "status")}`).join(", ");
}

function listOf(value: Json | undefined, between = ", "): string {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string").join(between) : "";
}
