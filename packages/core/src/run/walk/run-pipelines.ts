import { SluiceError } from "../../base/errors.ts";
import { field, isJsonObject, type JsonObject } from "../../base/json.ts";
import { fingerprint } from "../../definition/fingerprint/fingerprint.ts";
import { recordedGraph } from "../../definition/graph.ts";
import type { PipelineSpec } from "../../definition/spec.ts";
import type { NamedGuard } from "../../gate/guard-hooks.ts";
import { maskSecrets } from "../../journal/redaction.ts";
import type { ChildRun, SiblingEnd } from "../../journal/seam.ts";
import { childRunId } from "../../journal/step-id.ts";
import type { AroundChildren, StartFacts } from "../execution.ts";
import type { ChildOutcome, ChildPipeline } from "../executor.ts";
import { addChildTo, readChildAccount, readOutcome } from "../run-result.ts";
import { endOf, outcomesOf, runChildren } from "./fan-out.ts";
import type { Walk } from "./one-run.ts";

/**
 * Prepares the pipelines that children bring with them. Returns what the starts of their runs record in addition, by the keys of the
 * children. Throws Validation `pipeline_changed` and `session_invalid`.
 */
export async function admitChildren(
  { pipeline }: Pick<Walk, "pipeline">,
  state: string,
  children: readonly ChildPipeline[],
): Promise<StartFacts> {
  const facts = new Map<string, JsonObject>();
  for (const { key, pipeline: made } of children) {
    if (typeof made === "string") continue;
    refuseOtherFingerprint(state, made);
    facts.set(key, (await pipeline.deps.admit?.(made)) ?? {});
  }
  return facts;
}

/** Runs other pipelines inside an execution, and adds what they used to the run's totals. */
export async function runPipelines(
  walk: Walk,
  stepId: string,
  state: string,
  children: readonly ChildPipeline[],
  facts: StartFacts,
  { hook: bound, meter }: AroundChildren,
): Promise<readonly ChildOutcome[]> {
  const { pipeline, steps, account } = walk;
  const runs = children.map(({ key, pipeline: named, input, context }): ChildRun => {
    const of = typeof named === "string" ? pipeline.spec.pipelines.get(named) : named;
    if (of === undefined) {
      const message = `${state}: the pipeline ${pipeline.spec.id} has no pipeline ${JSON.stringify(named)}; add it to its pipelines`;
      throw new SluiceError("Validation", "pipeline_unknown", message);
    }
    // The run's own pipeline does not say which states this one has.
    const made = typeof named === "string" ? {} : { made: of.fingerprint };
    const started = {
      pipeline: of.id,
      parent: steps.runId,
      key,
      ...made,
      ...facts.get(key),
      ...maskSecrets(recordedGraph(of), pipeline.deps.secrets),
    };
    const called = typeof named === "string" ? named : of.id;
    return {
      key,
      input: { kind: "run", key, pipeline: called, ...made, input, ...(context === undefined ? {} : { context }) },
      events: [{ type: "run.started", data: started }],
    };
  });
  const keys = children.map(({ key }) => key);
  const outerGuards = guardsAround(walk, state, bound);
  const made = new Map(
    children.flatMap(({ key, pipeline: spec }) => (typeof spec === "string" ? [] : [[key, { spec, outerGuards }]])),
  );
  const named = children.map(({ key, pipeline: of }) => ({ key, pipeline: typeof of === "string" ? of : of.id }));
  const settings: Parameters<typeof runChildren>[3] = {
    onFailure: "settle",
    failed: ({ status }) => status === "failed",
    open: {
      events: [{ type: "fanOut.started", data: { fanOut: stepId, siblings: keys, join: state, children: named } }],
    },
    joined: (settled) => [{ type: "fanOut.joined", data: { fanOut: stepId, outcomes: outcomesOf(keys, settled) } }],
  };
  const ends = await runChildren(walk, stepId, runs, settings, { made, meter });
  return keys.flatMap((key) => {
    const end = endOf(ends, key);
    if (end === undefined) return [];
    const used = readChildAccount(end);
    if (used !== undefined) addChildTo(account, { ...used, stages: [] });
    return [outcomeOf({ key, runId: childRunId(steps.runId, stepId, key) }, end)];
  });
}

/** The hooks around a pipeline that a state makes. What it says of itself is not shown to them: a model may have written it. */
function guardsAround({ pipeline }: Walk, state: string, bound: AroundChildren["hook"]): readonly NamedGuard[] {
  const own = { pipeline: pipeline.spec.onCall, state: pipeline.states.get(state)?.state.onCall };
  const named = Object.entries(own).flatMap(([name, hook]) =>
    hook === undefined ? [] : [{ name, hook: bound(hook) }],
  );
  return [...pipeline.outerGuards, ...named];
}

/** Those whose fingerprint is that of their definition. */
const COMPARED = new WeakSet<PipelineSpec>();

/** The record of a child names its pipeline by the fingerprint. */
function refuseOtherFingerprint(state: string, spec: PipelineSpec): void {
  if (COMPARED.has(spec)) return;
  if (fingerprint(spec) !== spec.fingerprint) {
    const message = `${state}: the fingerprint of pipeline ${spec.id} differs from its definition; give the pipeline that pipeline() returned`;
    throw new SluiceError("Validation", "pipeline_changed", message);
  }
  COMPARED.add(spec);
}

function outcomeOf(of: { readonly key: string; readonly runId: string }, end: SiblingEnd): ChildOutcome {
  const { status } = end;
  if (status === "completed") {
    const context = field(end.value, "context");
    return { ...of, status, output: field(end.value, "output") ?? null, context: isJsonObject(context) ? context : {} };
  }
  const { error } = readOutcome(end);
  return { ...of, status, code: error?.code ?? status, message: error?.message ?? status };
}
