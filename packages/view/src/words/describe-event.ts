import { field, type Json, type JsonObject, type SluiceEvent, type Usage } from "@sluice/core";
import { forkedFrom, issuesIn, numberAt, textAt, textsAt, usageAt } from "./fields.ts";
import { count, milliseconds, oneLine, spending } from "./words.ts";

/** How a word is shown: good and bad news, a notice, a name. */
export type Tone = "plain" | "strong" | "faint" | "good" | "bad" | "notice" | "name";

/** Whether an event approves or refuses something. */
export type Verdict = "approved" | "refused";

/** What an audit can be filtered by. */
export interface AuditFilter {
  /** The state; absent for what happens to a run as a whole. */
  readonly stage?: string;
  readonly tool?: string;
  readonly verdict?: Verdict;
}

/** One event in words. All texts are bounded, on one line, and safe to print. */
export interface EventLine extends AuditFilter {
  /** Levels of fan-out above its run. */
  readonly depth: number;
  /** The execution, or `run`. */
  readonly who: string;
  readonly what: string;
  readonly more: string;
  /** Who or what decided; empty if the event is no decision. */
  readonly by: string;
  /** The reason of the decision or failure; empty if there is none. */
  readonly why: string;
  readonly tone: Tone;
  /** True for events that only an audit shows. */
  readonly isDetail: boolean;
}

/** What earlier events said about the subject of this one. */
export interface EventContext {
  /** The call with its arguments. */
  readonly call?: string;
  readonly turns?: number;
  readonly usage?: Usage;
}

const LONGEST_CALL = 80;
/** Causes of a denial that follows a request: the request's line shows the call. */
const REQUESTED: ReadonlySet<string> = new Set(["denied", "deferred", "timeout", "no_interactor"]);

/** The only place where events have words: the log, the audit, transcripts and the report all show these. */
export function describeEvent(event: SluiceEvent, context: EventContext = {}): EventLine {
  const { executionId, runId, data } = event;
  const { what, more, tone = "plain", isDetail = false } = wordsOf(event, context);
  const [by, why] = decisionOf(event);
  const tool = textAt(data, "tool") || textAt(field(data, "body"), "tool");
  const verdict = verdictOf(event);
  return {
    depth: runId.split("/").filter((part) => part.startsWith("fan-")).length,
    who: oneLine(executionId ?? "run", 40),
    what: oneLine(what, 40),
    more: oneLine(more),
    by: oneLine(by, 80),
    why: oneLine(why, 1_000),
    tone,
    isDetail,
    ...(executionId === undefined ? {} : { stage: parseExecutionId(executionId).stateId }),
    ...(tool === "" ? {} : { tool }),
    ...(verdict === undefined ? {} : { verdict }),
  };
}

/** Whether a line has every property that the filter names. */
export function matchesFilter(line: AuditFilter, { stage, tool, verdict }: AuditFilter): boolean {
  if (stage !== undefined && line.stage !== stage) return false;
  if (tool !== undefined && line.tool !== tool) return false;
  return verdict === undefined || line.verdict === verdict;
}

export function parseExecutionId(executionId: string): { readonly stateId: string; readonly visit: number } {
  const [, stateId = executionId, visit = "1"] = /^(.*)#(\d{1,9})$/s.exec(executionId) ?? [];
  return { stateId, visit: Number(visit) };
}

/** An event's data as `key=value` pairs on one line. */
export function detailOf(data: JsonObject): string {
  return Object.entries(data)
    .map(([key, value]) => `${oneLine(key, 40)}=${oneLine(plainText(value), 120)}`)
    .join(" ");
}

interface Words {
  readonly what: string;
  readonly more: string;
  readonly tone?: Tone;
  readonly isDetail?: boolean;
}

