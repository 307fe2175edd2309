import { existsSync, readdirSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { AllowedTool, Clock, Json, JsonObject, PipelineSpec, Problem } from "@sluice/core";
import { compileEnvelope, isScratchFolder } from "@sluice/core/gate";
import { COMMANDS_FOLDER, isObject, problemsError, statesWithin } from "@sluice/core/runtime";
import type {
  CommandReach,
  Sandbox,
  SandboxFault,
  SandboxMode,
  SandboxOptions,
  SandboxPlan,
  SandboxSettings,
} from "../tools/sandbox.ts";

export interface SandboxScope {
  readonly root: string;
  /** Allowed tools of stages without an envelope. */
  readonly withoutEnvelope: readonly AllowedTool[];
  readonly clock: Clock;
  /** The folder of the run store, once it is open on this disk. */
  readonly store: () => string | undefined;
  readonly onFault: (fault: SandboxFault) => void;
}

/** The sandbox of a session, and what its commands may do in it. */
export function sessionSandbox(
  option: SandboxMode | SandboxSettings | undefined,
  { root, withoutEnvelope, clock, store, onFault }: SandboxScope,
) {
  const { mode = "try", network = false, scratch = [], hidden = [], variables = [] } = readSandboxSettings(option);
  const absent = (): readonly string[] => [store(), ...hidden].filter((path) => path !== undefined);
  const sandbox = lazySandbox({ mode, root, absent, clock, store });
  let reported = false;
  const commanding = new WeakMap<PipelineSpec, boolean>();
  /** Whether a stage may run commands without a grant. Before a granted command, the Bash tool proves the sandbox itself. */
  const mayRunCommands = (spec: PipelineSpec): boolean => {
    const known = commanding.get(spec);
    if (known !== undefined) return known;
    const may = statesWithin(spec).some(
      ({ allowedTools }) => compileEnvelope(allowedTools ?? withoutEnvelope).rulesFor("Bash").length > 0,
    );
    commanding.set(spec, may);
    return may;
  };
  return {
    sandbox,
    /** Paths that no process of the session sees. */
    absent,
    /** What the command of a state may do. */
    planFor: (reach: CommandReach): SandboxPlan => ({
      root,
      reads: [""],
      writes: reach.writes,
      // A writable workspace has these already.
      scratch: reach.writes.length > 0 ? [] : [...reach.scratch, ...scratch],
      network: reach.network || network,
      absent: absent(),
      readOnly: reach.readOnly,
    }),
    bash: { sandbox, always: { network, scratch, absent: hidden }, variables },
    /**
     * Proves the sandbox if the pipeline needs one, after what commands of killed processes left was moved away. Throws
     * Environment `sandbox_missing`, and `sandbox_failed` if something could not be moved.
     */
    proveFor: async (spec: PipelineSpec, isNeeded: boolean): Promise<void> => {
      for (const message of await moveAwayLeft(store(), root)) onFault({ by: "sandbox", message });
      if (!isNeeded && !mayRunCommands(spec)) return;
      await sandbox.prove();
      const { missing } = sandbox;
      if (missing === undefined || reported) return;
      reported = true;
      onFault({ by: "sandbox", message: `commands run without a sandbox: ${missing.reason}; ${missing.fix}` });
    },
    /** What the run records at each start and resume about its sandbox and what runs without it. */
    facts: (spec: PipelineSpec, { servers, processes }: WithoutSandbox, isWalled: boolean): JsonObject => ({
      mode,
      ...(isWalled || mayRunCommands(spec) ? { wall: sandbox.wall ?? "none" } : {}),
      ...(servers.length === 0 ? {} : { unsandboxedServers: [...servers] }),
      ...(processes ? { processes } : {}),
    }),
  };
}

/**
 * Moves away what sandboxed commands of killed processes left in a workspace that programs of this machine would obey, before
 * anything of it is loaded or started. Says what was moved. Throws `sandbox_failed` if something could not be moved.
 */
export async function moveAwayLeft(store: string | undefined, root: string): Promise<readonly string[]> {
  if (store === undefined) return [];
  const records = join(store, COMMANDS_FOLDER);
  if (!existsSync(records) || readdirSync(records).length === 0) return [];
  const { moveAwayRecorded } = await import("./command-records.ts");
  const moved = await moveAwayRecorded({ root, store });
  return moved.map(({ path, to }) => `a command whose process was killed left ${path}; it was moved to ${to}`);
}

/** What of a session no sandbox holds. */
interface WithoutSandbox {
  /** Names of MCP servers. */
  readonly servers: readonly string[];
  /** Whether it has tools or kinds of states that start processes. */
  readonly processes: boolean;
}

/** A sandbox whose code is loaded with its first use, since most runs of read-only pipelines start no process. */
export function lazySandbox(options: SandboxOptions): Sandbox {
  const { mode } = options;
  let loaded: Sandbox | undefined;
  const load = async (): Promise<Sandbox> => {
    const { createSandbox } = await import("./sandbox.ts");
    loaded ??= createSandbox(options);
    return loaded;
  };
  return {
    mode,
    get wall() {
      return loaded?.wall;
    },
    get isLost() {
      return loaded?.isLost === true;
    },
    get missing() {
      return loaded?.missing;
    },
    prove: async () => {
      if (mode !== "off") await (await load()).prove();
    },
    run: async (program, plan) => await (await load()).run(program, plan),
    watched: async (env, plan, work) => await (await load()).watched(env, plan, work),
    wrap: async (program, plan) => await (await load()).wrap(program, plan),
  };
}

/** Whether commands in this workspace can be sandboxed, and by what, or why not. */
export async function probeSandbox(
  root: string,
  absent: readonly string[],
): Promise<Pick<Sandbox, "wall" | "missing">> {
  const sandbox = lazySandbox({ mode: "try", root, absent: () => absent });
  await sandbox.prove();
  return sandbox;
}

/** From the least strict to the strictest. */
export const SANDBOX_MODES: readonly SandboxMode[] = ["off", "try", "require"];

/** Checks the settings of a sandbox. Throws Validation `sandbox_invalid` with all problems. */
export function readSandboxSettings(option: SandboxMode | SandboxSettings | undefined): SandboxSettings {
  const settings: SandboxSettings = isObject(option) ? option : option === undefined ? {} : { mode: option };
  const problems: Problem[] = [];
  const must = (fits: boolean, path: string, message: string): void => {
    if (!fits) problems.push({ path, message });
  };
  const { mode, network, scratch, hidden, variables, ...unknown } = settings;
  for (const name of Object.keys(unknown)) must(false, name, "is not a field of a sandbox");
  must(
    mode === undefined || SANDBOX_MODES.includes(mode),
    "mode",
    `must be ${SANDBOX_MODES.map((one) => `"${one}"`).join(" or ")}`,
  );
  must(network === undefined || typeof network === "boolean", "network", "must be true or false");
  const isList = (value: unknown, fits: (item: unknown) => boolean): boolean =>
    value === undefined || (Array.isArray(value) && value.every(fits));
  must(isList(scratch, isScratchFolder), "scratch", "must be a list of folders of the workspace");
  must(
    isList(hidden, (path) => typeof path === "string" && isAbsolute(path)),
    "hidden",
    "must be a list of absolute paths",
  );
  must(
    isList(variables, (name) => typeof name === "string" && isPlainVariable(name)),
    "variables",
    "must be a list of variables that no shell, loader or program manager obeys",
  );
  if (problems.length > 0) throw problemsError("sandbox_invalid", "This sandbox cannot be used:", problems);
  return settings;
}

/** Excludes variables that make programs load or run something. */
function isPlainVariable(name: string): boolean {
  return (
    /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name) &&
    !/^(?:PATH|HOME|SHELL|EDITOR|VISUAL|IFS|ENV|PS\d|PROMPT_COMMAND|CDPATH|NODE_OPTIONS|NODE_PATH|PYTHON\w*|PERL\w*|RUBY\w*|BASH\w*|LD_\w+|DYLD_\w+|GIT_\w+|npm_\w+|NPM_\w+|LESS\w*|\w*PAGER)$/i.test(
      name,
    )
  );
}

/** Whether `now` is weaker than the recorded mode. A resume may only keep the mode or make it stricter. */
export function isLowered(recorded: Json | undefined, now: SandboxMode): boolean {
  return SANDBOX_MODES.slice(SANDBOX_MODES.indexOf(now) + 1).some((stricter) => stricter === recorded);
}
