import { readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { isSluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { listed } from "../../../output/output.ts";
import { bundled } from "../../../project/bundled.ts";
import {
  asTrusted,
  type CodeDigests,
  digestCode,
  fileStem,
  findCode,
  isConfigName,
  type ProjectCode,
} from "../../../project/code.ts";
import { loadFile } from "../../../project/load/load.ts";
import { type LoadedConfig, loadConfig } from "../../../project/load-config.ts";
import { loadWorkflowFile } from "../../../project/load-workflow.ts";
import { workflowSurroundings } from "../../../project/pipelines.ts";
import { foldersAbove, shellWord } from "../../../project/project-paths.ts";
import type { Projects } from "../../../project/projects.ts";
import type { Trust, TrustState } from "../../../project/trust.ts";
import { blocking, type Check, missing, ok, warning } from "./check.ts";

export interface ProjectReport {
  readonly checks: readonly Check[];
  /** Undefined if the config is missing, not trusted or invalid, or if nothing of the project may be started. */
  readonly config: LoadedConfig | undefined;
}

/** Maximum number of names to list. */
const MOST = 12;
const TRUST_FIX = "review these files, then use sluice run --trust (on a terminal it asks you)";

/** Checks whether the project's code is trusted, and only then whether it loads. */
export async function checkProject(
  root: string,
  trust: Trust,
  projects: Pick<Projects, "moveLeftAway">,
): Promise<ProjectReport> {
  const left = await checkLeft(projects, root);
  const code = findCode(root);
  const notices = [...unreadConfigs(code), ...configsAbove(root)];
  const without = (check: Check): ProjectReport => {
    const bundled = ok("pipelines", `bundled: ${bundledNames()}`);
    return { checks: [check, ...notices, bundled], config: undefined };
  };
  const listedFiles = (files: Iterable<string>): string =>
    listed(
      [...files].map((file) => relative(root, file)),
      MOST,
    );
  if (left !== undefined) return without(left);
  if (code.configs.length + code.pipelines.length + code.workflows.length === 0) {
    const none = `no sluice.config.ts, no .sluice/pipelines/ and no .sluice/workflows/ in ${root}`;
    return without(ok("project", none));
  }
  let digests: CodeDigests;
  let state: TrustState;
  try {
    digests = trust.codeOf(root, digestCode(code));
    state = trust.stateOf(root, digests);
  } catch (thrown) {
    if (!isSluiceError(thrown)) throw thrown;
    // A folder with a link cannot be trusted; runs can start without its code only if it never was.
    const refuse = thrown.code === "folder_untrusted" && !trust.knows(root) ? warning : blocking;
    return without(refuse("trust", thrown.message));
  }
  const files = listedFiles(digests.keys());
  if (state.kind === "unknown")
    return without(
      warning("trust", `the code of this folder is not trusted, so it is not loaded: ${files}`, TRUST_FIX),
    );
  if (state.kind === "changed") {
    const changed = `the code of this folder changed since it was trusted: ${listedFiles(state.files)}`;
    return without(blocking("trust", changed, TRUST_FIX));
  }
  const checks = [ok("trust", `the current code is trusted: ${files}`)];
  let config: LoadedConfig | undefined;
  try {
    config = await loadConfig(code, asTrusted(digests, root));
    checks.push(ok("config", config === undefined ? "none" : `${basename(config.file)} is valid`));
  } catch (thrown) {
    checks.push(blocking("config", messageOf(thrown), "fix it, or use sluice run --no-config"));
  }
  const leftByConfig = await checkLeft(projects, root, config?.settings.store);
  if (leftByConfig !== undefined) return without(leftByConfig);
  checks.push(...notices, ...(await checkPipelines(code, digests, config)));
  return { checks, config };
}

/** What commands of killed processes left is moved away first; a fault means that nothing may be loaded or started. */
async function checkLeft(
  { moveLeftAway }: Pick<Projects, "moveLeftAway">,
  root: string,
  configured?: string,
): Promise<Check | undefined> {
  try {
    await moveLeftAway(root, configured);
    return undefined;
  } catch (thrown) {
    return blocking("workspace", messageOf(thrown));
  }
}

/** Loads each pipeline and each workflow separately, so that a broken one does not hide the others. */
async function checkPipelines(
  code: ProjectCode,
  digests: CodeDigests,
  config: LoadedConfig | undefined,
): Promise<readonly Check[]> {
  const broken: Check[] = [];
  const names = [...(config?.settings.pipelines.keys() ?? [])];
  const { admit } = asTrusted(digests, code.root);
  const surroundings = workflowSurroundings({ code, config });
  for (const file of [...code.pipelines, ...code.workflows]) {
    const name = fileStem(file);
    try {
      const path = realpathSync(file);
      const { pipelines } = code.workflows.includes(file)
        ? await loadWorkflowFile(path, admit, surroundings)
        : await loadFile(path, admit);
      if (names.includes(name)) broken.push(missing("pipeline", `${name} is defined twice`, "rename one"));
      else if (pipelines.size === 0)
        broken.push(missing("pipeline", `${file} exports no pipeline`, "export the result of pipeline({ … })"));
      else names.push(name);
    } catch (thrown) {
      broken.push(missing("pipeline", messageOf(thrown)));
    }
  }
  return [
    ok("pipelines", `${listed(names, MOST)}${names.length === 0 ? "" : "; "}bundled: ${bundledNames()}`),
    ...broken,
  ];
}

function bundledNames(): string {
  return [...bundled().keys()].join(", ");
}

function unreadConfigs({ unread }: ProjectCode): readonly Check[] {
  return unread.map((file) =>
    warning("config", `${basename(file)} is ignored`, "a config is sluice.config.ts, .mts, .js or .mjs"),
  );
}

/** Configs in parent folders, which a user may expect to apply here. */
function configsAbove(root: string): readonly Check[] {
  return foldersAbove(dirname(root)).flatMap((folder) =>
    namesIn(folder)
      .filter(isConfigName)
      .map((name) => {
        const message = `${join(folder, name)} is ignored: a config applies only in its own folder`;
        return warning("config", message, `use --cwd ${shellWord(folder)}`);
      }),
  );
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (thrown) {
    if (thrown instanceof Error) return []; // a parent folder may be unreadable
    throw thrown;
  }
}
