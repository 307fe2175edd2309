import { z } from "zod";
import type { EventType } from "./journal/events.ts";

// The data of every event, for readers of exports and of `--output-format stream-json`. A separate entry, since loading zod takes
// longer than starting a run. New versions may add fields, so readers ignore unknown ones.

const usage = z.object({
  inputTokens: z.number(),
  outputTokens: z.number(),
  costUsd: z.number().optional(),
  unpricedCalls: z.int().optional(),
  unmeteredCalls: z.int().optional(),
});
const phase = z.looseObject({ phase: z.enum(["entered", "left"]) });
const call = { callId: z.string(), tool: z.string() };
const digest = z.string().regex(/^[0-9a-f]{64}$/);
const files = z.array(z.looseObject({ file: z.string(), digest }));
/** The parts of a pipeline: a state's id (empty for the pipeline), and names with a short value or a digest. */
const parts = z.array(z.looseObject({ state: z.string(), facts: z.array(z.tuple([z.string(), z.string()])) }));
/** The effect of those that are not built in. */
const tools = z.array(z.looseObject({ name: z.string(), digest, effect: z.enum(["read", "write", "ask"]).optional() }));
const source = z.looseObject({
  kind: z.enum(["programmatic", "bundled", "config", "file"]),
  files: files.optional(),
  config: z.looseObject({ file: z.string(), files }).optional(),
});
/** The sandbox of commands: the chosen mode, the verified mechanism, and what runs without it. */
const sandbox = z.looseObject({
  mode: z.string(),
  wall: z.string().optional(),
  unsandboxedServers: z.array(z.string()).optional(),
  /** Tools or kinds of states of the session may start processes without it. */
  processes: z.literal(true).optional(),
});
/** The graph of a pipeline: its states in declared order with their declared targets, its rows and its interrupts. */
const graph = {
  shape: z
    .looseObject({
      initial: z.string(),
      states: z.array(
        z.looseObject({
          id: z.string(),
          kind: z.string(),
          turnCap: z.int().optional(),
          targets: z.array(z.string()).optional(),
        }),
      ),
      /** The state that chooses what follows every other one. */
      orchestrator: z.string().optional(),
    })
    .optional(),
  /** The rows of its table by their position: the first 200. */
  rows: z
    .array(
      z.looseObject({
        from: z.string(),
        on: z.union([z.string(), z.looseObject({ event: z.string() })]),
        when: z.string().optional(),
        to: z.string(),
        approval: z.literal(true).optional(),
        label: z.string().optional(),
      }),
    )
    .optional(),
  interrupts: z.array(z.looseObject({ name: z.string(), files: z.string(), target: z.string() })).optional(),
  /** What its author says about it, and about the pipelines that it may run. */
  meta: z
    .looseObject({
      dangerLevel: z.enum(["safe", "moderate", "dangerous"]).optional(),
      captureOutput: z.boolean().optional(),
    })
    .optional(),
};
/** The children of a fork and of an invoked pipeline: where a branch starts and ends, or what runs. */
const children = z.array(
  z.looseObject({
    key: z.string(),
    state: z.string().optional(),
    terminal: z.string().optional(),
    pipeline: z.string().optional(),
  }),
);
/** The run continues with a changed pipeline: the changes, who allowed them if that was needed, and the pipeline's new facts. */
const changedPipeline = z.looseObject({
  by: z.string().optional(),
  changes: z.array(z.string()),
  source: source.optional(),
  fingerprint: digest,
  parts,
  tools,
  ...graph,
});
const request = {
  requestId: z.string(),
  kind: z.enum(["grantStageTool", "approveTransition", "askUser", "humanState"]),
  digest,
};
const answer = z.enum(["approve", "deny", "defer", "value", "none"]);
const proof = z.enum(["session", "code", "sandboxed", "any", "missing"]);
/** An agent of another program, and what is known about its own tools. */
const outsideAgent = z.looseObject({
  name: z.string(),
  version: z.string().optional(),
  class: z.enum(["hard", "guarded", "advisory"]),
});
const refusalCause = z.enum(["denied", "deferred", "timeout", "no_interactor", "hook", "mode", "limit"]);
/** Why part of a run cannot continue now; `retryAt` is when it may be able to. */
const fault = {
  reason: z.enum(["provider"]),
  code: z.string(),
  message: z.string(),
  detail: z.unknown().optional(),
  retryAt: z.number().optional(),
};

