// What the ACP server needs of the place in which its runs execute.
import type { Interactor, RunHost } from "@sluice/core";
import type { RunHandle } from "@sluice/stages";

/** A run of a workspace. */
export interface AcpRun {
  readonly runId: string;
  /** The open store that holds it. */
  readonly host: RunHost;
  /** Only of a run that executes in this process. */
  readonly handle?: RunHandle<unknown>;
  /** The command lines that show it and that continue it. */
  showCommand(): string;
  resumeCommand(): string;
}

/** What a prompt may start. */
export interface AcpPipelines {
  /** Each becomes a slash command. */
  readonly names: readonly string[];
  /** The pipeline of a prompt that names none: one of the names, or a file that the user named. */
  readonly fallback: string | undefined;
}

/** Executes the runs of one session of a client, as the command would in this folder. */
export interface AcpWorkspace {
  pipelines(): Promise<AcpPipelines>;
  /** Throws what prevents the start. */
  start(pipeline: string, task: string): Promise<AcpRun>;
  /** Continues a run that no process owns. Throws what prevents it. */
  resume(runId: string): Promise<AcpRun>;
  /** A recorded run, to read. Throws Session `run_unknown`. */
  find(runId: string): Promise<AcpRun>;
  /** Sends a message to a run, which reads it when it continues. */
  message(run: AcpRun, text: string): Promise<void>;
  /** Suspends its runs and closes its stores. */
  close(): Promise<void>;
}

/** Opens the workspace of a session; the interactor answers the requests of its runs. Throws Session `workspace_missing`. */
export type OpenWorkspace = (cwd: string, interactor: Interactor) => Promise<AcpWorkspace>;

/** What an earlier process knew of a session. */
export interface StoredSession {
  /** Absolute. */
  readonly cwd: string;
  /** Oldest first. */
  readonly runIds: readonly string[];
}

/** Remembers sessions for `session/load`. Their ids come from clients and may be anything. */
export interface SessionStore {
  recall(sessionId: string): StoredSession | undefined;
  remember(sessionId: string, session: StoredSession): void;
}