function wordsOf({ type, data, attempt = 1 }: SluiceEvent, context: EventContext): Words {
  const text = (key: string): string => textAt(data, key);
  const words = (what: string, more: string, tone?: Tone): Words =>
    tone === undefined ? { what, more } : { what, more, tone };
  const detail = (what: string, more: string): Words => ({ what, more, isDetail: true });
  const { phase, ...rest } = data;
  switch (type) {
    case "run.started":
      return field(data, "parent") === undefined
        ? words("started", startedWith(data))
        : detail("started", `sibling ${text("state")}`);
    case "run.resumed": {
      const changes = textsAt(data.changed, "changes").join("; ");
      return words("resumed", changes === "" ? "" : `with a changed pipeline: ${changes}`);
    }
    case "run.forked":
      return words("forked", `continues on its own; its earlier records are from ${originOf(data)}`, "notice");
    case "run.suspended":
      return words("suspended", text("reason") === "waiting" ? "waiting for an answer" : "", "notice");
    case "run.finished":
      return detail("finished", text("status"));
    case "attempt.started":
      return attempt > 1
        ? words(`attempt ${attempt}`, text("feedback"), "notice")
        : detail(`attempt ${attempt}`, text("feedback"));
    case "attempt.finished":
      if (text("outcome") === "retry") return { ...detail("sent back", text("feedback")), tone: "notice" };
      return detail("attempt", `${text("outcome")}${text("code") === "" ? "" : ` (${text("code")})`}`);
    case "stage.setup":
      if (attempt === 1 && phase === "left") return words("entered", toolsOf(data), "strong");
      break;
    case "stage.precondition":
      if (phase === "left" && data.answer !== "proceed") return words("precondition", text("answer"), "notice");
      break;
    case "stage.exit":
      if (phase === "left") return exitWords(data, context);
      break;
    case "turn.started": {
      const tries = numberAt(data, "try");
      return detail(`turn ${numberAt(data, "turn")}`, `calls ${text("model")}${tries > 1 ? `, try ${tries}` : ""}`);
    }
    case "turn.finished":
      return detail(
        `turn ${numberAt(data, "turn")}`,
        `made ${count(numberAt(data, "calls"), "call")}, ${spending(usageAt(data))}`,
      );
    case "model.retried":
      return words("retrying", `${text("message")}; next try in ${milliseconds(numberAt(data, "waitMs"))}`, "notice");
    case "call.decided":
      return data.verdict === "refused" ? refusedCall(data) : detail(text("verdict"), text("args"));
    case "call.started":
      return detail("running", `${text("callId")} ${text("tool")}`);
    case "call.finished":
      return finishedCall(shortCall(context.call ?? text("tool")), data);
    case "grant.requested":
      return words("requests", `${shortCall(textAt(data.body, "argsSummary"))}: ${textAt(data.body, "why")}`, "notice");
    case "request.opened":
      return words("asks", textAt(data.body, "question"), "notice");
    case "grant.answered":
    case "request.answered":
      if (text("answer") === "none") return detail("answered", "none");
      return words(
        "answered",
        `${text("answer")} by ${text("by")}${text("reason") === "" ? "" : `: ${text("reason")}`}`,
      );
    case "grant.expired":
    case "request.expired":
      return words("expired", `${text("requestId")} (${text("cause")})`, "notice");
    case "grant.consumed":
      return detail("granted", `${text("requestId")} is used`);
    case "completion.accepted":
      return detail("accepted", text("callId"));
    case "completion.rejected":
      return words("rejected", `the result does not match its schema: ${issuesIn(data)}`, "notice");
    case "message.received":
      return detail("message", `${text("by")}: ${text("text")}`);
    case "context.changed":
      return detail("context", plainText(data.patch));
    case "route.rejected":
      return words("rejected", text("reason"), "notice");
    case "route.decided":
      return routeWords(data);
    case "fanOut.started":
      return words("fan-out", `${textsAt(data, "siblings").join(", ")}, then ${text("join")}`);
    case "fanOut.joined":
      return words("joined", outcomesOf(data.outcomes));
    case "limit.near":
      return words("near limit", text("message"), "notice");
    case "limit.reached":
      return words("limit", `${text("limit")}: ${text("message")}`, "bad");
    case "hook.vetoed":
      return words("vetoed", `${text("tool")} by the ${text("hook")}'s hook: ${text("reason")}`, "bad");
    default:
      break;
  }
  return typeof phase === "string"
    ? detail(`${type.replace("stage.", "")} ${phase}`, detailOf(rest))
    : detail(type, detailOf(data));
}

function startedWith(data: Json): string {
  const models = textsAt(data, "models").join(", ");
  const parts = [textAt(data, "pipeline"), models, `mode ${textAt(data, "mode")}`, textAt(data, "cwd")];
  return [...parts, forkedFrom(data)].filter((part) => part !== "").join(" · ");
}

function originOf(data: Json): string {
  return `${textAt(data, "from")} before ${textAt(data, "execution")}`;
}

function toolsOf(data: Json): string {
  const tools = textsAt(data, "tools").join(", ");
  return `with ${tools === "" ? "no tools" : tools}`;
}

function exitWords(data: Json, { turns = 0, usage }: EventContext): Words {
  const outcome = textAt(data, "outcome");
  const total = field(data, "usage") === undefined ? usage : usageAt(data);
  const cost = turns === 0 || total === undefined ? "" : `${count(turns, "turn")}, ${spending(total)}`;
  return { what: outcome, more: textAt(data, "fault") || cost, tone: outcome === "completed" ? "good" : "bad" };
}

function refusedCall(data: Json): Words {
  const result = field(data, "result");
  const cause = textAt(data, "cause");
  const reason = textAt(result, "reason");
  const call = REQUESTED.has(cause) ? textAt(data, "tool") : shortCall(textAt(data, "args"));
  if (cause === "") return { what: "refused", more: `${call}: ${reason} (${textAt(result, "code")})`, tone: "notice" };
  return {
    what: "denied",
    more: `${call}: ${reason.startsWith(cause) ? reason : `${reason} (${cause})`}`,
    tone: "bad",
  };
}

