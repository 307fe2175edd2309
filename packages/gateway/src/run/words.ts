// What an agent reads about its run.
import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { Json, JsonObject, PersonRequest } from "@sluice/core";
import { isQuestion, redactJson, shortened, textField, visible, visibleJson } from "@sluice/core/runtime";
import { requestCard } from "@sluice/view/text";
import type { CallReply, NativeReport, OpenQuestion, ReplyPart } from "./gateway-run-types.ts";

/** The tool with which an agent leaves a phase. */
export const TRANSITION = "transition";
/** The tool with which it reads the phase. */
export const GET_STATE = "get_state";

/** The report of a native call that is missing. */
export const LOST_REPORT: NativeReport = {
  ok: false,
  changesUnknown: true,
  output: {
    code: "not_reported",
    message: "it is unknown how this call ended: the program that ran it did not report it",
  },
};
export const CALLER_LEFT: JsonObject = {
  code: "caller_left",
  message: "no caller waits for the result of this call any more",
};
/** The report of a native call that its program starts only with others, which are still to be decided. */
export const STARTED_TOGETHER: NativeReport = {
  ok: true,
  changesUnknown: true,
  output: {
    code: "started_together",
    message: "the program that runs this call starts it together with others, so its result was not awaited",
  },
};
export const NOT_REPEATED: JsonObject = {
  code: "not_repeated",
  message: "the call was approved but not made again, so it was not run",
};
export const NOT_RUN: JsonObject = {
  code: "call_not_run",
  message: "the phase was left before this call, so it was not run",
};
/** Before the recorded result of a call that the agent made again. */
export const RAN_BEFORE =
  "This is the result of the same call from before the gateway was restarted. It was not run a second time; make it once more to run it.";
/** Before a refusal that the agent has read, or that was recorded before a restart. */
export const REFUSED_BEFORE = "This is the answer to the same call from before. Make it once more to ask again.";
export const READ_FIRST =
  "This call has not run: read first what has happened since your last answer, below. Then make the call again if it still makes sense.";
/** To an agent that another one has started. */
export const MAIN_READS_FIRST =
  "This call has not run: the main agent has not read yet what its own calls did. End your work with what you have, so that it can read that.";
/** Before a result that the agent has read with another answer. */
export const READ_BEFORE =
  "This is the result of the same call from before. It was not run a second time; make it once more to run it.";
export const LAST_TURN = "This is the last turn of the phase: only transition ends it.";

/** A refusal has changed nothing, so the call can simply be made again. */
export function isRefusal({ ok, output }: { readonly ok: boolean; readonly output: Json }): boolean {
  return !ok && REFUSALS.has(textField(output, "code") ?? "");
}

const REFUSALS: ReadonlySet<string> = new Set([
  "call_not_run",
  "call_refused",
  "completion_schema_invalid",
  "interrupted",
  "invalid_tool_input",
  "not_repeated",
  "repeated_call",
  "tool_call_denied",
  "transition_rejected",
  "truncated_call",
  "unknown_tool",
]);

/** An answer whose text is its output. */
export function replyOf(ok: boolean, output: Json): CallReply {
  return { ok, output, text: typeof output === "string" ? output : visibleJson(output) };
}

/** An answer of several parts, of which the first is about the call itself. */
export function replyWith(reply: CallReply, parts: readonly ReplyPart[]): CallReply {
  return { ...reply, parts, text: parts.map(({ text }) => text).join("\n\n") };
}

/** A refusal of the gateway. */
export function gatewayReply(code: string, text: string): CallReply {
  return replyWith({ ok: false, output: { code }, text }, [gatewayPart(text)]);
}

export function gatewayPart(text: string): ReplyPart {
  return { by: "gateway", text };
}

/** The parts of an answer; one without is the result of its call. */
export function partsOf({ parts, text }: CallReply): readonly ReplyPart[] {
  return parts ?? [{ by: "result", text }];
}

