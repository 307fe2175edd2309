import { pathToFileURL } from "node:url";
import { isSluiceError, type Json, messageOf, type Pipeline, SluiceError } from "@sluice/core";
import { type Admit, type WatchedModules, watchModules } from "./modules.ts";

/** A pipeline whose input the compiler does not know; a session checks it. */
export type LoadedPipeline = Pipeline<Json, unknown>;

/** The pipelines a file exports, by export name, and the code they are made of. */
export interface LoadedFile extends Pick<WatchedModules, "files" | "deciding"> {
  readonly pipelines: ReadonlyMap<string, LoadedPipeline>;
}

/**
 * Runs a pipeline file, once every file it imports was admitted. Throws its own SluiceError (`definition_invalid` with
 * everything that is wrong), what `admit` throws, or Validation `pipeline_load_failed`.
 */
export async function loadFile(file: string, admit: Admit): Promise<LoadedFile> {
  const entry = pathToFileURL(file);
  const modules = watchModules(entry, admit);
  let module: Readonly<Record<string, unknown>>;
  try {
    module = await import(entry.href);
    modules.close();
  } catch (thrown) {
    if (isSluiceError(thrown))
      throw new SluiceError(thrown.class, thrown.code, `${file}: ${thrown.message}`, {
        ...(thrown.detail === undefined ? {} : { detail: thrown.detail }),
        cause: thrown,
      });
    throw new SluiceError("Validation", "pipeline_load_failed", `${file} cannot be loaded: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
  return {
    files: modules.files,
    deciding: modules.deciding,
    pipelines: new Map(
      Object.entries(module).filter((entry): entry is [string, LoadedPipeline] => isPipeline(entry[1])),
    ),
  };
}

/** Made by pipeline(), which leaves nothing behind that cannot run. */
export function isPipeline(value: unknown): value is LoadedPipeline {
  if (typeof value !== "object" || value === null || !("id" in value) || !("spec" in value)) return false;
  const { spec } = value;
  return (
    typeof spec === "object" && spec !== null && "fingerprint" in spec && "states" in spec && spec.states instanceof Map
  );
}
