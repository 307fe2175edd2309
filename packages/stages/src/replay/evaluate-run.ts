import {
  type Json,
  type JsonObject,
  type Pipeline,
  type PipelineSpec,
  type RunJournal,
  SluiceError,
  type SluiceEvent,
  systemClock,
} from "@sluice/core";
import { compileEnvelope, createAnswerRule, type SecurityMode } from "@sluice/core/gate";
import { readEvents, verifyJournal } from "@sluice/core/host";
import {
  checkSession,
  createConcurrencySlots,
  parseExecutionId,
  problemsError,
  type RecordDifference,
  type RunDeps,
  redactJson,
  replayClock,
  replayPipeline,
  replayTools,
  SECURITY_MODES,
  type SecretFilter,
  textField,
} from "@sluice/core/runtime";
import { type AgentSpec, agentsWithin } from "../agent/agent-spec.ts";
import { parseAgentStep } from "../agent/agent-steps.ts";
import { pipelineChanges, recordedPipeline } from "../history/pipeline-changes.ts";
import { type PipelineSource, recordedStart, refuseVersionMismatch, startedIn } from "../history/run-started.ts";
import { declaredSecrets } from "../kinds/commands/command.ts";
import { executorSet, executorsAsGiven, kindExecutors } from "../kinds/executors.ts";
import type { ResolvedModel, ResolvedModels } from "../models/model.ts";
import { modelFacts } from "../models/pricing/prices.ts";
import { sessionSecrets } from "../secrets/detect.ts";
import { modelExecutors } from "../session/models.ts";
import type { SessionOptions } from "../session/options.ts";
import { replayedProject } from "../session/project-facts.ts";
import { ownTools } from "../session/tools.ts";
import { builtinTools } from "../tools/builtin-tools.ts";
import { withAbsentAgents } from "./absent-agents.ts";
import { differenceLines } from "./diff-lines.ts";
import { locationOf, type RecordLocation, usualCauseOf } from "./locate.ts";

/** The session options that affect decisions. Mode, allowlist and workspace are taken from the record. */
export interface ReplayRunOptions
  extends Pick<SessionOptions, "tools" | "executors" | "onCall" | "env" | "secrets" | "passEnv" | "prices" | "clock"> {
  /** Where the pipeline was loaded from, to report changed files too. */
  readonly source?: PipelineSource;
}

/** The first difference between a replay and the record. */
export interface RunDivergence extends RecordLocation, RecordDifference {
  /** The usual cause. */
  readonly means: string;
  /** The location, the recorded and the current value, and the usual cause, as lines of text. */
  readonly message: string;
}

/** The result of a replay. */
export interface RunReplay {
  readonly runId: string;
  readonly pipeline: string;
  /** Whether every re-evaluated decision is as recorded, as far as the record goes. */
  readonly identical: boolean;
  /** How the recorded run ended. Unfinished and cancelled runs are replayed as far as their record goes. */
  readonly status: "completed" | "failed" | "cancelled" | "unfinished";
  readonly records: number;
  /** Re-evaluated steps, and steps taken from the record. */
  readonly decided: number;
  readonly taken: number;
  /** Readable changes of the pipeline since the run was started; they may have had no effect. */
  readonly changes: readonly string[];
  readonly divergence?: RunDivergence;
}

/** `replayRun`, which loads this when it is called. */
export async function evaluateRun<I, O>(
  { spec }: Pipeline<I, O>,
  recorded: readonly RunJournal[],
  options: ReplayRunOptions = {},
): Promise<RunReplay> {
  refuseDamaged(recorded);
  const start = startedIn(recorded);
  if (start === undefined) {
    const message = "these journals contain no complete run; replay a run, not one of its siblings";
    throw new SluiceError("Host", "journal_damaged", message);
  }
  const { runId } = start;
  refuseVersionMismatch(spec, runId, start);
  const deps = await replayDeps(spec, recorded, start, options);
  const { status, decided, taken, difference } = await replayPipeline(spec, deps, recorded);
  const records = recorded.reduce((sum, journal) => sum + journal.records.length, 0);
  return {
    runId,
    pipeline: spec.id,
    identical: difference === undefined,
    status,
    records,
    decided,
    taken,
    changes: pipelineChanges(recordedPipeline(recorded), spec, options.source).changes.map(deps.secrets.text),
    ...(difference === undefined ? {} : { divergence: divergenceOf(difference, recorded, deps.secrets) }),
  };
}

function refuseDamaged(recorded: readonly RunJournal[]): void {
  const [fault] = verifyJournal(recorded).faults;
  if (fault === undefined) return;
  const message = `the journal of run ${fault.runId} is damaged (${fault.fault}) and cannot be replayed`;
  throw new SluiceError("Host", "journal_damaged", message, { detail: { runId: fault.runId } });
}

