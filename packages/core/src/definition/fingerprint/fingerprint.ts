import { digestOf } from "../../base/canonical.ts";
import { ownJson } from "../../base/clone-json.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { declaredTargets } from "../choice.ts";
import type { AgentSpec, PipelineSpec, RoutesSpec, StateSpec } from "../spec.ts";

/** Counts the forms this digest has had; a run started under another form cannot be compared. */
const FORM = 2;

/**
 * SHA-256 over what resuming a run relies on: ids, edges, envelopes, limits, schemas, prompt text and which hooks exist. Not
 * over function bodies: user code may change between two deploys of the same pipeline.
 */
export function fingerprint(spec: Omit<PipelineSpec, "fingerprint">): string {
  return digestOf({
    form: FORM,
    id: spec.id,
    input: spec.input.digest,
    initial: spec.initial,
    states: Object.fromEntries([...spec.states].map(([id, state]) => [id, stateFacts(state)])),
    routes: routeFacts(spec.routes),
    context: spec.context,
    limits: { ...spec.limits },
    onCall: spec.onCall !== undefined,
  });
}

function stateFacts(state: StateSpec): JsonObject {
  const { kind, inputSchema, allowedTools, retryPolicy, limits, sandbox, agent, options, output } = state;
  const hooks = (["setup", "checkGate", "assert", "exit", "onCall"] as const).filter(
    (name) => state[name] !== undefined,
  );
  return {
    kind,
    input: inputSchema?.digest ?? null,
    allowedTools: allowedTools?.map((entry) => (typeof entry === "string" ? entry : { ...entry })) ?? null,
    retryPolicy: retryPolicy === undefined ? null : { ...retryPolicy },
    limits: limits === undefined ? null : { ...limits },
    ...(sandbox === undefined ? {} : { sandbox: { network: false, scratch: [], ...sandbox } }),
    hooks,
    agent: agent === undefined ? null : agentFacts(agent),
    options: factsOf(options),
    output: output?.digest ?? null,
  };
}

function agentFacts(agent: AgentSpec): JsonObject {
  return {
    prompt: agent.promptText,
    visibility: agent.visibility,
    model: agent.model ?? null,
    temperature: agent.temperature ?? null,
    maxOutputTokens: agent.maxOutputTokens ?? null,
    completionTool: agent.completionTool,
    completion: agent.completionSchema.digest,
    turnCap: agent.turnCap,
  };
}

function routeFacts(routes: RoutesSpec): Json {
  if (routes.kind === "table") {
    return routes.rows.map(({ from, on, when, to }) => ({ from, on, when: when !== undefined, to: factsOf(to) }));
  }
  return Object.fromEntries(
    [...routes.next].map(([id, route]) => [
      id,
      {
        completed: declaredTargets(route.completed) ?? null,
        failed: route.failed === undefined ? false : (declaredTargets(route.failed) ?? null),
        skipped: route.skipped === undefined ? false : (declaredTargets(route.skipped) ?? null),
      },
    ]),
  );
}

/** What is data in a value; what is not (functions, instances) is code. */
function factsOf(value: unknown): Json {
  const own = ownJson(value);
  return own.ok ? own.value : null;
}
