import { type OrchestratorOptions, pipeline, type RunLimits, type SluiceEvent, type State } from "@sluice/core";
import { type ResolvedModel, type ScriptedTurn, scriptedModel } from "@sluice/stages";
import { z } from "zod";
import { dataOf, eventsOf, json, session, type TestSession, type TestSessionOptions } from "./run-kit.ts";

// Orchestrated runs with a scripted orchestrator.

export const task = z.object({ task: z.string() });

/** One turn with a call of `select_state` that has these arguments. */
export function select(state: string, input?: unknown, reason?: string, more: object = {}): ScriptedTurn {
  return { calls: [{ tool: "select_state", input: json({ state, input, reason, ...more }) }] };
}
/** What the orchestrator says when the run has ended. */
export const bye: ScriptedTurn = { text: "All done." };

/** An orchestrated pipeline of these states. */
export function directed(
  stages: Readonly<Record<string, State<unknown, never>>>,
  orchestrator: Partial<OrchestratorOptions> = {},
  more: { readonly initial?: string; readonly limits?: RunLimits } = {},
) {
  const { initial, limits = {} } = more;
  return pipeline({
    id: "directed",
    input: task,
    stages,
    limits,
    orchestrator: { instructions: "Direct the work.", ...orchestrator },
    ...(initial === undefined ? {} : { initial }),
  });
}

/** A scripted model that keeps the prompts it was given, and the tools. */
export function noting(turns: readonly ScriptedTurn[], others: Readonly<Record<string, readonly ScriptedTurn[]>> = {}) {
  const prompts: string[] = [];
  const tools: string[] = [];
  const script = scriptedModel({ stages: { orchestrator: turns, ...others } });
  const model: ResolvedModel = {
    ...script,
    at: (place) => {
      const at = script.at(place);
      return {
        ...at,
        doStream: (call) => {
          if (place.stage === "orchestrator") {
            prompts.push(JSON.stringify(call.prompt));
            tools.push((call.tools ?? []).map(({ name }) => name).join(" "));
          }
          return at.doStream(call);
        },
      };
    },
  };
  return { model, prompts, tools };
}

export interface DirectedRun {
  readonly live: TestSession;
  readonly result: Awaited<ReturnType<TestSession["run"]>>;
  readonly events: readonly SluiceEvent[];
  /** Of the orchestrator's turns. */
  readonly prompts: readonly string[];
  readonly tools: readonly string[];
  /** `plan to orchestrator`. */
  readonly hops: readonly string[];
  readonly routes: ReturnType<typeof dataOf>;
  readonly rejected: ReturnType<typeof dataOf>;
}

/** Runs an orchestrated pipeline whose orchestrator says one turn after another. */
export async function direct(
  of: ReturnType<typeof directed>,
  turns: readonly ScriptedTurn[],
  options: TestSessionOptions & { readonly others?: Readonly<Record<string, readonly ScriptedTurn[]>> } = {},
): Promise<DirectedRun> {
  const { others, ...own } = options;
  const { model, prompts, tools } = noting(turns, others);
  const live = session({ model, ...own });
  const result = await live.run(of, { task: "T" });
  const events = await eventsOf(live.host, result.runId);
  const routes = dataOf(events, "route.decided");
  const hops = routes.map(({ from, to, choice }) => `${String(from)} ${String(choice === "to" ? to : choice)}`);
  return { live, result, events, prompts, tools, hops, routes, rejected: dataOf(events, "route.rejected") };
}

/** The texts of a prompt's messages. */
export function textsOf(prompt: string | undefined): readonly string[] {
  const messages: readonly { readonly content: unknown }[] = JSON.parse(prompt ?? "[]");
  return messages.map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content)));
}