function finishedCall(call: string, data: Json): Words {
  const outcome = textAt(data, "outcome");
  const duration = milliseconds(numberAt(data, "ms"));
  return outcome === "ok"
    ? { what: "ran", more: `${call} in ${duration}` }
    : { what: "ran", more: `${call}: ${outcome} after ${duration}`, tone: "notice" };
}

/** The call and the beginning of its arguments; an audit shows the data with all of them. */
function shortCall(call: string): string {
  return call.length > LONGEST_CALL ? `${call.slice(0, LONGEST_CALL).toWellFormed()}…)` : call;
}

function routeWords(data: Json): Words {
  const to = field(data, "to");
  switch (textAt(data, "choice")) {
    case "to":
      return { what: "next", more: typeof to === "string" ? to : "" };
    case "fanOut":
      return { what: "next", more: `${textsAt(data, "to").join(", ")} in parallel` };
    case "done":
      return { what: "ends run", more: "completed" };
    default:
      return { what: "ends run", more: textAt(data, "reason"), tone: "bad" };
  }
}

function outcomesOf(value: Json | undefined): string {
  if (!Array.isArray(value)) return "";
  return value.map((sibling: Json) => `${textAt(sibling, "name")} ${textAt(sibling, "status")}`).join(", ");
}

function plainText(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

const APPROVED_BY: ReadonlyMap<string, string> = new Map([
  ["envelope", "the envelope"],
  ["grant", "a grant"],
  ["mode", "the mode"],
]);
const REFUSED_BY: ReadonlyMap<string, string> = new Map([
  ["denied", "a person"],
  ["deferred", "a person, for now"],
  ["timeout", "no answer in time"],
  ["no_interactor", "no interactor"],
  ["hook", "a hook"],
  ["mode", "the mode"],
  ["limit", "a hard limit"],
]);
const ROUTED_BY: ReadonlyMap<string, string> = new Map([
  ["function", "its route's function"],
  ["table", "the table"],
  ["default", "the default, as no route matched"],
]);

function decisionOf({ type, data }: SluiceEvent): readonly [by: string, why: string] {
  const text = (key: string): string => textAt(data, key);
  switch (type) {
    case "call.decided": {
      const by = data.verdict === "refused" ? REFUSED_BY.get(text("cause")) : APPROVED_BY.get(text("by"));
      return [by ?? "the gate", textAt(data.result, "reason") || textAt(data.result, "message")];
    }
    case "grant.answered":
    case "request.answered":
      return [text("by"), text("reason") || text("cause")];
    case "grant.expired":
    case "request.expired":
      return ["the run", text("cause")];
    case "hook.vetoed":
      return [`the ${text("hook")}'s hook`, text("reason")];
    case "stage.precondition":
      return [text("answer") === "" ? "" : "precondition", ""];
    case "stage.assert":
      return [text("answer") === "" ? "" : "assert", ""];
    case "attempt.finished":
      return text("outcome") === "retry" ? ["assert", text("feedback")] : ["", text("message")];
    case "completion.rejected":
      return ["the completion's schema", issuesIn(data)];
    case "route.decided":
      return [ROUTED_BY.get(textAt(data.why, "by")) ?? "the route", text("reason")];
    case "route.rejected":
      return ["the machine", text("reason")];
    case "limit.near":
    case "limit.reached":
      return [`the limit ${text("limit")}`, text("message")];
    case "model.retried":
      return ["", text("message")];
    case "run.resumed":
    case "run.forked":
      return [textAt(data.changed, "by"), textsAt(data.changed, "changes").join("; ")];
    case "run.finished":
      return ["", textAt(data.error, "message") || text("reason")];
    default:
      return ["", ""];
  }
}

function verdictOf({ type, data }: SluiceEvent): Verdict | undefined {
  switch (type) {
    case "call.decided":
      return data.verdict === "refused" ? "refused" : "approved";
    case "grant.answered":
    case "request.answered":
      return data.answer === "approve" || data.answer === "value" ? "approved" : "refused";
    case "completion.accepted":
      return "approved";
    case "completion.rejected":
    case "route.rejected":
    case "hook.vetoed":
    case "grant.expired":
    case "request.expired":
      return "refused";
    default:
      return undefined;
  }
}

/** The events of one run, in its own order. */
export interface RunEvents {
  readonly runId: string;
  readonly events: readonly SluiceEvent[];
}
export interface PlacedEvent {
  readonly event: SluiceEvent;
  /** Levels below the first run. */
  readonly depth: number;
}

/** A run's events in their order, with those of its siblings after the fan-out that started them. The first run is the root. */
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
        const isChild = child.runId.startsWith(fork) && !child.runId.slice(fork.length).includes("/");
        if (isChild && !shown.has(child)) put(child, depth + 1);
      }
    }
  };
  const [root] = runs;
  if (root !== undefined) put(root, 0);
  // An audit hides nothing: runs without a fan-out event come last.
  for (const run of runs) if (!shown.has(run)) put(run, 1);
  return placed;
}
