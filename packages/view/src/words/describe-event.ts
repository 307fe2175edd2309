import { field, type Json, type JsonObject, type SluiceEvent, type Usage } from "@sluice/core";
import { itemKeyOf, parseExecutionId, runDepth } from "@sluice/core/runtime";
import {
  consideredIn,
  isAgentModel,
  issuesIn,
  modelText,
  numberAt,
  originOf,
  textAt,
  textsAt,
  usageAt,
} from "./fields.ts";
import { count, grouped, isNothing, milliseconds, moment, oneLine, shortKey, spending } from "./words.ts";

/** How a word is shown: good and bad news, a notice, a name. */
export type Tone = "plain" | "strong" | "faint" | "good" | "bad" | "notice" | "name";

/** Whether an event approves or refuses something. */
export type Verdict = "approved" | "refused";

/** The filters of an audit. */
export interface AuditFilter {
  /** The state; absent for what happens to a run as a whole. */
  readonly stage?: string;
  readonly tool?: string;
  readonly verdict?: Verdict;
}

/** One event in words. All texts are bounded, on one line, and safe to print. */
export interface EventLine extends AuditFilter {
  /** Levels of fan-outs and other pipelines above its run: each adds a step and a key to the id. */
  readonly depth: number;
  /** The execution, or `run`. */
  readonly who: string;
  readonly what: string;
  readonly more: string;
  /** Who or what decided; empty if the event is not a decision. */
  readonly by: string;
  /** The reason of the decision or failure; empty if there is none. */
  readonly why: string;
  readonly tone: Tone;
  /** True for events that only an audit shows. */
  readonly isDetail: boolean;
}

/** What earlier events recorded about the subject of this one. */
export interface EventContext {
  /** The call with its arguments. */
  readonly call?: string;
  readonly turns?: number;
  readonly usage?: Usage;
  /** The interrupt whose handler the execution waits for. */
  readonly interrupt?: string;
  /** When the execution, which sleeps, was to wake. */
  readonly until?: number;
}

const LONGEST_CALL = 80;
const LONGEST_KEY = 50;
/** Items of a list that are named. */
const MOST_NAMED = 5;
/** Causes of a denial that follows a request: the request's line shows the call. */
const REQUESTED: ReadonlySet<string> = new Set(["denied", "deferred", "timeout", "no_interactor"]);

/** The only place that describes events in words. The log, the audit, transcripts and the report use it. */
export function describeEvent(event: SluiceEvent, context: EventContext = {}): EventLine {
  const { executionId, runId, data } = event;
  const { what, more, tone = "plain", isDetail = false, by = "", why = "", verdict } = wordsOf(event, context);
  const tool = textAt(data, "tool") || textAt(field(data, "body"), "tool");
  return {
    depth: runDepth(runId),
    who: executionId === undefined ? "run" : whoOf(runId, executionId),
    what: oneLine(what, 40),
    more: oneLine(more),
    by: oneLine(by, 80),
    why: oneLine(why, 1_000),
    tone,
    isDetail,
    ...(executionId === undefined ? {} : { stage: parseExecutionId(executionId).state }),
    ...(tool === "" ? {} : { tool }),
    ...(verdict === undefined ? {} : { verdict }),
  };
}

function whoOf(runId: string, executionId: string): string {
  const item = itemKeyOf(runId, parseExecutionId(executionId).state);
  return `${oneLine(executionId, 40)}${item === undefined ? "" : `:${shortKey(item, LONGEST_KEY)}`}`;
}

/** An execution as people name it: `review#1`, and `review#1:src/a.ts` for an item of a list. Untrusted text. */
export function executionName({
  runId,
  executionId,
}: {
  readonly runId: string;
  readonly executionId: string;
}): string {
  const item = itemKeyOf(runId, parseExecutionId(executionId).state);
  return item === undefined ? executionId : `${executionId}:${item}`;
}

/** Whether a line has every property that the filter names. */
export function matchesFilter(line: AuditFilter, { stage, tool, verdict }: AuditFilter): boolean {
  if (stage !== undefined && line.stage !== stage) return false;
  if (tool !== undefined && line.tool !== tool) return false;
  return verdict === undefined || line.verdict === verdict;
}