const data = {
  "run.started": z.looseObject({
    pipeline: z.string(),
    /** Only in a sibling's run. */
    state: z.string().optional(),
    parent: z.string().optional(),
    /** Of a run whose pipeline a state gave: its fingerprint. */
    made: z.string().optional(),
    /** Only in the run of a list's item. */
    key: z.string().optional(),
    source: source.optional(),
    fingerprint: digest.optional(),
    parts: parts.optional(),
    models: z.array(z.string()).optional(),
    mode: z.enum(["ask", "allowlist", "yolo"]).optional(),
    cwd: z.string().optional(),
    sandbox: sandbox.optional(),
    /** Answers of any process count without proof. */
    answers: z.literal("any").optional(),
    /** In a fork: the original run had started processes without a sandbox. */
    unsandboxed: z.literal(true).optional(),
    /** Names of the session's secret variables. */
    secrets: z.array(z.string()).optional(),
    /** The agent of another program that drives the run. */
    agent: outsideAgent.optional(),
    /** Those that the run starts for its states. */
    agents: z.array(outsideAgent).optional(),
    /** Files from which those start and that were not there. */
    missing: z.array(z.string()).optional(),
    tools: tools.optional(),
    journalVersion: z.int().optional(),
    ...graph,
    /** What its session does about faults of providers, where neither state nor pipeline says it. */
    /** Its session keeps requests open for other processes; a number suspends it after so many milliseconds. */
    wait: z.union([z.literal(true), z.number()]).optional(),
    /** What the program that started the run reads back when it resumes it. */
    settings: z.looseObject({}).optional(),
    /** The state in which the run starts, if it is not the initial one, with its input. */
    from: z.looseObject({ state: z.string(), input: z.unknown().optional() }).optional(),
    input: z.unknown().optional(),
    /** The run starts with records of another, up to an execution; `head` is the hash of the last of them. */
    /** The run whose orchestrator asked for this one; `number` counts such runs in a row. */
    follows: z.looseObject({ runId: z.string(), number: z.int() }).optional(),
    forkedFrom: z.looseObject({ runId: z.string(), execution: z.string(), head: digest }).optional(),
    /** The pipeline of those records, if it differs from the run's. */
    originalPipeline: z
      .looseObject({
        source: source.optional(),
        fingerprint: digest.optional(),
        parts: parts.optional(),
        tools: tools.optional(),
      })
      .optional(),
  }),
  /** Ends the copied records of another run, of which there are `records`; completed siblings are copied whole. */
  "run.forked": z.looseObject({
    from: z.string(),
    execution: z.string(),
    head: digest,
    records: z.int(),
    /** As in `run.resumed`. */
    tools: tools.optional(),
    changed: changedPipeline.optional(),
  }),
  "run.suspended": z.looseObject({
    reason: z.enum(["sleeping", "waiting", "interrupted", "provider"]),
    wakeAt: z.number().optional(),
    /** Of the first fault, with the earliest time at which one may have ended. */
    code: z.string().optional(),
    message: z.string().optional(),
    retryAt: z.number().optional(),
    /** Why parts of the run could not continue. */
    faults: z.array(z.looseObject({ runId: z.string(), executionId: z.string(), ...fault })).optional(),
  }),
  "run.resumed": z.looseObject({
    incarnation: z.string(),
    sandbox: sandbox.optional(),
    /** The agent of another program that continues it. */
    agent: outsideAgent.optional(),
    /** Those that this process starts for its states. */
    agents: z.array(outsideAgent).optional(),
    /** Files from which those start and that were not there. */
    missing: z.array(z.string()).optional(),
    /** The session's list for mode `allowlist`, if it differs from the one before. */
    allow: z.array(z.string()).optional(),
    /** Names of the session's secret variables, if one of them is new to the run. */
    secrets: z.array(z.string()).optional(),
    /** Tools that the run had not recorded. A changed pipeline has all of them in `changed`. */
    tools: tools.optional(),
    changed: changedPipeline.optional(),
  }),
  "run.finished": z.looseObject({
    status: z.enum(["completed", "failed", "cancelled"]),
    usage: usage.optional(),
    denied: z.int().optional(),
    /** The final state that ended the run. */
    state: z.string().optional(),
    /** `at` is where code of the pipeline threw: `src/pipeline.ts:41:9`. */
    error: z.object({ code: z.string(), message: z.string(), at: z.string().optional() }).optional(),
    reason: z.string().optional(),
    children: z.array(z.looseObject({ run: z.string(), head: z.string() })).optional(),
    /** No process executed the run when it was cancelled. */
    unattended: z.literal(true).optional(),
    /** What the orchestrator said at the end, and the input of the run that it asks for. */
    acknowledgement: z
      .looseObject({ text: z.string(), followUp: z.looseObject({ input: z.unknown() }).optional() })
      .optional(),
  }),
  "stage.setup": phase,
  "stage.init": phase,
  "stage.precondition": phase,
  "stage.act": phase,
  "stage.assert": phase,
  /** With the usage if calls ended without reporting theirs. */
  "stage.exit": z.looseObject({
    phase: z.enum(["entered", "left"]),
    usage: usage.optional(),
    at: z.string().optional(),
  }),
  "stage.next": phase,
  "attempt.started": z.looseObject({ attempt: z.int(), visit: z.int(), feedback: z.string().optional() }),
  "attempt.finished": z.looseObject({
    outcome: z.enum(["completed", "failed", "skipped", "paused", "cancelled", "retry"]),
    code: z.string().optional(),
    feedback: z.string().optional(),
    /** Where a hook threw. */
    at: z.string().optional(),
  }),
  "turn.started": z.looseObject({ turn: z.int(), try: z.int(), model: z.string(), elapsedMs: z.number() }),
  "turn.finished": z.looseObject({ turn: z.int(), finishReason: z.string(), calls: z.int(), usage }),
  "model.retried": z.looseObject({
    turn: z.int(),
    try: z.int(),
    code: z.string(),
    message: z.string(),
    waitMs: z.number(),
  }),
  /** The turn continues with another model of the stage. */
  "model.fallback": z.looseObject({
    turn: z.int(),
    try: z.int(),
    from: z.string(),
    to: z.string(),
    code: z.string(),
    message: z.string(),
  }),
  /** What the provider did not do as requested, each warning once per state of a run. */
  "model.warned": z.looseObject({ turn: z.int(), model: z.string(), warnings: z.array(z.string()) }),
  /** A message to a running stage; `by` is the sender's own name for itself. */
  "message.received": z.looseObject({
    turn: z.int(),
    by: z.string(),
    text: z.string(),
    sentAt: z.int(),
    /** A message that waited for the next execution of an agent. */
    kind: z.literal("followUp").optional(),
  }),
  "call.decided": z.looseObject({
    ...call,
    argsDigest: digest,
    /** The arguments in one line, cut if long. */
    args: z.string(),
    verdict: z.enum(["approved", "refused"]),
    by: z.enum(["envelope", "grant", "mode"]).optional(),
    cause: refusalCause.optional(),
    /** What the model received instead of a result. */
    result: z.unknown().optional(),
  }),
  "call.started": z.looseObject({ ...call, argsDigest: digest, wall: z.string().optional() }),
  "call.finished": z.looseObject({
    ...call,
    outcome: z.enum(["ok", "error", "abandoned", "outcome_unknown", "recovered"]),
    ms: z.number(),
    facts: z.record(z.string(), z.unknown()).optional(),
    /** Where the tool threw. */
    at: z.string().optional(),
  }),
  "grant.requested": z.looseObject({ ...request, body: z.record(z.string(), z.unknown()) }),
  "grant.answered": z.looseObject({
    requestId: z.string(),
    callId: z.string(),
    answer,
    by: z.string(),
    reason: z.string().optional(),
    proof: proof.optional(),
    argsDigest: digest.optional(),
  }),
  "grant.consumed": z.looseObject({ requestId: z.string(), callId: z.string(), argsDigest: digest }),
  "grant.expired": z.looseObject({ requestId: z.string(), cause: z.string() }),
  "request.opened": z.looseObject({
    ...request,
    body: z.record(z.string(), z.unknown()),
    /** The deadline of its answer. */
    until: z.number().optional(),
  }),
  "request.answered": z.looseObject({
    requestId: z.string(),
    answer,
    by: z.string(),
    reason: z.string().optional(),
    proof: proof.optional(),
  }),
  "request.expired": z.looseObject({ requestId: z.string(), cause: z.string() }),
  "completion.accepted": z.looseObject({ turn: z.int(), callId: z.string() }),
  "completion.rejected": z.looseObject({
    turn: z.int(),
    callId: z.string(),
    code: z.string(),
    issues: z.array(z.object({ path: z.string(), message: z.string() })),
    /** Where the schema's own code threw. */
    at: z.string().optional(),
  }),
  /** An event of a stage that completes by events; `to` is where it leads, in words. */
  "transition.accepted": z.looseObject({
    turn: z.int(),
    /** Of an agent: the call that sent the event. */
    callId: z.string().optional(),
    event: z.string(),
    to: z.string(),
  }),
  /** `rows` are those of the event that did not fire: the first 20. */
  "transition.rejected": z.looseObject({
    turn: z.int(),
    callId: z.string().optional(),
    event: z.string(),
    /** The row that fired, if a person did not approve it. */
    row: z.int().optional(),
    reason: z.string(),
    rows: z.array(
      z.looseObject({ row: z.int(), label: z.string().optional(), when: z.string().optional(), why: z.string() }),
    ),
  }),
  /** The execution waits while `to` handles the changed files. */
  /** A person interrupted the execution, which then ends as cancelled. `count` is how often the run was interrupted so far. */
  "execution.interrupted": z.looseObject({ by: z.string(), reason: z.string().optional(), count: z.int() }),
  /** The execution waits until the run is resumed, or until `retryAt`. */
  "execution.suspended": z.looseObject(fault),
  "execution.continued": z.looseObject({ by: z.enum(["resume", "time", "cancelled"]) }),
  "interrupt.started": z.looseObject({ interrupt: z.string(), files: z.array(z.string()), to: z.string() }),
  /** The execution continues; `by` is the one that handled the interrupt. */
  /** The state is about to start a command that belongs in a sandbox; `wall` names that sandbox, or is `none`. */
  "command.started": z.looseObject({ command: z.string(), wall: z.string() }),
  "sleep.started": z.looseObject({ until: z.number(), sleeps: z.number() }),
  "sleep.ended": z.looseObject({ by: z.enum(["time", "message", "cancelled"]) }),
  "interrupt.returned": z.looseObject({ interrupt: z.string(), by: z.string() }),
  "route.decided": z.looseObject({
    from: z.string(),
    choice: z.enum(["to", "fanOut", "done", "fail", "cancel", "return"]),
    to: z.union([z.string(), z.array(z.string())]).optional(),
    join: z.string().optional(),
    /** How many items a list has. */
    items: z.int().optional(),
    children: children.optional(),
    /** Of a fork: the first child that completes is enough. */
    any: z.literal(true).optional(),
    /** The state that continues if the children fail. */
    onFail: z.string().optional(),
    reason: z.string().optional(),
    why: z.looseObject({
      by: z.enum(["function", "table", "default", "event", "safe_next", "interrupt", "model", "fallback"]),
      event: z.string().optional(),
      /** Why the stage sent the event, in its own words. */
      rationale: z.string().optional(),
      /** Why a model chose the target, in its own words. */
      reason: z.string().optional(),
      /** Of a state that chooses: its targets, with why some were refused. */
      considered: z.array(z.looseObject({ to: z.string(), refused: z.string().optional() })).optional(),
    }),
    /** The prompt that an orchestrator gave this execution in place of its own. */
    prompt: z.string().optional(),
  }),
  /** `to` is the target that a state chose, which was refused. */
  "route.rejected": z.looseObject({ from: z.string(), to: z.string().optional(), reason: z.string() }),
  "context.changed": z.looseObject({ patch: z.record(z.string(), z.unknown()) }),
  /**
   * `siblings` are keys: ids of states, or of a list's items, of branches and of other pipelines. `list` is the state that runs
   * the items. `join` is the state that continues.
   */
  "fanOut.started": z.looseObject({
    fanOut: z.string(),
    siblings: z.array(z.string()),
    join: z.string(),
    list: z.string().optional(),
    children: children.optional(),
    any: z.literal(true).optional(),
    onFail: z.string().optional(),
  }),
  "fanOut.joined": z.looseObject({
    fanOut: z.string(),
    list: z.string().optional(),
    outcomes: z.array(
      z.looseObject({
        name: z.string(),
        status: z.enum(["completed", "failed", "cancelled"]),
        head: z.string().optional(),
      }),
    ),
  }),
  "limit.near": z.looseObject({ limit: z.string(), message: z.string(), used: z.number(), max: z.number() }),
  /** With amounts in the cap's unit, for caps on tokens or money. */
  "limit.reached": z.looseObject({
    limit: z.string(),
    message: z.string(),
    max: z.number().optional(),
    used: z.number().optional(),
    reserved: z.number().optional(),
    requested: z.number().optional(),
  }),
  "hook.vetoed": z.looseObject({ ...call, hook: z.string(), reason: z.string() }),
} satisfies Record<EventType, z.ZodType>;

/** The data of each type of event. */
export const eventData: Readonly<Record<EventType, z.ZodType>> = data;

/** One event as it is exported. */
export const eventSchema = z
  .object({
    id: z.string(),
    runId: z.string(),
    at: z.int(),
    type: z.string(),
    executionId: z.string().optional(),
    attempt: z.int().optional(),
    data: z.record(z.string(), z.unknown()),
  })
  .check((ctx) => {
    const schema = new Map<string, z.ZodType>(Object.entries(data)).get(ctx.value.type);
    if (schema === undefined) {
      ctx.issues.push({
        code: "custom",
        path: ["type"],
        message: `${ctx.value.type} is not an event type`,
        input: ctx.value.type,
      });
      return;
    }
    const parsed = schema.safeParse(ctx.value.data);
    if (parsed.success) return;
    for (const issue of parsed.error.issues)
      ctx.issues.push({ code: "custom", path: ["data", ...issue.path], message: issue.message, input: ctx.value.data });
  });
