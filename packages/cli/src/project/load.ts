import { pathToFileURL } from "node:url";
import { type Clock, isSluiceError, type Json, messageOf, type Pipeline, SluiceError, systemClock } from "@sluice/core";
import { type Admit, importWatched, type WatchedModules } from "./modules.ts";

/** A pipeline whose input the compiler does not know; a session checks it. */
export type LoadedPipeline = Pipeline<Json, unknown>;

/** What a file exports, and the code it is made of. */
export interface LoadedModule extends Pick<WatchedModules, "files" | "deciding"> {
  readonly exports: Readonly<Record<string, unknown>>;
}

/** The pipelines a file exports, by export name, and the code they are made of. */
export interface LoadedFile extends Pick<WatchedModules, "files" | "deciding"> {
  readonly pipelines: ReadonlyMap<string, LoadedPipeline>;
}

/** For a top-level await that waits for something; code that never comes back to the event loop only a signal ends. */
const LOADING_MS = 10_000;

/** The error that says what a file is when it cannot be loaded. */
type LoadFailure = (message: string, cause: unknown) => SluiceError;

/**
 * Runs a file of the user's, once every file it imports was admitted. Throws what it threw when that is a SluiceError
 * (`definition_invalid` with everything that is wrong), what `admit` throws, or what `failure` makes.
 */
export async function loadModule(
  file: string,
  admit: Admit,
  failure: LoadFailure,
  clock: Clock = systemClock,
): Promise<LoadedModule> {
  const run = (specifier: string): Promise<LoadedModule["exports"]> => inTime(import(specifier), clock);
  try {
    const { exports, modules } = await importWatched(pathToFileURL(file), admit, run);
    return { exports, ...modules };
  } catch (thrown) {
    if (isSluiceError(thrown))
      throw new SluiceError(thrown.class, thrown.code, ofFile(file, thrown.message), {
        ...(thrown.detail === undefined ? {} : { detail: thrown.detail }),
        cause: thrown,
      });
    throw failure(`${file} cannot be loaded: ${messageOf(thrown)}`, thrown);
  }
}

/** A message that begins with the file says it once. */
function ofFile(file: string, message: string): string {
  return message.startsWith(`${file} `) ? message : `${file}: ${message}`;
}

/** Runs a pipeline file, see `loadModule`. Throws Validation `pipeline_load_failed`. */
export async function loadFile(file: string, admit: Admit): Promise<LoadedFile> {
  const { exports, files, deciding } = await loadModule(
    file,
    admit,
    (message, cause) => new SluiceError("Validation", "pipeline_load_failed", message, { cause }),
  );
  const pipelines = Object.entries(exports).filter((entry): entry is [string, LoadedPipeline] => isPipeline(entry[1]));
  return { files, deciding, pipelines: new Map(pipelines) };
}

/** Made by pipeline(), which leaves nothing behind that cannot run. */
export function isPipeline(value: unknown): value is LoadedPipeline {
  if (typeof value !== "object" || value === null || !("id" in value) || !("spec" in value)) return false;
  const { spec } = value;
  return (
    typeof spec === "object" && spec !== null && "fingerprint" in spec && "states" in spec && spec.states instanceof Map
  );
}

async function inTime<T>(loading: Promise<T>, clock: Clock): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const disarm = clock.after(LOADING_MS, () =>
    reject(new Error(`it was not ready after ${LOADING_MS / 1_000} s; nothing at its top level may wait for long`)),
  );
  try {
    return await Promise.race([loading, late]);
  } finally {
    disarm();
  }
}