/** An event's data as `key=value` pairs on one line. */
export function detailOf(data: JsonObject): string {
  return Object.entries(data)
    .map(([key, value]) => `${oneLine(key, 40)}=${oneLine(plainText(value), 120)}${timeIn(key, value)}`)
    .join(" ");
}

/** Members that are times to people. */
const TIMES: ReadonlySet<string> = new Set(["until", "wakeAt"]);

function timeIn(key: string, value: Json): string {
  return TIMES.has(key) && typeof value === "number" ? ` (${moment(value)})` : "";
}

interface Words extends Partial<Pick<EventLine, "tone" | "isDetail" | "by" | "why" | "verdict">> {
  readonly what: string;
  readonly more: string;
}

const NOTICE = { tone: "notice" } as const;

function wordsOf({ type, data, at, attempt = 1 }: SluiceEvent, context: EventContext): Words {
  const text = (key: string): string => textAt(data, key);
  const words = (what: string, more: string, rest: Partial<Words> = {}): Words => ({ what, more, ...rest });
  const detail = (what: string, more: string, rest: Partial<Words> = {}): Words =>
    words(what, more, { isDetail: true, ...rest });
  const { phase } = data;
  switch (type) {
    case "run.started":
      return field(data, "parent") === undefined
        ? words("started", startedWith(data))
        : detail("started", startedChild(data));
    case "run.resumed": {
      const { by, why } = changedBy(data);
      return words("resumed", why === "" ? "" : `with a changed pipeline: ${why}`, { by, why });
    }
    case "run.forked": {
      const origin = `${text("from")} before ${text("execution")}`;
      const more = `continues independently; its earlier records are from ${origin}`;
      return words("forked", more, { ...NOTICE, ...changedBy(data) });
    }
    case "run.suspended":
      return words("suspended", suspendedFor(data), NOTICE);
    case "run.finished": {
      const why = textAt(data.error, "message") || text("reason");
      const finalState = endStateOf(data);
      if (finalState === "" && saidAtEnd(data) === "") return detail("finished", text("status"), { why });
      const tone = text("status") === "completed" ? "good" : "bad";
      return words("ended", `${text("status")}${finalState === "" ? "" : ` in ${finalState}`}${saidAtEnd(data)}`, {
        why,
        tone,
      });
    }
    case "attempt.started":
      return words(`attempt ${attempt}`, text("feedback"), attempt > 1 ? NOTICE : { isDetail: true });
    case "attempt.finished": {
      const [outcome, code, feedback] = [text("outcome"), text("code"), text("feedback")];
      if (outcome === "retry") return detail("sent back", feedback, { ...NOTICE, by: "assert", why: feedback });
      return detail("attempt", `${outcome}${code === "" ? "" : ` (${code})`}`, { why: text("message") });
    }
    case "stage.setup":
      if (attempt === 1 && phase === "left") return words("entered", toolsOf(data), { tone: "strong" });
      break;
    case "stage.precondition": {
      const by = text("answer") === "" ? "" : "precondition";
      if (phase === "left" && data.answer !== "proceed")
        return words("precondition", text("answer"), { ...NOTICE, by });
      return { ...otherWords(type, data), by };
    }
    case "stage.assert":
      return { ...otherWords(type, data), by: text("answer") === "" ? "" : "assert" };
    case "stage.exit":
      if (phase === "left") return exitWords(data, context);
      break;
    case "turn.started": {
      const tries = numberAt(data, "try");
      const model = text("model");
      const asks = isAgentModel(model) ? `waits for ${modelText(model)}` : `calls ${model}`;
      return detail(`turn ${numberAt(data, "turn")}`, `${asks}${tries > 1 ? `, try ${tries}` : ""}`);
    }
    case "turn.finished": {
      const usage = usageAt(data);
      const made = `made ${count(numberAt(data, "calls"), "call")}`;
      return detail(`turn ${numberAt(data, "turn")}`, isNothing(usage) ? made : `${made}, ${spending(usage)}`);
    }
    case "model.retried": {
      const next = `next try in ${milliseconds(numberAt(data, "waitMs"))}`;
      return words("retrying", `${text("message")}; ${next}`, { ...NOTICE, why: text("message") });
    }
    case "model.fallback":
      return words(
        "fallback",
        `${text("message")}; the stage continues with ${text("to")}, in place of ${text("from")}`,
        {
          ...NOTICE,
          why: text("message"),
        },
      );
    case "model.warned": {
      const warnings = Array.isArray(data.warnings) ? data.warnings.filter((one) => typeof one === "string") : [];
      return words("warning", `${text("model")}: ${warnings.join("; ")}`, NOTICE);
    }
    case "call.decided": {
      const why = textAt(data.result, "reason") || textAt(data.result, "message");
      if (data.verdict === "refused")
        return { ...refusedCall(data), by: REFUSED_BY.get(text("cause")) ?? "the gate", why, verdict: "refused" };
      const by = APPROVED_BY.get(text("by")) ?? "the gate";
      return detail(text("verdict"), text("args"), { by, why, verdict: "approved" });
    }
    case "call.started":
      return detail("running", `${text("callId")} ${text("tool")}`);
    case "call.finished":
      return finishedCall(shortCall(context.call ?? text("tool")), data);
    case "grant.requested":
      return words("requests", `${shortCall(textAt(data.body, "argsSummary"))}: ${textAt(data.body, "why")}`, NOTICE);
    case "request.opened":
      return words("asks", `${textAt(data.body, "question") || approvalWords(data.body)}${deadlineOf(data)}`, NOTICE);
    case "grant.answered":
    case "request.answered": {
      const [answer, by, reason] = [text("answer"), text("by"), text("reason")];
      const verdict = answer === "approve" || answer === "value" ? "approved" : "refused";
      const decision = { by, why: reason || text("cause"), verdict } as const;
      if (answer === "none") return detail("answered", "none", decision);
      return words("answered", `${answer} by ${by}${reason === "" ? "" : `: ${reason}`}`, decision);
    }
    case "grant.expired":
    case "request.expired": {
      const decision = { by: "the run", why: text("cause"), verdict: "refused" } as const;
      return words("expired", `${text("requestId")} (${text("cause")})`, { ...NOTICE, ...decision });
    }
    case "grant.consumed":
      return detail("granted", `${text("requestId")} is used`);
    case "completion.accepted":
      return detail("accepted", text("callId"), { verdict: "approved" });
    case "completion.rejected": {
      const decision = { by: "the completion's schema", why: issuesIn(data), verdict: "refused" } as const;
      return words("rejected", `the result does not match its schema: ${decision.why}`, { ...NOTICE, ...decision });
    }
    case "transition.accepted":
      return detail("accepted", `${text("event")}, to ${text("to")}`, { by: "the machine", verdict: "approved" });
    case "transition.rejected": {
      const decision = { by: "the machine", why: text("reason"), verdict: "refused" } as const;
      return words("rejected", `${text("event")}: ${decision.why}`, { ...NOTICE, ...decision });
    }
    case "execution.interrupted":
      return words("interrupted", text("reason"), { ...NOTICE, by: text("by"), why: text("reason") });
    case "interrupt.started":
      return words(
        "interrupt",
        `${text("interrupt")}${isMessage(data) ? "" : `: ${changedFiles(data)}`}, to ${text("to")}`,
        NOTICE,
      );
    case "interrupt.returned":
      return words("continues", `after ${text("interrupt")}, which ${text("by")} handled`);
    case "execution.suspended": {
      const { retryAt } = data;
      const when = typeof retryAt === "number" ? `from ${moment(retryAt)}` : "when the run is resumed";
      return words("waits", `${text("message")}; continues ${when}`, { ...NOTICE, why: text("message") });
    }
    case "execution.continued":
      return detail("continues", CONTINUED[text("by")] ?? "");
    case "command.started":
      return detail("command", text("command"));
    case "sleep.started":
      return words("sleeps", sleepWords(data, at));
    case "sleep.ended":
      return wokeWords(text("by"), context.until === undefined ? 0 : at - context.until);
    case "message.received":
      return detail(text("kind") === "followUp" ? "follow-up" : "message", `${text("by")}: ${text("text")}`);
    case "context.changed":
      return detail("context", plainText(data.patch));
    case "route.rejected": {
      const decision = { by: "the machine", why: text("reason"), verdict: "refused" } as const;
      const to = text("to") === "" ? "" : `${text("to")}: `;
      return words("rejected", `${to}${text("reason")}`, { ...NOTICE, ...decision });
    }
    case "route.decided": {
      const by = ROUTED_BY.get(textAt(data.why, "by")) ?? "the route";
      const why = text("reason") || textAt(data.why, "rationale") || textAt(data.why, "reason");
      return { ...routeWords(data), by, why };
    }
    case "fanOut.started":
      return startedFanOut(data);
    case "fanOut.joined":
      return words("joined", text("list") === "" ? outcomesOf(data.outcomes) : itemOutcomes(data));
    case "limit.near":
    case "limit.reached": {
      const [limit, why] = [text("limit"), text("message")];
      const decision = { by: `the limit ${limit}`, why };
      if (type === "limit.near") return words("near limit", why, { ...NOTICE, ...decision });
      return words("limit", `${limit}: ${why}`, { tone: "bad", ...decision });
    }
    case "hook.vetoed": {
      const [by, why] = [`the ${text("hook")}'s hook`, text("reason")];
      return words("vetoed", `${text("tool")} by ${by}: ${why}`, { tone: "bad", by, why, verdict: "refused" });
    }
    default:
      break;
  }
  return otherWords(type, data);
}

