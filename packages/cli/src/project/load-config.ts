import { basename, extname } from "node:path";
import { type Clock, SluiceError } from "@sluice/core";
import { bundledPipelines, type ConfigSource } from "@sluice/stages";
import { type CodeDigests, fileDigests, inLine, type ProjectCode } from "./code.ts";
import { loadModule } from "./load.ts";
import type { Admit } from "./modules.ts";
import { type ProjectSettings, readConfig } from "./read-config.ts";

/** A project's config that was loaded and has no mistakes. */
export interface LoadedConfig {
  /** Absolute, links resolved. */
  readonly file: string;
  readonly settings: ProjectSettings;
  /** What is recorded of it: the file, and the digests of all it is made of. */
  readonly source: ConfigSource;
  /** Absolute paths that decide what is loaded the next time, which no run may write. */
  readonly code: readonly string[];
}

/**
 * Loads the config of a folder, as it was when its code was trusted. Undefined when there is none. Throws Validation
 * `config_ambiguous`, `config_load_failed`, `config_invalid` or `folder_untrusted`, or the SluiceError of what it makes.
 */
export async function loadConfig(
  code: ProjectCode,
  trusted: CodeDigests,
  clock?: Clock,
): Promise<LoadedConfig | undefined> {
  const [file, ...others] = code.configs;
  if (file === undefined) return undefined;
  if (others.length > 0) {
    const names = code.configs.map((path) => basename(path)).join(" and ");
    throw new SluiceError("Validation", "config_ambiguous", `${names} are both in ${code.root}; keep one`);
  }
  const failed = (message: string, cause: unknown): SluiceError =>
    new SluiceError("Validation", "config_load_failed", message, { cause });
  const { exports, files, deciding } = await loadModule(file, asTrusted(trusted, code.root), failed, clock);
  const known = [...code.pipelines.map(fileStem), ...bundledPipelines().keys()];
  const settings = readConfig(file, code.root, exports.default, known);
  return { file, settings, source: { file, files: fileDigests(files) }, code: [...deciding] };
}

/** The name a pipeline file stands for. */
export function fileStem(path: string): string {
  return basename(path, extname(path));
}

/** Trust covers the files it was given for, as they were: code from elsewhere would be loaded without it. */
export function asTrusted(trusted: CodeDigests, root: string): Admit {
  return ({ file, digest }) => {
    const known = trusted.get(file);
    if (known === digest) return;
    throw new SluiceError(
      "Validation",
      "folder_untrusted",
      known === undefined
        ? `it imports ${inLine(file)}, which trust in ${root} does not cover; move it into .sluice/pipelines/ or into an installed package`
        : `${inLine(file)} was changed after it was trusted; look at it, then say --trust`,
    );
  };
}
