import { readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { isSluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { bundledPipelines } from "@sluice/stages";
import {
  asTrusted,
  type CodeDigests,
  digestCode,
  fileStem,
  isConfigName,
  type ProjectCode,
} from "../../../project/code.ts";
import { loadFile } from "../../../project/load.ts";
import { type LoadedConfig, loadConfig } from "../../../project/load-config.ts";
import { shellWord } from "../../../project/project-paths.ts";
import type { Trust, TrustState } from "../../../project/trust.ts";
import { blocking, type Check, missing, ok, warning } from "./check.ts";

export interface ProjectReport {
  readonly checks: readonly Check[];
  /** Undefined if the config is missing, not trusted or invalid. */
  readonly config: LoadedConfig | undefined;
}

const TRUST_FIX = "review these files, then use sluice run --trust (on a terminal it asks you)";

/** Checks whether the project's code is trusted, and only then whether it loads. */
export async function checkProject(code: ProjectCode, trust: Trust): Promise<ProjectReport> {
  const notices = [...unreadConfigs(code), ...configsAbove(code.root)];
  if (code.configs.length === 0 && code.pipelines.length === 0) {
    const empty = ok("project", `no sluice.config.ts and no .sluice/pipelines/ in ${code.root}`);
    return { checks: [empty, ...notices, bundledOnly()], config: undefined };
  }
  let digests: CodeDigests;
  let state: TrustState;
  try {
    digests = digestCode(code);
    state = trust.stateOf(code.root, digests);
  } catch (thrown) {
    if (!isSluiceError(thrown)) throw thrown;
    // A folder with a link cannot be trusted; runs can start without its code only if it never was.
    const refuse = thrown.code === "folder_untrusted" && !trust.knows(code.root) ? warning : blocking;
    return { checks: [refuse("trust", thrown.message), ...notices, bundledOnly()], config: undefined };
  }
  const files = listed([...digests.keys()].map((file) => relative(code.root, file)));
  switch (state.kind) {
    case "unknown":
      return {
        checks: [
          warning("trust", `the code of this folder is not trusted, so it is not loaded: ${files}`, TRUST_FIX),
          ...notices,
          bundledOnly(),
        ],
        config: undefined,
      };
    case "changed": {
      const changed = listed(state.files.map((file) => relative(code.root, file)));
      return {
        checks: [
          blocking("trust", `the code of this folder changed since it was trusted: ${changed}`, TRUST_FIX),
          ...notices,
          bundledOnly(),
        ],
        config: undefined,
      };
    }
    case "trusted": {
      const { check, config } = await checkConfig(code, digests);
      const checks = [ok("trust", `the current code is trusted: ${files}`), ...check, ...notices];
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
    return { check: [ok("config", `${basename(config.file)} is valid`)], config };
  } catch (thrown) {
    return {
      check: [blocking("config", messageOf(thrown), "fix it, or use sluice run --no-config")],
      config: undefined,
    };
  }
}

/** Loads each pipeline file separately, so that a broken one does not hide the others. */
async function checkPipelines(
  code: ProjectCode,
  digests: CodeDigests,
  config: LoadedConfig | undefined,
): Promise<readonly Check[]> {
  const broken: Check[] = [];
  const names = [...(config?.settings.pipelines.keys() ?? [])];
  for (const file of code.pipelines) {
    const name = fileStem(file);
    try {
      const { pipelines } = await loadFile(realpathSync(file), asTrusted(digests, code.root));
      if (names.includes(name)) broken.push(missing("pipeline", `${name} is defined twice`, "rename one"));
      else if (pipelines.size === 0)
        broken.push(missing("pipeline", `${file} exports no pipeline`, "export the result of pipeline({ … })"));
      else names.push(name);
    } catch (thrown) {
      broken.push(missing("pipeline", messageOf(thrown)));
    }
  }
  return [ok("pipelines", `${listed(names)}${names.length === 0 ? "" : "; "}bundled: ${bundledNames()}`), ...broken];
}

function bundledOnly(): Check {
  return ok("pipelines", `bundled: ${bundledNames()}`);
}

function bundledNames(): string {
  return [...bundledPipelines().keys()].join(", ");
}

function unreadConfigs({ unread }: ProjectCode): readonly Check[] {
  return unread.map((file) =>
    warning("config", `${basename(file)} is ignored`, "a config is sluice.config.ts, .mts, .js or .mjs"),
  );
}

/** Configs in parent folders, which a user may expect to apply here. */
function configsAbove(root: string): readonly Check[] {
  const found: Check[] = [];
  for (let folder = dirname(root); ; folder = dirname(folder)) {
    for (const name of namesIn(folder).filter(isConfigName))
      found.push(
        warning(
          "config",
          `${join(folder, name)} is ignored: a config applies only in its own folder`,
          `use --cwd ${shellWord(folder)}`,
        ),
      );
    if (folder === dirname(folder)) return found;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (thrown) {
    if (thrown instanceof Error) return []; // a parent folder may be unreadable
    throw thrown;
  }
}

const MAX_LISTED = 12;

function listed(names: readonly string[]): string {
  return names.length <= MAX_LISTED
    ? names.join(", ")
    : `${names.slice(0, MAX_LISTED).join(", ")} and ${names.length - MAX_LISTED} more`;
}
