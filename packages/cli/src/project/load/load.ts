import { pathToFileURL } from "node:url";
import {
  type Clock,
  isSluiceError,
  type Json,
  type Pipeline,
  SluiceError,
  type SourcePlace,
  systemClock,
} from "@sluice/core";
import { type Admit, MODULES, type WatchedModules } from "../modules.ts";
import { explainLoad } from "./load-failure.ts";

/** A pipeline whose input type is unknown here; a session checks the input. */
export type LoadedPipeline = Pipeline<Json, unknown>;

export interface LoadedModule extends Pick<WatchedModules, "files" | "deciding"> {
  readonly exports: Readonly<Record<string, unknown>>;
}

export interface LoadedFile extends Pick<WatchedModules, "files" | "deciding"> {
  /** By export name; the one of a workflow file by its id. */
  readonly pipelines: ReadonlyMap<string, LoadedPipeline>;
  /** What may not be meant in a workflow file, for the user. */
  readonly warnings?: string;
}

/** Limits a top-level await; only a signal ends code that blocks the event loop. */
const LOADING_MS = 10_000;

export type LoadFailure = (message: string, of: { readonly cause: unknown; readonly at?: SourcePlace }) => SluiceError;

/**
 * Evaluates a user's file after `admit` has accepted every file it imports. Throws the error of `admit`, the file's own
 * SluiceError (such as `definition_invalid` with all problems) with the file's name, or for any other error that of `failure`.
 */
export async function loadModule(
  file: string,
  admit: Admit,
  failure: LoadFailure,
  clock: Clock = systemClock,
): Promise<LoadedModule> {
  const run = (specifier: string): Promise<LoadedModule["exports"]> => withTimeout(import(specifier), clock);
  try {
    const { exports, modules } = await MODULES.import(pathToFileURL(file), admit, run);
    return { exports, files: modules.files, deciding: modules.deciding };
  } catch (thrown) {
    const { message, at } = explainLoad(thrown, file);
    const of = { cause: thrown, ...(at === undefined ? {} : { at }) };
    if (!isSluiceError(thrown)) throw failure(`${file} cannot be loaded: ${message}`, of);
    const { detail } = thrown;
    const options = detail === undefined ? of : { ...of, detail };
    throw new SluiceError(thrown.class, thrown.code, ofFile(file, message), options);
  }
}

/** Prefixes a message with the file, unless it begins with it. */
function ofFile(file: string, message: string): string {
  return message.startsWith(`${file} `) ? message : `${file}: ${message}`;
}

/** Loads a pipeline file with `loadModule`. Throws Validation `pipeline_load_failed`. */
export async function loadFile(file: string, admit: Admit): Promise<LoadedFile> {
  const { exports, files, deciding } = await loadModule(
    file,
    admit,
    (message, of) => new SluiceError("Validation", "pipeline_load_failed", message, of),
  );
  const pipelines = Object.entries(exports).filter((entry): entry is [string, LoadedPipeline] => isPipeline(entry[1]));
  return { files, deciding, pipelines: new Map(pipelines) };
}

/** Whether a value was made by pipeline(). */
export function isPipeline(value: unknown): value is LoadedPipeline {
  if (typeof value !== "object" || value === null || !("id" in value) || !("spec" in value)) return false;
  const { spec } = value;
  return (
    typeof spec === "object" && spec !== null && "fingerprint" in spec && "states" in spec && spec.states instanceof Map
  );
}

async function withTimeout<T>(loading: Promise<T>, clock: Clock): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const cancelTimer = clock.after(LOADING_MS, () =>
    reject(new Error(`it did not load within ${LOADING_MS / 1_000} s; avoid long waits in top-level code`)),
  );
  try {
    return await Promise.race([loading, timeout]);
  } finally {
    cancelTimer();
  }
}