/** What a person is asked about a transition: `testing -> deploying: Deploy to production?` */
export function approvalWords(body: Json | undefined): string {
  const [to, message, event] = [textAt(body, "to"), textAt(body, "message"), textAt(body, "event")];
  if (to === "") return message;
  const rationale = textAt(field(body, "data"), "rationale");
  const reasons = [message, rationale === "" ? "" : `the stage says: ${rationale}`].filter((reason) => reason !== "");
  const why = reasons.length === 0 ? "" : `: ${reasons.join("; ")}`;
  return `${textAt(body, "from")} -> ${to}${event === "" ? "" : `, by ${event}`}${why}`;
}

/** The files that started an interrupt; it may be unknown which ones changed. */
export function changedFiles(data: Json): string {
  const files = textsAt(data, "files");
  return files.length === 0 ? "unknown files" : files.join(", ");
}

/** Whether a message to a sleeping run that an orchestrator leads interrupted it, without a file. */
export function isMessage(data: Json): boolean {
  return textAt(data, "interrupt") === "message" && textsAt(data, "files").length === 0;
}

/** The words of events that only an audit shows. */
function otherWords(type: string, data: JsonObject): Words {
  const { phase, ...rest } = data;
  if (typeof phase !== "string") return { what: type, more: detailOf(data), isDetail: true };
  return { what: `${type.replace("stage.", "")} ${phase}`, more: detailOf(rest), isDetail: true };
}

