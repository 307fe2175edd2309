import { type Issue, isJsonObject, type JsonObject, type RouteTarget, type StatePlace } from "@sluice/core";
import { issuesText, nestedSchema } from "@sluice/core/runtime";
import type { AgentSpec } from "../agent-spec.ts";
import {
  type Completion,
  firstMessage,
  functionTool,
  invalidCompletion,
  unreadable,
} from "../completion/completion.ts";
import type { CompletionCheck, TurnCall } from "../reply-record.ts";
import { callId } from "../transcript.ts";
import { readChoice } from "./choice-call.ts";

/** The tool with which a router names the state that follows. */
const CHOOSE = "choose";

/** A router: it ends when it names one of its targets with an input that fits. */
export function completionByChoice({ turnCap }: AgentSpec, { stateId, targets }: StatePlace): Completion {
  const offered = targets.filter(({ visitsLeft }) => visitsLeft !== 0);
  const names = offered.map(({ state }) => state).join(", ");
  const tries = turnCap === 1 ? "1 try" : `${turnCap} tries`;
  return {
    tool: functionTool(CHOOSE, "Names the state that follows, with its input.", choiceSchema(offered)),
    besides: [],
    own: new Set([CHOOSE]),
    ...(offered.length > 0 ? {} : { hopeless: { code: "router", message: NOTHING_LEFT } }),
    forced: true,
    rule: `To finish, call ${CHOOSE} with the state that follows and the input that its schema describes. Put your reason into choice.reason. Nothing else ends this step, and text alone has no effect. If a choice is refused, read why and choose again.`,
    advice: `call ${CHOOSE} with one of: ${names}`,
    about: () => `States that may follow: ${names}`,
    first: (ctx) => firstMessage(ctx),
    check: async ({ calls }) => {
      const checks: CompletionCheck[] = [];
      for (const call of calls) {
        if (call.tool !== CHOOSE) continue;
        const { to: _named, ...check } = await choiceOf(call, targets);
        checks.push({ index: call.index, ...check });
        if (check.ok) break;
      }
      return checks;
    },
    settle: (call, check, turn, scope) => {
      const at = { turn, callId: callId(turn, call.index) };
      if (check?.ok === true) {
        scope.note({ type: "completion.accepted", data: at });
        return { kind: "completed", output: check.output };
      }
      const issues = (check?.issues ?? []).map((issue) => ({ ...issue }));
      const why = issuesText(issues);
      const to = namedBy(call);
      scope.note({ type: "route.rejected", data: { from: stateId, to, reason: why, ...at } });
      return { kind: "rejected", output: invalidCompletion(issues), why, to };
    },
    notCompleted: (_within, last) => ({
      code: "router",
      message:
        last === undefined
          ? `${CHOOSE} was not called in ${tries}`
          : `no choice could be followed in ${tries}; the last one: ${last.why}`,
    }),
  };
}

const NOTHING_LEFT =
  "no state is left to choose: each was entered as often as it may be, or the run has taken all its routes";

/** The root is an object without alternatives, as providers require of a tool's arguments. */
function choiceSchema(offered: readonly RouteTarget[]): JsonObject {
  const alternatives = offered.map((target, index) => alternative(target, `/properties/choice/anyOf/${index}`));
  return {
    type: "object",
    properties: { choice: { anyOf: alternatives, description: "The state that follows, with its input." } },
    required: ["choice"],
    additionalProperties: false,
  };
}

function alternative({ state, inputSchema }: RouteTarget, at: string): JsonObject {
  const reason = { type: "string", description: "Why this state follows." };
  const to = { type: "string", const: state, description: "The state." };
  const typed =
    inputSchema === undefined ? {} : { input: nestedSchema(inputSchema.jsonSchema, `${at}/properties/input`) };
  return {
    type: "object",
    properties: { to, ...typed, reason },
    required: ["to", ...Object.keys(typed)],
    additionalProperties: false,
  };
}

type CallReading =
  | { readonly ok: true; readonly output: JsonObject; readonly to?: never }
  | { readonly ok: false; readonly issues: readonly Issue[]; readonly to?: string };

async function choiceOf(call: TurnCall, targets: readonly RouteTarget[]): Promise<CallReading> {
  const { input } = call;
  if (input === undefined) return unreadable(call);
  const issue = (path: string, message: string): CallReading => ({ ok: false, issues: [{ path, message }] });
  if (!isJsonObject(input)) return issue("$", "is not an object");
  const { choice, ...others } = input;
  const [extra] = Object.keys(others);
  if (extra !== undefined) return issue("$", `has a field besides choice: ${JSON.stringify(extra.slice(0, 80))}`);
  if (!isJsonObject(choice)) return issue("$.choice", 'is not an object, such as { "to": "…", "input": {} }');
  return await readChoice(choice, targets, { key: "to", path: "$.choice" });
}

/** What a refused call named, for those who read why. */
function namedBy({ input }: TurnCall): string {
  const choice = isJsonObject(input) ? input.choice : undefined;
  const to = isJsonObject(choice) ? choice.to : undefined;
  return typeof to === "string" ? to.slice(0, 80).toWellFormed() : "";
}
