import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { isSluiceError, type Json, messageOf, type Pipeline, SluiceError } from "@sluice/core";

/** A pipeline whose input the compiler does not know; a session checks it. */
export type LoadedPipeline = Pipeline<Json, unknown>;

/** The pipelines a file exports, by export name, and the digest of the file. */
export interface LoadedFile {
  readonly digest: string;
  readonly pipelines: ReadonlyMap<string, LoadedPipeline>;
}

export function digestOfFile(file: string): string {
  return hash("sha256", readFileSync(file));
}

/**
 * Runs a pipeline file. Throws its own SluiceError (`definition_invalid` with everything that is wrong), or Validation
 * `pipeline_load_failed`.
 */
export async function loadFile(file: string): Promise<LoadedFile> {
  const digest = digestOfFile(file);
  // Stays for the life of the process: a pipeline's functions may import later.
  registerHooks({ resolve: resolveOurs });
  let module: Readonly<Record<string, unknown>>;
  try {
    module = await import(pathToFileURL(file).href);
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
    digest,
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

type Resolve = NonNullable<Parameters<typeof registerHooks>[0]["resolve"]>;

/**
 * A pipeline works with the Sluice that runs it, whether its project has one installed or not: two copies would not know each
 * other's errors. Zod is lent where the project has none.
 */
const resolveOurs: Resolve = (specifier, context, next) => {
  if (specifier === "@sluice/core" || specifier === "@sluice/stages")
    return next(specifier, { ...context, parentURL: import.meta.url });
  try {
    return next(specifier, context);
  } catch (thrown) {
    if (specifier !== "zod" && !specifier.startsWith("zod/")) throw thrown;
    return next(specifier, { ...context, parentURL: import.meta.resolve("@sluice/stages") });
  }
};