/** What an orchestrator said when the run had ended. */
function saidAtEnd(data: JsonObject): string {
  const said = textAt(data.acknowledgement, "text");
  const asks = field(data.acknowledgement, "followUp") === undefined ? "" : "; it asks for another run";
  return said === "" ? "" : `; the orchestrator says: ${said}${asks}`;
}

/** What a suspended run waits for. */
function suspendedFor(data: JsonObject): string {
  const wake = wakeWords(data.wakeAt);
  switch (textAt(data, "reason")) {
    case "waiting":
      return `waiting for an answer${wake === "" ? "" : `; ${wake}`}`;
    case "sleeping":
      return wake === "" ? "asleep" : wake;
    case "provider": {
      const faults = Array.isArray(data.faults) ? data.faults.map((fault) => textAt(fault, "executionId")) : [];
      const where = faults.length === 0 ? "" : ` in ${faults.join(", ")}`;
      return `the provider failed${where}${wake === "" ? "" : `; ${wake}`}`;
    }
    default:
      return "";
  }
}

/** What ended a wait for a provider. */
const CONTINUED: Readonly<Record<string, string>> = {
  resume: "since the run was resumed",
  time: "since its time has come",
  cancelled: "since it is cancelled",
};

function wakeWords(wakeAt: Json | undefined): string {
  return typeof wakeAt === "number" ? `it wakes at ${moment(wakeAt)}` : "";
}

/** Until when a question may be answered. */
function deadlineOf({ until }: JsonObject): string {
  return typeof until === "number" ? ` (until ${moment(until)})` : "";
}

