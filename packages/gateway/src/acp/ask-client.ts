// Requests of a run as questions to the client. There is no "always": an approval is for one call.
import type {
  AgentContext,
  ClientCapabilities,
  ElicitationPropertySchema,
  ElicitationSchema,
  PermissionOption,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { CreateElicitationResponse, methods } from "@agentclientprotocol/sdk";
import {
  type Answer,
  field,
  type Interactor,
  isJson,
  isJsonObject,
  type Json,
  type JsonObject,
  type PersonRequest,
  parseJson,
} from "@sluice/core";
import { checkAnswer, isQuestion, messageOf, redactText, visible } from "@sluice/core/runtime";
import { requestCard, toldApart } from "@sluice/view/text";
import { textAt } from "@sluice/view/words";
import { diffsOf, kindOf, locationsOf, textContent, titleOf, toolCallId } from "./tool-call.ts";

export interface ClientAsker {
  readonly sessionId: string;
  readonly cwd: string;
  readonly client: Pick<AgentContext, "request">;
  readonly capabilities: () => ClientCapabilities | undefined;
  /** Recorded with the answers. */
  readonly name: string;
  /** Aborts when the client is gone: then requests stay open. */
  readonly gone: AbortSignal;
  /** Sends what the client does not know yet about the run and the request: what is sent of its call later could replace what it shows. */
  readonly flush: (request: PersonRequest, signal: AbortSignal) => Promise<void>;
}

const ALLOW = "allow";
const DENY = "deny";
/** The options of a question, by index. */
const CHOICE = "choice-";
/** How often a question is asked again after an answer that does not fit. */
const MOST_TRIES = 3;
/** Longest body of a request that is shown whole, in UTF-16 units of its JSON. */
const MOST_SHOWN = 100_000;
const CARD_COLUMNS = 100;
/** More choices are asked for as text. */
const MOST_CHOICES = 12;
const ELSEWHERE = "answer with sluice answer in a run of sluice run --wait";

/** An interactor that asks the client of a session. */
export function clientInteractor(asker: ClientAsker): Interactor {
  return {
    name: asker.name,
    answer: async (request, signal) => {
      try {
        await asker.flush(request, signal);
        return await (isQuestion(request) ? askValue(request, signal, asker) : askApproval(request, signal, asker));
      } catch (thrown) {
        // The run is suspended with its request open, or another process has answered.
        if (asker.gone.aborted || signal.aborted) return undefined;
        return { kind: "deny", reason: `the client could not ask: ${redactText(messageOf(thrown))}` };
      }
    },
  };
}

async function askApproval(request: PersonRequest, signal: AbortSignal, asker: ClientAsker): Promise<Answer> {
  const isCall = request.kind === "grantStageTool";
  const whole = wholeText(request);
  const text =
    whole ??
    `It is too long to be shown whole, so it cannot be approved here. See it with: sluice show ${request.runId}`;
  const toolCall = isCall ? callToApprove(request, text, asker.cwd) : stepToApprove(request, text);
  const allow: PermissionOption = {
    optionId: ALLOW,
    name: isCall ? "Allow this call once" : "Approve this step",
    kind: "allow_once",
  };
  const deny: PermissionOption = { optionId: DENY, name: "Deny", kind: "reject_once" };
  const chosen = await choose(toolCall, whole === undefined ? [deny] : [allow, deny], signal, asker);
  // Whatever was not offered denies.
  if (chosen === ALLOW && whole !== undefined) return { kind: "approve" };
  return { kind: "deny", reason: chosen === DENY ? "denied in the editor" : "the client closed the question" };
}

/** The option that was chosen, or undefined for none. */
async function choose(
  toolCall: ToolCallUpdate,
  options: PermissionOption[],
  signal: AbortSignal,
  { client, sessionId }: ClientAsker,
): Promise<string | undefined> {
  const { outcome } = await client.request(
    methods.client.session.requestPermission,
    { sessionId, toolCall, options },
    { cancellationSignal: signal, stopWaitingOnCancel: true },
  );
  return outcome.outcome === "selected" ? outcome.optionId : undefined;
}

function callToApprove({ runId, requestId, body }: PersonRequest, text: string, cwd: string): ToolCallUpdate {
  const tool = textAt(body, "tool");
  const input = field(body, "input") ?? null;
  const touched = touchedPaths(body);
  return {
    toolCallId: toolCallId(runId, requestId),
    title: titleOf(tool, input),
    name: visible(tool),
    kind: kindOf(tool),
    status: "pending",
    rawInput: input,
    locations: touched.length === 0 ? locationsOf(tool, input, cwd) : touched.map((path) => ({ path })),
    content: [...diffsOf(tool, input, cwd), textContent(text)],
  };
}

/** The files that the call accesses, with links resolved. */
function touchedPaths(body: JsonObject): readonly string[] {
  const touches = field(body, "touches");
  return Array.isArray(touches) ? touches.map((touch: Json) => textAt(touch, "path")) : [];
}

/** A move from state to state. */
function stepToApprove({ runId, requestId, body }: PersonRequest, text: string): ToolCallUpdate {
  const { from: _from, to: _to, ...facts } = body;
  return {
    toolCallId: toolCallId(runId, requestId),
    title: visible(`${textAt(body, "from")} -> ${textAt(body, "to")}: ${textAt(body, "message")}`).replaceAll(
      "\n",
      " ",
    ),
    kind: "switch_mode",
    status: "pending",
    rawInput: facts,
    content: [textContent(text)],
  };
}

/**
 * A request as text for an editor, in full and not redacted: whatever is left out could be what matters. Undefined if it is too long.
 * A block of code, since Markdown would hide or change parts of it.
 */
function wholeText(request: PersonRequest): string | undefined {
  if (JSON.stringify(request.body).length > MOST_SHOWN) return undefined;
  const card = requestCard(request, CARD_COLUMNS).trim();
  const longest = Math.max(2, ...[...card.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}text\n${card}\n${fence}`;
}

async function askValue(request: PersonRequest, signal: AbortSignal, asker: ClientAsker): Promise<Answer> {
  const text = wholeText(request);
  if (text === undefined)
    return { kind: "deny", reason: `the question is too long to be shown whole in the editor; ${ELSEWHERE}` };
  const schema = field(request.body, "answer");
  const form = asker.capabilities()?.elicitation?.form;
  if (form !== undefined && form !== null) return await askForm(request, text, signal, asker);
  const choices = choicesOf(schema);
  if (choices === undefined)
    return { kind: "deny", reason: `the client cannot ask questions (it lacks elicitation); ${ELSEWHERE}` };
  const options: PermissionOption[] = [
    ...toldApart(choices).map((name, index) => ({
      optionId: `${CHOICE}${index}`,
      name: visible(name),
      kind: "allow_once" as const,
    })),
    { optionId: DENY, name: "Do not answer", kind: "reject_once" },
  ];
  const toolCall: ToolCallUpdate = {
    toolCallId: toolCallId(request.runId, request.requestId),
    title: visible(textAt(request.body, "question")).replaceAll("\n", " "),
    kind: "think",
    status: "pending",
    content: [textContent(text)],
  };
  const chosen = await choose(toolCall, options, signal, asker);
  const index = choices.findIndex((_, at) => chosen === `${CHOICE}${at}`);
  const value = choices[index];
  if (value === undefined) return { kind: "deny", reason: "the user did not answer" };
  return fitting(request, value) ?? { kind: "deny", reason: "the answer does not fit" };
}

/** The values of a question that has few of them. */
function choicesOf(schema: Json | undefined): readonly Json[] | undefined {
  const values = field(schema, "type") === "boolean" ? [true, false] : field(schema, "enum");
  return Array.isArray(values) && values.length > 0 && values.length <= MOST_CHOICES ? values : undefined;
}

async function askForm(
  request: PersonRequest,
  text: string,
  signal: AbortSignal,
  { client, sessionId }: ClientAsker,
): Promise<Answer> {
  const form = formOf(field(request.body, "answer"));
  let fault = "";
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const response = await client.request(
      methods.client.elicitation.create,
      {
        mode: "form",
        sessionId,
        toolCallId: toolCallId(request.runId, request.requestId),
        message: fault === "" ? text : `${text}\n\n${fault}`,
        requestedSchema: form.schema,
      },
      { cancellationSignal: signal, stopWaitingOnCancel: true },
    );
    if (!CreateElicitationResponse.isAccept(response))
      return { kind: "deny", reason: response.action === "decline" ? "the user declined" : "the user did not answer" };
    const content: unknown = response.content ?? {};
    const value = isJson(content) && isJsonObject(content) ? form.read(content) : undefined;
    const checked = value === undefined ? undefined : checkAnswer(request, { kind: "value", value });
    if (checked?.ok === true) return checked.answer;
    fault = visible(checked?.fault ?? "the answer is missing");
  }
  return { kind: "deny", reason: `no answer fits: ${fault}` };
}

function fitting(request: PersonRequest, value: Json): Answer | undefined {
  const checked = checkAnswer(request, { kind: "value", value });
  return checked.ok ? checked.answer : undefined;
}

interface Form {
  readonly schema: ElicitationSchema;
  /** The answer in what the client filled in. */
  read(content: JsonObject): Json | undefined;
}

const ANSWER = "answer";

/** A form for a schema: flat objects have a field for each property, and what a form cannot hold is typed as JSON. */
function formOf(schema: Json | undefined): Form {
  const members = field(schema, "type") === "object" ? field(schema, "properties") : undefined;
  if (members !== undefined && isJsonObject(members)) {
    const fields = Object.entries(members).map(([name, member]) => [name, propertyOf(member)] as const);
    const required = field(schema, "required");
    if (fields.length > 0 && fields.every(([, property]) => property !== undefined))
      return {
        schema: {
          type: "object",
          properties: Object.fromEntries(fields.flatMap(([name, property]) => (property ? [[name, property]] : []))),
          required: Array.isArray(required) ? required.filter((name) => typeof name === "string") : [],
        },
        read: (content) => content,
      };
  }
  const property = schema === undefined ? ({ type: "string" } as const) : propertyOf(schema);
  if (property !== undefined)
    return {
      schema: { type: "object", properties: { [ANSWER]: property }, required: [ANSWER] },
      read: (content) => content[ANSWER],
    };
  const description = `JSON that fits this schema: ${JSON.stringify(schema)}`;
  return {
    schema: { type: "object", properties: { [ANSWER]: { type: "string", description } }, required: [ANSWER] },
    read: (content) => {
      const json = parseJson(textAt(content, ANSWER));
      return json.ok ? json.value : undefined;
    },
  };
}

/** Undefined for what a field of a form cannot hold. */
function propertyOf(schema: Json): ElicitationPropertySchema | undefined {
  const [title, description, values] = [textAt(schema, "title"), textAt(schema, "description"), field(schema, "enum")];
  const words = { ...(title === "" ? {} : { title }), ...(description === "" ? {} : { description }) };
  switch (field(schema, "type")) {
    case "string":
      if (values === undefined) return { type: "string", ...words };
      if (!Array.isArray(values)) return undefined;
      return { type: "string", enum: values.filter((value) => typeof value === "string"), ...words };
    case "number":
      return { type: "number", ...words };
    case "integer":
      return { type: "integer", ...words };
    case "boolean":
      return { type: "boolean", ...words };
    default:
      return undefined;
  }
}