/** The text about a phase that the agent has entered. */
export function phaseText({ state, text }: { readonly state: string; readonly text: string }): string {
  return `You are now in the phase ${visible(state)} of a workflow. Its instructions:\n\n${text}`;
}

/** How a phase is completed whose own tool takes the result. */
export function completionText({ name, inputSchema }: LanguageModelV4FunctionTool): readonly string[] {
  if (name === TRANSITION || name === GET_STATE) return [];
  return [
    `Where these instructions name the tool ${name}, call transition with {"event": ${JSON.stringify(name)}, "data": <its arguments>} instead. JSON Schema of data: ${JSON.stringify(inputSchema)}`,
  ];
}

/** The result of a call that an earlier process of the gateway took, and that the agent has not made again. */
export function lostAnswer(
  call: { readonly tool: string; readonly input?: Json },
  reply: CallReply,
): readonly ReplyPart[] {
  const about = `The gateway was restarted. The last call before that was ${shownCall(call)}, with this result:`;
  return [gatewayPart(about), ...partsOf(reply)];
}

export function waitingText({ runId, question, command }: OpenQuestion): string {
  return [
    `This call has not run: a person has to decide. Open request: ${question}`,
    `They can see all of it with: sluice show ${runId}`,
    `They can answer in the app, or with: ${command}`,
    "Make exactly the same call again to take the answer. Do not work around it; until it is answered, no other call of this phase runs.",
  ].join("\n");
}

export const NOT_YET = "This call has not run yet.";

/** The answer to a call in one state of a fan-out, after a person's answer, while another one has its turn. */
export function otherPhaseText(state: string): string {
  return `This call has not run yet: the phase ${visible(state)} has its turn first. Call get_state, continue there, and make exactly the same call again later to take the answer.`;
}

/** An approved call for which a state waits, since the agent's own program runs it. */
export function awaitedText(state: string, call: { readonly tool: string; readonly input: Json }): string {
  return `Your call of ${shownCall(call)} in the phase ${visible(state)} is approved and goes first: make exactly that call again.`;
}

/** A call in one line, cut, without what looks like a secret. */
export function shownCall({ tool, input }: { readonly tool: string; readonly input?: Json }): string {
  const line = input === undefined ? "" : visibleJson(redactJson(input));
  return [visible(tool), shortened(line, SHOWN)].filter((part) => part !== "").join(" ");
}

const SHOWN = 200;

const DIGEST_SHOWN = 16;

/** Columns of a form: clients cut what does not fit into a row of their own. */
const FORM_COLUMNS = 64;
/** Rows of a request that a form shows. */
const MOST_FORM_ROWS = 20;
/** A body with more UTF-16 units of JSON is not laid out to see whether it fits. */
const MOST_IN_FORM = 10_000;

/** A request in full for a form; undefined if it does not fit, or takes no approval. */
function wholeOf(request: PersonRequest): string | undefined {
  const { kind, body } = request;
  if (kind !== "grantStageTool" && kind !== "approveTransition") return undefined;
  if (JSON.stringify(body).length > MOST_IN_FORM) return undefined;
  const card = requestCard(request, FORM_COLUMNS).trim();
  return card.split("\n").length > MOST_FORM_ROWS ? undefined : card;
}

/** A request in one line, and in full for a form. */
export function questionOf(request: PersonRequest): OpenQuestion {
  const { runId, requestId, digest, kind, body } = request;
  const text = (key: string): string => visible(textField(body, key) ?? "");
  const about: Readonly<Record<PersonRequest["kind"], string>> = {
    grantStageTool: `approve ${text("argsSummary")} (${text("why")})`,
    approveTransition: `approve the transition ${text("event")}: ${text("message")}`,
    askUser: text("question"),
    humanState: text("question"),
  };
  const answer = isQuestion(request) ? "--value <answer>" : "approve";
  const command = `sluice answer ${runId} ${requestId} --digest ${digest.slice(0, DIGEST_SHOWN)} ${answer}`;
  const whole = wholeOf(request);
  return { runId, requestId, digest, question: about[kind], ...(whole === undefined ? {} : { whole }), command };
}
