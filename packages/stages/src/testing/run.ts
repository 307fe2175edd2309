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

/** How a test's run works: where, and what else its session has. */
export interface TestRunOptions extends WorkspaceOptions, Omit<SessionOptions, "model" | "traffic" | "cwd"> {}

export interface ScriptedRunOptions extends TestRunOptions {
  /** What the model says, by stage, one entry a turn. */
  readonly script: Script["stages"];
}

export interface RecordedRunOptions
  extends TestRunOptions,
    Pick<PlaybackOptions, "match" | "speed" | "normalize">,
    Pick<RecordOptions, "texts"> {
  /** The file with the recorded answers; a relative path starts at the process's working directory. */
  readonly cassette: string | URL;
  /** The model to record, for stages that name none; else the one in SLUICE_MODEL. */
  readonly model?: SessionOptions["model"];
  /** Accepts a strict replay that leaves exchanges over, as where siblings are stopped sooner or later. */
  readonly allowUnused?: boolean;
}

/** What a test's run came to. Its workspace is gone. */
export interface TestRun<O> {
  readonly result: RunResult<O>;
  /** Every event of the run and its siblings. */
  readonly events: readonly SluiceEvent[];
  readonly denied: readonly DeniedCall[];
  /** Every file that is not as it was. */
  readonly changes: readonly FileChange[];
}

export interface RecordedRun<O> extends TestRun<O> {
  /** True when the answers came from the model and were written. */
  readonly recorded: boolean;
  /** Exchanges of the cassette that the run did not come to. */
  readonly unused: readonly UnusedExchange[];
}

/** Runs a pipeline in a workspace of its own, with a model that says what its script says. */
export async function runScripted<I, O>(
  pipeline: Pipeline<I, O>,
  input: NoInfer<I>,
  { script, ...options }: ScriptedRunOptions,
): Promise<TestRun<O>> {
  const { clock } = options;
  const model = scriptedModel({ stages: script }, clock === undefined ? {} : { clock });
  return await runInWorkspace(pipeline, input, { ...options, model });
}

/**
 * Runs a pipeline in a workspace of its own, with answers from a cassette: no network, no key. With SLUICE_RECORD=1 in the
 * environment the real model answers, and the cassette is written anew. Throws Validation `cassette_not_found`,
 * `cassette_damaged`, `cassette_version`; `cassette_stale` with what differs where the cassette does not fit the pipeline; and
 * what a session throws that cannot start.
 */
export async function runRecorded<I, O>(
  pipeline: Pipeline<I, O>,
  input: NoInfer<I>,
  options: RecordedRunOptions,
): Promise<RecordedRun<O>> {
  const { cassette, model, allowUnused = false, match = "strict", speed, normalize, texts, ...others } = options;
  const file = resolve(pathOf(cassette));
  const env = options.env ?? process.env;
  const common = normalize === undefined ? {} : { normalize };
  if (isSet(env.SLUICE_RECORD)) {
    const usual = model ?? env.SLUICE_MODEL;
    const recording = { ...common, ...(texts === undefined ? {} : { texts }) };
    const run = await recordAnew(file, recording, (traffic) =>
      runInWorkspace(pipeline, input, { ...others, traffic, ...(usual === undefined ? {} : { model: usual }) }),
    );
    return { ...run, recorded: true, unused: [] };
  }
  const traffic = playbackTraffic(file, { ...common, match, ...(speed === undefined ? {} : { speed }) });
  const run = await runInWorkspace(pipeline, input, { ...others, traffic });
  refuseStale(traffic, match === "strict" && !allowUnused);
  return { ...run, recorded: false, unused: traffic.unused() };
}

async function runInWorkspace<I, O>(
  pipeline: Pipeline<I, O>,
  input: NoInfer<I>,
  { files, folder, ...options }: WorkspaceOptions & Omit<SessionOptions, "cwd">,
): Promise<TestRun<O>> {
  const workspace = makeWorkspace({
    ...(files === undefined ? {} : { files }),
    ...(folder === undefined ? {} : { folder }),
  });
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

/** Records beside the cassette that is there, and takes its place when the run has ended: a run that cannot start spoils nothing. */
async function recordAnew<T>(
  file: string,
  options: RecordOptions,
  run: (traffic: ReturnType<typeof recordTraffic>) => Promise<T>,
): Promise<T> {
  const beside = `${file}.${randomUUID()}.recording`;
  const traffic = recordTraffic(beside, options);
  try {
    const result = await run(traffic);
    if (traffic.fault !== undefined) throw traffic.fault;
    if (existsSync(beside)) renameSync(beside, file);
    return result;
  } finally {
    rmSync(beside, { force: true });
  }
}

function refuseStale(traffic: PlaybackTraffic, whole: boolean): void {
  const { divergence: cause, file } = traffic;
  const unused = whole ? traffic.unused() : [];
  if (cause === undefined && unused.length === 0) return;
  const left = unused.map(({ stage, turn, line }) => `  stage ${stage}, turn ${turn + 1} (line ${line})`);
  const what = cause?.message ?? [`the run left answers of ${basename(file)} over:`, ...left].join("\n");
  const message = `${what}\nMend the pipeline; or, where the change is meant, record again with SLUICE_RECORD=1 and the model's key.`;
  throw new SluiceError("Validation", "cassette_stale", message, { detail: { file }, cause });
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && !["", "0", "false"].includes(value.trim());
}
