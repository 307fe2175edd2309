import { readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { isSluiceError, messageOf } from "@sluice/core";
import { bundledPipelines } from "@sluice/stages";
import { asTrusted, type CodeDigests, digestCode, fileStem, isConfigName, type ProjectCode } from "../../../project/code.ts";
import { loadFile } from "../../../project/load.ts";
import { type LoadedConfig, loadConfig } from "../../../project/load-config.ts";
import { shellWord } from "../../../project/project-paths.ts";
import type { Trust, TrustState } from "../../../project/trust.ts";
import { blocking, type Check, missing, ok, warning } from "./check.ts";

export interface ProjectReport {
  readonly checks: readonly Check[];
  /** Undefined where there is none, where nobody trusted it, and where it has mistakes. */
  readonly config: LoadedConfig | undefined;
}

const MEND_TRUST = "look at these files, then say --trust to sluice run (on a terminal you are asked)";

/** The project's code: whether it is trusted, and only then whether it can be loaded. */
export async function checkProject(code: ProjectCode, trust: Trust): Promise<ProjectReport> {
  const around = [...unreadConfigs(code), ...configsAbove(code.root)];
  if (code.configs.length === 0 && code.pipelines.length === 0) {
    const none = ok("project", `no sluice.config.ts and no .sluice/pipelines/ in ${code.root}`);
    return { checks: [none, ...around, bundledOnly()], config: undefined };
  }
  let digests: CodeDigests;
  let state: TrustState;
  try {
    digests = digestCode(code);
    state = trust.stateOf(code.root, digests);
  } catch (thrown) {
    if (!isSluiceError(thrown)) throw thrown;
    // A link keeps a folder from being trusted at all; a run without its code may start where it never was.
    const refuse = thrown.code === "folder_untrusted" && !trust.knows(code.root) ? warning : blocking;
    return { checks: [refuse("trust", thrown.message), ...around, bundledOnly()], config: undefined };
  }
  const files = listed([...digests.keys()].map((file) => relative(code.root, file)));
  switch (state.kind) {
    case "unknown":
      return {
        checks: [
          warning("trust", `nobody trusted the code of this folder; nothing of it is loaded: ${files}`, MEND_TRUST),
          ...around,
          bundledOnly(),
        ],
        config: undefined,
      };
    case "changed": {
      const changed = listed(state.files.map((file) => relative(code.root, file)));
      return {
        checks: [
          blocking("trust", `the code of this folder is not what was trusted: ${changed}`, MEND_TRUST),
          ...around,
          bundledOnly(),
        ],
        config: undefined,
      };
    }
    case "trusted": {
      const { check, config } = await checkConfig(code, digests);
      const checks = [ok("trust", `trusted as it is now: ${files}`), ...check, ...around];
      return { checks: [...checks, ...(await checkPipelines(code, digests, config))], config };
    }
  }
}

async function checkConfig(
  code: ProjectCode,
  digests: CodeDigests,
): Promise<{ readonly check: readonly Check[]; readonly config: LoadedConfig | undefined }> {
  try {
    const config = await loadConfig(code, digests);
    if (config === undefined) return { check: [ok("config", "none")], config };
    return { check: [ok("config", `${basename(config.file)} has no mistakes`)], config };
  } catch (thrown) {
    return {
      check: [blocking("config", messageOf(thrown), "mend it, or say --no-config to sluice run")],
      config: undefined,
    };
  }
}

/** Each pipeline file is loaded by itself: one that is broken must not hide the others. */
async function checkPipelines(
  code: ProjectCode,
  digests: CodeDigests,
  config: LoadedConfig | undefined,
): Promise<readonly Check[]> {
  const broken: Check[] = [];
  const sound = [...(config?.settings.pipelines.keys() ?? [])];
  for (const file of code.pipelines) {
    const name = fileStem(file);
    try {
      const { pipelines } = await loadFile(realpathSync(file), asTrusted(digests, code.root));
      if (sound.includes(name)) broken.push(missing("pipeline", `${name} stands for two pipelines`, "rename one"));
      else if (pipelines.size === 0)
        broken.push(missing("pipeline", `${file} exports no pipeline`, "export what pipeline({ … }) returns"));
      else sound.push(name);
    } catch (thrown) {
      broken.push(missing("pipeline", messageOf(thrown)));
    }
  }
  return [ok("pipelines", `${listed(sound)}${sound.length === 0 ? "" : "; "}bundled: ${bundledNames()}`), ...broken];
}

function bundledOnly(): Check {
  return ok("pipelines", `bundled: ${bundledNames()}`);
}

function bundledNames(): string {
  return [...bundledPipelines().keys()].join(", ");
}

function unreadConfigs({ unread }: ProjectCode): readonly Check[] {
  return unread.map((file) =>
    warning("config", `${basename(file)} is not read`, "a config is sluice.config.ts, .mts, .js or .mjs"),
  );
}

/** What somebody may think is read from here. */
function configsAbove(root: string): readonly Check[] {
  const found: Check[] = [];
  for (let folder = dirname(root); ; folder = dirname(folder)) {
    for (const name of namesIn(folder).filter(isConfigName))
      found.push(
        warning(
          "config",
          `${join(folder, name)} is not read here: a config holds in its own folder only`,
          `--cwd ${shellWord(folder)}`,
        ),
      );
    if (folder === dirname(folder)) return found;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (thrown) {
    if (thrown instanceof Error) return []; // a folder above may not be ours to read
    throw thrown;
  }
}

const MOST = 12;
function listed(names: readonly string[]): string {
  return names.length <= MOST ? names.join(", ") : `${names.slice(0, MOST).join(", ")} and ${names.length - MOST} more`;
}