/** `attempt 3: exit 1; next in 30.0 s, at …` of a poll, and `for 2 h 0 min, until …` of any other state. */
function sleepWords(data: JsonObject, at: number): string {
  const { until, attempt, exitCode } = data;
  if (typeof until !== "number") return "";
  const length = milliseconds(Math.max(0, until - at));
  if (typeof attempt !== "number") return `for ${length}, until ${moment(until)}`;
  const exit = typeof exitCode === "number" ? `: exit ${exitCode}` : "";
  return `attempt ${attempt}${exit}; next in ${length}, at ${moment(until)}`;
}

/** Lateness that is worth a word, in milliseconds. */
const LATE_MS = 1_000;

function wokeWords(by: string, lateMs: number): Words {
  if (by === "message") return { what: "woke", more: "by a message", ...NOTICE };
  if (by === "cancelled") return { what: "woke", more: "because it is cancelled", ...NOTICE };
  const late = lateMs < LATE_MS ? "" : `${milliseconds(lateMs)} after its time`;
  return { what: "woke", more: late, isDetail: true };
}

function changedBy(data: JsonObject): { readonly by: string; readonly why: string } {
  return { by: textAt(data.changed, "by"), why: textsAt(data.changed, "changes").join("; ") };
}

function startedWith(data: Json): string {
  const models = textsAt(data, "models").map(modelText).join(", ");
  const parts = [textAt(data, "pipeline"), models, `mode ${textAt(data, "mode")}`, textAt(data, "cwd")];
  const danger = textAt(field(data, "meta"), "dangerLevel");
  return [...parts, danger === "" ? "" : `danger level ${danger}`, originOf(data)]
    .filter((part) => part !== "")
    .join(" · ");
}

function toolsOf(data: Json): string {
  const tools = textsAt(data, "tools").join(", ");
  return `with ${tools === "" ? "no tools" : tools}`;
}

function exitWords(data: Json, { turns = 0, usage, interrupt }: EventContext): Words {
  const outcome = textAt(data, "outcome");
  const total = field(data, "usage") === undefined ? usage : usageAt(data);
  const cost = turns === 0 || total === undefined ? "" : `${count(turns, "turn")}, ${spending(total)}`;
  const left =
    interrupt === undefined || outcome !== "cancelled" ? "" : `the interrupt ${interrupt} did not return to it`;
  return { what: outcome, more: textAt(data, "fault") || left || cost, tone: outcome === "completed" ? "good" : "bad" };
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
    : { what: "ran", more: `${call}: ${outcome} after ${duration}${placeWords(data)}`, tone: "notice" };
}

/** Where code of the user threw. */
function placeWords(data: Json): string {
  const at = textAt(data, "at");
  return at === "" ? "" : ` at ${at}`;
}

/** The call and the beginning of its arguments; an audit shows the data with all of them. */
function shortCall(call: string): string {
  return call.length > LONGEST_CALL ? `${call.slice(0, LONGEST_CALL).toWellFormed()}…)` : call;
}

function routeWords(data: Json): Words {
  const to = field(data, "to");
  const led = ledBy(data);
  switch (textAt(data, "choice")) {
    case "to":
      return { what: "next", more: `${typeof to === "string" ? to : ""}${led}` };
    case "fanOut":
      return { what: "next", more: `${parallelWords(data)}${led}` };
    case "done":
      return { what: "ends run", more: `completed${led}` };
    case "return":
      return { what: "next", more: `back to the interrupted state${led}` };
    default:
      return { what: "ends run", more: textAt(data, "reason"), tone: "bad" };
  }
}

/** What led to a route, beside the end of its state: `, by READY: the plan is complete`. */
function ledBy(data: Json): string {
  const why = field(data, "why");
  const [event, rationale] = [textAt(why, "event"), textAt(why, "rationale") || textAt(why, "reason")];
  const isOther = textAt(why, "by") === "safe_next";
  const refused = consideredIn(data).filter(({ verdict }) => verdict === "refused");
  const parts = [
    ...(event === "" ? [] : [`, by ${event}${isOther ? " (no row names it)" : ""}`]),
    ...(textAt(why, "by") === "fallback" ? [", the fallback"] : []),
    ...(isApproved(data) ? [", approved"] : []),
    ...(rationale === "" ? [] : [`: ${rationale}`]),
    ...(refused.length === 0 ? [] : [`; refused: ${refused.map(({ to, why }) => `${to} (${why})`).join(", ")}`]),
  ];
  return parts.join("");
}

