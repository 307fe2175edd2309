import type { RunHost, RunSummary } from "@sluice/core";
import type { SecurityMode } from "@sluice/core/gate";
import type { SecretFilter } from "@sluice/core/runtime";
import type { RunHandle, Session } from "@sluice/stages";
import type { Environment } from "../user/environment.ts";

/** How the app was opened, and what its later runs start with. */
export interface AppFlags {
  readonly model?: string;
  readonly mode?: SecurityMode;
  readonly fullscreen?: boolean;
  readonly screenReader?: boolean;
}

/** What the app has of the process it runs in. */
export interface AppContext {
  readonly env: Environment;
  /** The working directory of the process. */
  readonly here: string;
  /** The absolute path of the folder that its runs work in: `--cwd`, by default `here`. */
  readonly workspace: string;
  /** The version of the command. */
  readonly version: string;
  readonly terminal: { out(text: string): void; err(text: string): void };
}

/** A run the app knows, and the open store that holds it. */
export interface KnownRun {
  readonly runId: string;
  readonly host: RunHost;
  /** Only of a run that executes in this process. */
  readonly handle?: RunHandle<unknown>;
  /** Answers its requests from this process; only of a run that executes here. */
  readonly answer?: Session["answer"];
  /** The command line that continues it. Throws when its folder is gone. */
  resumeCommand(): string;
}

/** What a project offers to complete and to start. */
export interface AppProject {
  /** Names of the pipelines in files and config. */
  readonly pipelines: readonly string[];
  readonly defaultPipeline: string | undefined;
}

export interface ResumeOptions {
  /** Also with a pipeline, a config or tools that changed. */
  readonly allowChanged?: boolean;
}

/** A state to start in, with its input as the command takes it: `key=text`, `key:=json` or a JSON object. */
export interface StartIn {
  readonly state: string;
  readonly input: readonly string[];
}

/** An export that was written, in lines for the user. */
export interface ExportNotice {
  readonly lines: readonly string[];
  /** What is wrong with the journal, when it does not verify. */
  readonly damage?: string;
}

/** Starts, resumes and forks runs for the app, and holds what they need: the stores, and a session for each run. */
export interface Engine {
  readonly flags: AppFlags;
  /** Sets what later runs start with. */
  set(flags: Pick<AppFlags, "model" | "mode">): void;
  project(): Promise<AppProject>;
  /** Whether no model is configured and none can be found. */
  lacksModel(): Promise<boolean>;
  /** Drops what was loaded: the next run reads config and pipelines again. */
  reload(): void;
  /** Starts a run, by default in the initial state. Throws what prevents it. */
  start(pipeline: string | undefined, task: string, from?: StartIn): Promise<KnownRun>;
  /** What is wrong or doubtful about a workflow, by default about all of the project, in lines that end with the counts. */
  check(name: string | undefined): Promise<readonly string[]>;
  /** Starts the offline demo in a temporary folder. */
  startDemo(): Promise<KnownRun>;
  /** Resumes a run that no process owns. */
  resume(runId: string, options?: ResumeOptions): Promise<KnownRun>;
  /** Starts a run with the journal of another up to an execution. Throws with the executions there are where none is named. */
  fork(runId: string, from: string | undefined, options?: ResumeOptions): Promise<KnownRun>;
  /** A run of the store by its id or a unique prefix. Throws Session `run_unknown`. */
  find(runId: string): Promise<KnownRun>;
  /** Replaces known secrets in text that is sent to a run. */
  secretsToward(runId: string, host: RunHost): Promise<SecretFilter>;
  /** The store of the workspace; undefined where there is none yet. */
  store(): Promise<{ readonly folder: string; readonly host: RunHost } | undefined>;
  /** The runs of the store, newest first; none where there is no store. */
  list(most?: number): Promise<readonly RunSummary[]>;
  /** Where an export of a run goes when no file is named. */
  exportName(runId: string): string;
  /** Writes an export that verifies by itself; undefined when the file exists and `force` is not given. */
  export(run: KnownRun, file: string, force: boolean): Promise<ExportNotice | undefined>;
  /** Suspends what runs here and closes the stores. */
  close(): Promise<void>;
}

/** What an engine needs of the app. */
export interface EngineHooks {
  /** Asks whether a folder's code may be loaded. */
  askTrust(question: string): Promise<boolean>;
  /** Shows a diagnostic: why a model was chosen, where a pipeline came from, what an MCP server printed. */
  say(text: string): void;
}
