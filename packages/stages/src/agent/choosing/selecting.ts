import { type Issue, isJsonObject, type Json, type JsonObject, type RouteTarget } from "@sluice/core";
import { ORCHESTRATED_ENDS } from "@sluice/core/runtime";
import { type Completion, functionTool, unreadable } from "../completion/completion.ts";
import type { CompletionCheck, TurnCall } from "../reply-record.ts";
import { readChoice } from "./choice-call.ts";
import { endNames, GET_STATE, SELECT_STATE, START_FOLLOW_UP, stateView } from "./words.ts";

/** The tools of an orchestrator, and how their calls are checked. The same over a run, so that a provider may cache its prompt. */
export function selectingStates(targets: readonly RouteTarget[], prompts: boolean): Completion {
  const names = [...targets.map(({ state }) => state), ...endNames(targets)];
  return {
    ...PLAIN,
    tool: functionTool(SELECT_STATE, "Chooses the state that follows, or ends the run.", selectSchema(names, prompts)),
    besides: [functionTool(GET_STATE, "Shows where the run is. Changes nothing.", GET_STATE_SCHEMA)],
    own: new Set([SELECT_STATE, GET_STATE]),
    check: async ({ calls }, _turn, { ctx, secrets }) => {
      const checks: CompletionCheck[] = [];
      for (const call of calls) {
        if (call.tool === GET_STATE) {
          const wanted = isJsonObject(call.input) ? call.input.state : undefined;
          checks.push({ index: call.index, ok: true, output: secrets.json(stateView(ctx, targets, wanted)) });
        } else if (call.tool === SELECT_STATE) {
          const check = await selectionOf(call, targets, prompts);
          checks.push({ index: call.index, ...check });
          // What comes after a choice is not run.
          if (check.ok) break;
        }
      }
      return checks;
    },
    notCompleted: (within, last) => ({
      code: "orchestrator",
      message: `it selected no state ${within}${last === undefined ? "" : `; the last choice was refused: ${last.why}`}`,
    }),
  };
}

/** The closing turn: text, and at most the wish for another run. */
export function acknowledging(): Completion {
  return {
    ...PLAIN,
    tool: functionTool(START_FOLLOW_UP, "Asks for another run of this pipeline, linked to this one.", FOLLOW_UP_SCHEMA),
    besides: [],
    own: new Set([START_FOLLOW_UP]),
    check: async () => [],
    notCompleted: () => ({ code: "orchestrator", message: "it said nothing" }),
  };
}

/** The parts of a completion that only a state with a fresh transcript uses. */
const PLAIN: Pick<Completion, "rule" | "advice" | "about" | "first" | "settle"> = {
  rule: "",
  advice: "",
  about: () => "",
  first: () => "",
  settle: () => ({ kind: "rejected", output: null, why: "" }),
};

const GET_STATE_SCHEMA: JsonObject = {
  type: "object",
  properties: { state: { type: "string", description: "A state, to read its last output." } },
  additionalProperties: false,
};
const FOLLOW_UP_SCHEMA: JsonObject = {
  type: "object",
  properties: { input: { description: "The input of the new run, in the same form as the input of this run." } },
  required: ["input"],
  additionalProperties: false,
};

function selectSchema(names: readonly string[], prompts: boolean): JsonObject {
  const prompt = prompts
    ? { prompt: { type: "string", description: "Replaces the prompt of this one execution of a stage." } }
    : {};
  return {
    type: "object",
    properties: {
      state: { type: "string", enum: [...names], description: "The state that follows, or how the run ends." },
      input: { description: "The input of the state, which fits its schema; of completed, the output of the run." },
      reason: { type: "string", description: "Why. Recorded with the choice." },
      ...prompt,
    },
    required: ["state"],
    additionalProperties: false,
  };
}

export type Selection =
  | { readonly ok: true; readonly output: JsonObject }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** Reads a call of select_state. Nothing but a declared state, a fitting input, a reason and an allowed prompt is accepted. */
async function selectionOf(call: TurnCall, targets: readonly RouteTarget[], prompts: boolean): Promise<Selection> {
  const { input: given } = call;
  if (given === undefined) return unreadable(call);
  const issue = (path: string, message: string): Selection => ({ ok: false, issues: [{ path, message }] });
  if (!isJsonObject(given)) return issue("$", "is not an object");
  const { prompt, ...chosen } = given;
  if (prompt !== undefined && !prompts) return issue("$.prompt", "cannot be replaced: the pipeline does not allow it");
  if (prompt !== undefined && (typeof prompt !== "string" || prompt.trim() === "" || prompt.length > LONGEST_PROMPT))
    return issue("$.prompt", `is not a text of at most ${LONGEST_PROMPT} characters`);
  const { state, input, reason } = chosen;
  const end = ORCHESTRATED_ENDS.find((known) => known === state && endNames(targets).includes(known));
  if (end === undefined) {
    const { to: _named, ...reading } = { to: "", ...(await readChoice(chosen, targets, { key: "state", path: "$" })) };
    if (!reading.ok || prompt === undefined) return reading;
    const isStage = targets.some((target) => target.state === state && target.takesPrompt === true);
    return isStage
      ? { ok: true, output: { ...reading.output, prompt } }
      : issue("$.prompt", `${namedBy(call)} has no prompt that could be replaced`);
  }
  const [extra] = Object.keys(chosen).filter((key) => !["state", "input", "reason"].includes(key));
  if (extra !== undefined) return issue(`$.${extra.slice(0, 80)}`, "is not an argument");
  if (prompt !== undefined) return issue("$.prompt", "an end has no prompt");
  if (reason !== undefined && reason !== null && typeof reason !== "string") return issue("$.reason", "is not a text");
  const said = typeof reason === "string" && reason.trim() !== "" ? { reason } : undefined;
  if (end === "completed") return { ok: true, output: { end, output: input ?? null, ...said } };
  return said === undefined
    ? issue("$.reason", `is missing: ${end} needs a reason`)
    : { ok: true, output: { end, ...said } };
}

const LONGEST_PROMPT = 50_000;

/** What a refused call named, for those who read why. */
export function namedBy({ input }: TurnCall): string {
  const state: Json | undefined = isJsonObject(input) ? input.state : undefined;
  return typeof state === "string" ? state.slice(0, 80).toWellFormed() : "";
}
