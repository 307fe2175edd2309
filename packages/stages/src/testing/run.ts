import { randomUUID } from "node:crypto";
import { existsSync, renameSync, rmSync } from "node:fs";
import { basename, resolve } from "node:path";
import { type Pipeline, SluiceError, type SluiceEvent } from "@sluice/core";
import { type PlaybackOptions, type PlaybackTraffic, playbackTraffic } from "../models/cassettes/playback.ts";
import type { UnusedExchange } from "../models/cassettes/playback-player.ts";
import { type RecordOptions, recordTraffic } from "../models/cassettes/record.ts";
import type { Script } from "../models/script.ts";
import { scriptedModel } from "../models/scripted.ts";
import type { SessionOptions } from "../session/options.ts";
import type { DeniedCall, RunResult } from "../session/run-handle.ts";
import { createSession } from "../session/session.ts";
import { type FileChange, makeWorkspace, pathOf, type WorkspaceOptions } from "./workspace.ts";

export interface TestRunOptions extends WorkspaceOptions, Omit<SessionOptions, "model" | "traffic" | "cwd"> {}

export interface ScriptedRunOptions extends TestRunOptions {
  /** The model's replies by stage, one entry per turn. */
  readonly script: Script["stages"];
  /** The replies for items of lists, by stage and key; the others use those of their stage. */
  readonly items?: Script["items"];
}

export interface RecordedRunOptions
  extends TestRunOptions,
    Pick<PlaybackOptions, "match" | "speed" | "normalize">,
    Pick<RecordOptions, "texts"> {
  /** The cassette file; a relative path starts at the process's working directory. */
  readonly cassette: string | URL;
  /** The model to record, for stages that name none; default SLUICE_MODEL. */
  readonly model?: SessionOptions["model"];
  /** Accepts a strict playback with unused exchanges, for example if siblings are cancelled at different times. */
  readonly allowUnused?: boolean;
}

/** The result of a test run, whose workspace has been removed. */
export interface TestRun<O> {
  readonly result: RunResult<O>;
  /** All events of the run and its siblings. */
  readonly events: readonly SluiceEvent[];
  readonly denied: readonly DeniedCall[];
  readonly changes: readonly FileChange[];
}

export interface RecordedRun<O> extends TestRun<O> {
  /** Whether the model was called and the cassette written. */
  readonly recorded: boolean;
  /** Exchanges of the cassette that the run did not use. */
  readonly unused: readonly UnusedExchange[];
}

/** Runs a pipeline in a temporary workspace with a scripted model. */
export async function runScripted<I, O>(
  pipeline: Pipeline<I, O>,
  input: NoInfer<I>,
  { script, items, ...options }: ScriptedRunOptions,
): Promise<TestRun<O>> {
  const { clock } = options;
  const model = scriptedModel(
    { stages: script, ...(items === undefined ? {} : { items }) },
    clock === undefined ? {} : { clock },
  );
  return await runInWorkspace(pipeline, input, { ...options, model });
}

/**
 * Runs a pipeline in a temporary workspace with replies from a cassette, without network or key. With SLUICE_RECORD=1 in the
 * environment the model is called and the cassette rewritten. Throws Validation `cassette_not_found`, `cassette_damaged`,
 * `cassette_version`; `cassette_stale` if the cassette does not match the pipeline; and the errors of starting a run.
 */
export async function runRecorded<I, O>(
  pipeline: Pipeline<I, O>,
  input: NoInfer<I>,
  options: RecordedRunOptions,
): Promise<RecordedRun<O>> {
  const {
    cassette,
    model,
    allowUnused = false,
    match = "strict",
    speed: _speed,
    normalize: _normalize,
    texts: _texts,
    ...others
  } = options;
  const file = resolve(pathOf(cassette));
  const env = options.env ?? process.env;
  if (isSet(env.SLUICE_RECORD)) {
    const recordedModel = model ?? env.SLUICE_MODEL;
    const own = recordedModel === undefined ? others : { ...others, model: recordedModel };
    const run = await rewriteCassette(file, options, (traffic) => runInWorkspace(pipeline, input, { ...own, traffic }));
    return { ...run, recorded: true, unused: [] };
  }
  const traffic = playbackTraffic(file, options);
  const run = await runInWorkspace(pipeline, input, { ...others, traffic });
  refuseStale(traffic, match === "strict" && !allowUnused);
  return { ...run, recorded: false, unused: traffic.unused() };
}

async function runInWorkspace<I, O>(
  pipeline: Pipeline<I, O>,
  input: NoInfer<I>,
  options: WorkspaceOptions & Omit<SessionOptions, "cwd">,
): Promise<TestRun<O>> {
  const workspace = makeWorkspace(options);
  try {
    const session = createSession({ ...options, cwd: workspace.root });
    try {
      const result = await session.run(pipeline, input);
      const events: SluiceEvent[] = [];
      for await (const event of session.host.events(result.runId, { children: true })) events.push(event);
      return { result, events, denied: result.denied, changes: workspace.changes() };
    } finally {
      await session.close();
    }
  } finally {
    workspace.remove();
  }
}

/** Records to a temporary file that replaces the cassette after the run, so that a run that cannot start changes nothing. */
async function rewriteCassette<T>(
  file: string,
  options: RecordOptions,
  run: (traffic: ReturnType<typeof recordTraffic>) => Promise<T>,
): Promise<T> {
  const draft = `${file}.${randomUUID()}.recording`;
  const traffic = recordTraffic(draft, options);
  try {
    const result = await run(traffic);
    if (traffic.fault !== undefined) throw traffic.fault;
    if (existsSync(draft)) renameSync(draft, file);
    return result;
  } finally {
    rmSync(draft, { force: true });
  }
}

function refuseStale(traffic: PlaybackTraffic, whole: boolean): void {
  const { divergence: cause, file } = traffic;
  const unused = whole ? traffic.unused() : [];
  if (cause === undefined && unused.length === 0) return;
  const exchanges = unused.map(
    ({ stage, key, turn, line }) =>
      `  stage ${stage}${key === undefined ? "" : `, item ${JSON.stringify(key)}`}, turn ${turn + 1} (line ${line})`,
  );
  const what = cause?.message ?? [`the run did not use all exchanges of ${basename(file)}:`, ...exchanges].join("\n");
  const message = `${what}\nFix the pipeline. If the change is intended, record again with SLUICE_RECORD=1 and the model's key.`;
  throw new SluiceError("Validation", "cassette_stale", message, { detail: { file }, cause });
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && !["", "0", "false"].includes(value.trim());
}