function isApproved(data: Json): boolean {
  return field(field(data, "why"), "approved") === true;
}

function outcomesOf(value: Json | undefined): string {
  if (!Array.isArray(value)) return "";
  return value.map((sibling: Json) => `${textAt(sibling, "name")} ${textAt(sibling, "status")}`).join(", ");
}

function parallelWords(data: Json): string {
  const children = childrenWords(data);
  if (children !== "") return `${children}, then ${textAt(data, "join")}`;
  const [states, items] = [textsAt(data, "to").join(", "), numberAt(data, "items")];
  return items === 0 ? `${states} in parallel` : `${states} for ${count(items, "item")}`;
}

/** Branches and other pipelines in words: `tests (unit to tested) and style (lint to styled)`; empty if there are none. */
function childrenWords(data: Json): string {
  const children = field(data, "children");
  if (!Array.isArray(children)) return "";
  const shown = children.slice(0, MOST_NAMED).map((child: Json) => {
    const [key, pipeline] = [shortKey(textAt(child, "key"), LONGEST_KEY), textAt(child, "pipeline")];
    return pipeline === ""
      ? `${key} (${textAt(child, "state")} to ${textAt(child, "terminal")})`
      : `pipeline ${pipeline}`;
  });
  const left = children.length - shown.length;
  const more = left === 0 ? "" : `, and ${grouped(left)} more`;
  return `${shown.join(field(data, "any") === true ? " or " : " and ")}${more}`;
}

/** A fan-out, a fork, or the run of other pipelines. */
function startedFanOut(data: Json): Words {
  const [children, join] = [childrenWords(data), textAt(data, "join")];
  if (children === "") return { what: "fan-out", more: `${startedSiblings(data)}, then ${join}` };
  const isPipeline = children.startsWith("pipeline ");
  // A state that runs pipelines itself continues after them.
  const isOwn = !textAt(data, "fanOut").startsWith("fan-");
  return { what: isPipeline ? "invokes" : "fork", more: `${children}, ${isOwn ? "for" : "then"} ${join}` };
}

function startedChild(data: Json): string {
  const [state, key] = [textAt(data, "state"), textAt(data, "key")];
  if (state === "") return `pipeline ${textAt(data, "pipeline")}${key === "" ? "" : ` as ${key}`}`;
  return `sibling ${state}${key === "" ? "" : ` for item ${key}`}`;
}

/** The final state in a `run.finished`; empty for another end. A sibling's has its state, and no usage. */
export function endStateOf(data: Json): string {
  return field(data, "usage") === undefined ? "" : textAt(data, "state");
}

/** The siblings of a fan-out; of a list, its length and the first keys. */
function startedSiblings(data: Json): string {
  const [list, keys] = [textAt(data, "list"), textsAt(data, "siblings")];
  return list === "" ? keys.join(", ") : `${list} for ${count(keys.length, "item")} (${named(keys)})`;
}

/** How many items of a list ended in which way, and which did not complete. */
function itemOutcomes(data: JsonObject): string {
  const outcomes: readonly Json[] = Array.isArray(data.outcomes) ? data.outcomes : [];
  const byStatus = Map.groupBy(outcomes, (outcome) => textAt(outcome, "status"));
  const parts = [...byStatus].map(([status, of]) => {
    const names = status === "completed" ? "" : ` (${named(of.map((outcome) => textAt(outcome, "name")))})`;
    return `${grouped(of.length)} ${status}${names}`;
  });
  return `${textAt(data, "list")} for ${count(outcomes.length, "item")}: ${parts.join(", ")}`;
}

function named(keys: readonly string[]): string {
  const first = keys.slice(0, MOST_NAMED).map((key) => shortKey(key, LONGEST_KEY));
  return `${first.join(", ")}${keys.length > first.length ? `, and ${grouped(keys.length - first.length)} more` : ""}`;
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
  ["event", "the event's row"],
  ["safe_next", "the row for any other event"],
  ["interrupt", "an interrupt"],
  ["model", "the model's choice"],
  ["fallback", "the fallback, as no choice could be followed"],
  ["default", "the default, as no route matched"],
]);