async function replayDeps(
  spec: PipelineSpec,
  recorded: readonly RunJournal[],
  { data, at }: SluiceEvent,
  options: ReplayRunOptions,
): Promise<RunDeps> {
  const env = options.env ?? process.env;
  const { secrets: named = [], passEnv: passed = [] } = options;
  const { filter } = sessionSecrets(env, { named, passed, values: [], declared: [...declaredSecrets(spec).keys()] });
  const { own, builtins } = ownTools(builtinTools(), options.tools);
  // Those that came later, too.
  const names = new Set([...namesIn(data.tools), ...namesIn(recordedPipeline(recorded).tools)]);
  const tools = replayTools(own, [...names], recorded);
  const clock = replayClock(options.clock ?? systemClock, at);
  const models = modelExecutors(recordedModels(spec, recorded, data), modelFacts(options.prices));
  const kinds = kindExecutors({ clock, env: {}, walled: async () => undefined, wall: () => undefined });
  const executors = executorSet([...models, ...kinds, ...executorsAsGiven(options.executors ?? [])]);
  await executors.loadAll();
  const problems = checkSession(spec, { tools: [...tools.keys()], kinds: executors.kinds });
  if (problems.length > 0)
    throw problemsError("session_invalid", `Pipeline ${spec.id} cannot be replayed with these options:`, problems);
  const project = replayedProject(spec, recorded);
  const from = recordedStart(data);
  const onCall = withAbsentAgents(recorded, options.onCall);
  return {
    ...(project === undefined ? {} : { project }),
    ...(from === undefined ? {} : { from }),
    clock,
    executors: executors.loaded,
    tools,
    mode: modeIn(data),
    allow: compileEnvelope(textsIn(data.allow)),
    builtins,
    workspace: { root: textOf(data.cwd) },
    env: {},
    secrets: filter,
    slots: createConcurrencySlots(Number.MAX_SAFE_INTEGER),
    people: { reachable: () => true, offer: () => undefined, withdraw: () => undefined },
    // Which answers were accepted is recorded.
    answers: createAnswerRule({ any: false, unwalled: false }),
    maxParallelReads: 1,
    atWork: { count: 0, started: 0 },
    ...(onCall === undefined ? {} : { onCall }),
  };
}

/** Models with their recorded ids, which cannot be called. */
function recordedModels(
  spec: PipelineSpec,
  recorded: readonly RunJournal[],
  data: JsonObject,
): (agent: AgentSpec) => ResolvedModels {
  const byState = new Map<string, string>();
  for (const { runId, records } of recorded)
    for (const record of records) {
      if (record.phase !== "open" || parseAgentStep(record.stepId)?.kind !== "model") continue;
      for (const { type, executionId = "", data: turn } of readEvents(runId, record)) {
        const { state } = parseExecutionId(executionId);
        if (type === "turn.started" && typeof turn.model === "string" && !byState.has(state))
          byState.set(state, turn.model);
      }
    }
  const models = new Map<AgentSpec, ResolvedModels>();
  for (const [id, agent] of agentsWithin(spec)) {
    const first = recordedModel(byState.get(id) ?? agent.model ?? textOf(data.model));
    models.set(agent, [first, ...(agent.fallbackModels ?? []).map(recordedModel)]);
  }
  return (agent) => models.get(agent) ?? [recordedModel(textOf(data.model))];
}

function recordedModel(id: string): ResolvedModel {
  return {
    id,
    secrets: [],
    at: () => {
      throw new SluiceError("Host", "replay_acted", "a replay must not call a model; this is a bug in Sluice");
    },
  };
}

function divergenceOf(
  difference: RecordDifference,
  recorded: readonly RunJournal[],
  secrets: SecretFilter,
): RunDivergence {
  const location = locationOf(difference, recorded);
  const means = usualCauseOf(difference);
  const clean = (value: Json | undefined): Json | undefined => value && redactJson(secrets.json(value));
  const [was, is] = [clean(difference.recorded), clean(difference.now)];
  return {
    ...difference,
    recorded: was,
    now: is,
    ...location,
    means,
    message: [`${describe(difference, location)}:`, ...differenceLines(was, is), `This usually means: ${means}.`].join(
      "\n",
    ),
  };
}

function describe({ runId, seq, stepId, part, path, event }: RecordDifference, location: RecordLocation): string {
  const { executionId, attempt, turn, callId } = location;
  const partNames = {
    step: "the next step",
    announced: "the opening record",
    value: "the value",
    event: "the events",
    input: "the input",
    end: "the end",
    fault: "an error in user code",
  };
  const parts = [
    `run ${runId}`,
    ...(executionId === undefined ? [] : [executionId]),
    ...(attempt === undefined ? [] : [`attempt ${attempt}`]),
    ...(turn === undefined ? [] : [`turn ${turn}`]),
    ...(callId === undefined ? [] : [`call ${callId}`]),
    `record ${seq} (${stepId})`,
  ];
  const partName = event === undefined ? partNames[part] : `event ${event}`;
  return `${parts.join(", ")}, ${partName}${path === "$" ? "" : ` at ${path}`}`;
}

function modeIn({ mode }: JsonObject): SecurityMode {
  return SECURITY_MODES.find((known) => known === mode) ?? "ask";
}

function namesIn(tools: Json | undefined): readonly string[] {
  return (Array.isArray(tools) ? tools : []).flatMap((tool: Json) => {
    const name = textField(tool, "name");
    return name === undefined ? [] : [name];
  });
}

function textsIn(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
