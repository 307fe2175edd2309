import { field, type Json, type PipelineSpec, type RunJournal, SluiceError, type SluiceEvent } from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import {
  isLifecycle,
  parseAttemptStep,
  parseStepId,
  parseStoredJson,
  redactText,
  textField,
} from "@sluice/core/runtime";

/** The records of a state cannot be read back if the pipeline no longer has it. */
export function refuseRemovedStates(spec: PipelineSpec, runId: string, journals: readonly RunJournal[]): void {
  const continuing = withoutMade(journals);
  const pipelineOf = pipelineFinder(spec, continuing);
  const removed = new Set(
    continuing.flatMap((journal) => {
      const pipeline = pipelineOf(journal);
      if (pipeline === undefined) return otherPipeline(journal) ?? [];
      const entered = journal.records.flatMap(({ stepId }) => parseAttemptStep(stepId)?.state ?? []);
      const { states, invoked } = comingIn(journal);
      const hasState = named([...pipeline.states.keys()]);
      const hasPipeline = named([...pipeline.pipelines.keys()]);
      return [
        ...[...entered, ...states].filter((state) => !hasState(state)),
        ...invoked.filter((name) => !hasPipeline(name)),
      ];
    }),
  );
  if (removed.size === 0) return;
  throw new SluiceError(
    "Host",
    "state_unknown",
    `run ${runId} has come to ${[...removed].join(", ")}, which pipeline ${spec.id} no longer has; restore it to continue the run`,
    { detail: { states: [...removed] } },
  );
}

/** Whether a name is one of these. An event may have it masked. */
function named(names: readonly string[]): (name: string) => boolean {
  const known = new Set([...names, ...names.map(redactText)]);
  return (name) => known.has(name);
}

/**
 * Finds the pipeline in which a run works now, from the root down: its parent's, or the one that its parent runs by the recorded name.
 * There is none if the parent has no pipeline of that name.
 */
function pipelineFinder(
  spec: PipelineSpec,
  journals: readonly RunJournal[],
): (journal: RunJournal) => PipelineSpec | undefined {
  const byId = new Map(journals.map((journal) => [journal.runId, journal]));
  const pipelineOf = (journal: RunJournal): PipelineSpec | undefined => {
    if (journal.parentId === undefined) return spec;
    const parent = byId.get(journal.parentId);
    const ofParent = parent && pipelineOf(parent);
    const name = otherPipeline(journal);
    return name === undefined ? ofParent : ofParent?.pipelines.get(name);
  };
  return pipelineOf;
}

/** The name of the pipeline that a child runs instead of its parent's. */
function otherPipeline({ parentId, input }: RunJournal): string | undefined {
  return parentId === undefined ? undefined : textField(input, "pipeline");
}

function startOf({ runId, records: [first] }: RunJournal): SluiceEvent | undefined {
  return first === undefined ? undefined : readEvents(runId, first).find(({ type }) => type === "run.started");
}

/** States and pipelines that a run comes to without having entered them. */
interface Coming {
  readonly states: readonly string[];
  readonly invoked: readonly string[];
}

function comingIn(journal: RunJournal): Coming {
  const [begun, asked] = [begunIn(journal), askedIn(journal)];
  return { states: [...begun.states, ...asked.states], invoked: [...begun.invoked, ...asked.invoked] };
}

/** Those of the fan-outs that have not joined, whose children may not have begun. */
function begunIn({ runId, records }: RunJournal): Coming {
  const joined = new Set(records.filter(({ phase }) => phase === "done").map(({ ordinal }) => ordinal));
  const open = records.filter(({ phase, ordinal }) => phase === "open" && !joined.has(ordinal));
  const ofFanOuts = open.filter(({ stepId }) => parseStepId(stepId).kind === "fanOut");
  const started = ofFanOuts
    .flatMap((record) => readEvents(runId, record))
    .filter(({ type }) => type === "fanOut.started");
  const states = started.flatMap(({ data: { list, children, siblings } }) =>
    textsIn(list === undefined ? (membersOf(children, "state") ?? siblings) : [list]),
  );
  return { states, invoked: started.flatMap(({ data }) => textsIn(membersOf(data.children, "pipeline"))) };
}

/** The steps whose records hold a decision that a person may have to approve. */
const DECIDING: ReadonlySet<string> = new Set(["accept", "approval", "fanOutApproval"]);

/** Where the transition leads that the run waits for a person to approve. Only answers are recorded meanwhile. */
function askedIn({ records }: RunJournal): Coming {
  const last = records.findLast((record) => !isLifecycle(record) && parseStepId(record.stepId).kind !== "wait");
  const isDeciding = last !== undefined && DECIDING.has(parseStepId(last.stepId).kind);
  const read = isDeciding ? parseStoredJson(last.value) : undefined;
  if (read?.ok !== true || field(read.value, "asks") === undefined) return { states: [], invoked: [] };
  const choice = field(field(read.value, "decision"), "choice");
  const targets = [field(choice, "state"), ...(membersOf(field(choice, "siblings"), "state") ?? [])];
  const invoked = textsIn(membersOf(field(choice, "siblings"), "pipeline"));
  return { states: textsIn(targets.filter((target) => target !== undefined)), invoked };
}

function membersOf(children: Json | undefined, member: string): readonly Json[] | undefined {
  return Array.isArray(children) ? children.flatMap((child: Json) => field(child, member) ?? []) : undefined;
}

function textsIn(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((one: Json) => typeof one === "string") : [];
}

/** The journals without those of runs whose pipeline was made during the run, which are checked where they are made again. */
function withoutMade(journals: readonly RunJournal[]): readonly RunJournal[] {
  const made = journals.flatMap((journal) => (startOf(journal)?.data.made === undefined ? [] : [journal.runId]));
  return journals.filter(({ runId }) => !made.some((one) => runId === one || runId.startsWith(`${one}/`)));
}
