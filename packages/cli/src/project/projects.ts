import { basename } from "node:path";
import { isSluiceError, SluiceError, visible } from "@sluice/core";
import type { ConfigSource } from "@sluice/stages";
import { readSettings, secretMask, stateFolder } from "@sluice/tui/user";
import type { CommandContext } from "../command-context.ts";
import type { RunFlags } from "../runs/run-flags.ts";
import { type CodeDigests, digestCode, findCode, inLine, type ProjectCode } from "./code.ts";
import type { LoadedConfig } from "./load-config.ts";
import type { Finding } from "./pipelines.ts";
import { type ProjectPaths, projectPathsOf, workspaceOf } from "./project-paths.ts";
import { createNamedFiles, createTrust, type NamedFiles, powersOf, type TrustState, trustQuestion } from "./trust.ts";

/** The folders a command works with, as far as their code may be loaded. Each is asked about and loaded at most once. */
export interface Projects {
  /** The workspace and its store. A config that nobody trusted is not loaded for it, which is said. */
  place(): Promise<ProjectPaths>;
  /** The project a run starts in: asks for trust where that is needed and somebody can answer. */
  open(root: string): Promise<Project>;
  /** The project of an earlier run, with its config when the run was started with one. */
  reopen(root: string, earlier: EarlierRun): Promise<Project>;
}
export type Project = Finding & { readonly trusted: boolean };

export interface EarlierRun {
  readonly runId: string;
  readonly config: ConfigSource | undefined;
  /** Goes on although the config was changed. */
  readonly allowChanged: boolean;
}

type Flags = Pick<RunFlags, "cwd" | "store" | "trust" | "config" | "mode">;

/** Puts the question of trust to somebody; undefined where nobody can answer. */
export type AskTrust = (question: string) => Promise<boolean>;

export function createProjects(flags: Flags, context: CommandContext, ask: AskTrust | undefined): Projects {
  const { terminal, env, here } = context;
  const trust = createTrust(env);
  const trusted = flags.trust === true;
  const folders = new Map<string, Folder>();
  const say = (text: string): void => terminal.err(`sluice: ${visible(secretMask(env).text(text))}\n`);
  const files = createNamedFiles(stateFolder(env));
  const named: NamedFiles = {
    holds: files.holds,
    remember: (file, madeOf) => {
      // What a run's tool call names, no person named.
      if (readSettings(env).insideRun !== undefined) return undefined;
      const fault = files.remember(file, madeOf);
      if (fault !== undefined) say(fault);
      return fault;
    },
  };

  const folderAt = (root: string): Folder => {
    const known = folders.get(root);
    if (known !== undefined) return known;
    const made = createFolder(findCode(root), { trust, trusted, ask, say });
    folders.set(root, made);
    return made;
  };
  const projectOf = ({ code, requireTrust }: Folder, config?: LoadedConfig, withoutConfig?: string): Project => {
    if (withoutConfig !== undefined) say(withoutConfig);
    for (const file of code.unread)
      say(`${basename(file)} is not read; a config is sluice.config.ts, .mts, .js or .mjs`);
    return { code, here, config, withoutConfig, requireTrust, trusted, named };
  };

  return {
    async place() {
      const named = flags.store ?? readSettings(env).store;
      const folder = folderAt(workspaceOf(flags, here));
      if (named !== undefined || folder.code.configs.length === 0 || flags.config === false)
        return projectPathsOf(flags, here, { store: named });
      if (await folder.isOpen())
        return projectPathsOf(flags, here, { configured: (await folder.config())?.settings.store });
      if (!folder.wasAsked()) say(`${notTrusted(folder)}; the store is the usual one`);
      return projectPathsOf(flags, here);
    },
    async open(root) {
      const folder = folderAt(root);
      const [config] = folder.code.configs;
      // Its rules may be what the user counts on, and a bundled pipeline is no replacement for theirs.
      if (flags.config !== false && folder.hasLost()) await folder.requireTrust();
      if (config === undefined) return projectOf(folder);
      if (flags.config === false)
        return projectOf(folder, undefined, `${basename(config)} was not loaded (--no-config)`);
      if (await folder.mayLoad()) {
        const loaded = await folder.config();
        const powers = loaded === undefined ? "" : powersOf(loaded.settings, flags);
        if (powers !== "") say(`${basename(config)} decides: ${inLine(powers)}`);
        return projectOf(folder, loaded);
      }
      // Its rules may be what the user counts on: a run goes without them only where they never held.
      if (folder.state().kind === "changed") await folder.requireTrust();
      return projectOf(folder, undefined, notTrusted(folder));
    },
    async reopen(root, { runId, config: recorded, allowChanged }) {
      const folder = folderAt(root);
      const [config] = folder.code.configs;
      if (recorded === undefined) {
        const without = `run ${runId} was started without ${basename(config ?? "")}, and goes on without it`;
        return config === undefined ? projectOf(folder) : projectOf(folder, undefined, without);
      }
      // Without it is another config, too: rules that a run was started with are not gone without a word.
      const wanted = flags.config !== false;
      if (config !== undefined && wanted) await folder.requireTrust();
      const loaded = wanted ? await folder.config() : undefined;
      const changed = changesOf(recorded, loaded);
      if (changed.length > 0 && !allowChanged)
        throw new SluiceError(
          "Validation",
          "config_changed",
          `the config that run ${runId} was started with is not what it was (${changed.join(", ")}); bring it back, or resume with --allow-changed`,
        );
      return projectOf(folder, loaded);
    },
  };
}

/** The code of one folder, and what the user said to it. */
interface Folder {
  readonly code: ProjectCode;
  state(): TrustState;
  /** Whether code that was trusted is not there any more. */
  hasLost(): boolean;
  /** Whether its code may be loaded; asks where somebody can answer. */
  mayLoad(): Promise<boolean>;
  /** The same, without asking anybody. */
  isOpen(): Promise<boolean>;
  /** Whether it was found out already whether its code may be loaded. */
  wasAsked(): boolean;
  /** The digests of what may be loaded. Throws Validation `folder_untrusted`. */
  requireTrust(): Promise<CodeDigests>;
  /** Its config; only to be called when it may be loaded. */
  config(): Promise<LoadedConfig | undefined>;
}

interface FolderOptions {
  readonly trust: ReturnType<typeof createTrust>;
  /** Whether --trust was given. */
  readonly trusted: boolean;
  /** Undefined where nobody can answer. */
  readonly ask: AskTrust | undefined;
  readonly say: (text: string) => void;
}

function createFolder(code: ProjectCode, { trust, trusted, ask, say }: FolderOptions): Folder {
  const { root } = code;
  let digests: CodeDigests | undefined;
  let answer: Promise<boolean> | undefined;
  let loaded: Promise<LoadedConfig | undefined> | undefined;
  const read = (): CodeDigests => {
    digests ??= digestCode(code);
    return digests;
  };
  /** What cannot be trusted at all is unknown, unless it was trusted once. */
  const state = (): TrustState => {
    try {
      return trust.stateOf(root, read());
    } catch (thrown) {
      if (!isSluiceError(thrown, "folder_untrusted") || trust.knows(root) || trusted) throw thrown;
      return { kind: "unknown" };
    }
  };
  const decide = async (): Promise<boolean> => {
    const now = state();
    if (now.kind === "trusted") return true;
    if (!trusted && (ask === undefined || digests === undefined || !(await ask(trustQuestion(root, read(), now)))))
      return false;
    const fault = trust.grant(root, read());
    if (fault !== undefined) say(fault);
    return true;
  };
  const mayLoad = (): Promise<boolean> => {
    answer ??= decide();
    return answer;
  };
  return {
    code,
    state,
    hasLost: () => {
      const now = state();
      return now.kind === "changed" && now.files.some((file) => !read().has(file));
    },
    mayLoad,
    isOpen: async () => (answer === undefined && !trusted ? state().kind === "trusted" : await mayLoad()),
    wasAsked: () => answer !== undefined,
    requireTrust: async () => {
      if (await mayLoad()) return read();
      read();
      throw untrusted(root, state());
    },
    config: () => {
      loaded ??= load(code, read());
      return loaded;
    },
  };
}

/** Loaded when there is a config to read: who only looks at runs waits for none of what that takes. */
async function load(code: ProjectCode, trusted: CodeDigests): Promise<LoadedConfig | undefined> {
  if (code.configs.length === 0) return undefined;
  const { loadConfig } = await import("./load-config.ts");
  return await loadConfig(code, trusted);
}

function untrusted(root: string, state: TrustState): SluiceError {
  const what =
    state.kind === "changed"
      ? `the code of ${root} is not what was trusted (${state.files.map(inLine).join(", ")})`
      : `the pipelines and the config in ${root} are code, and nobody trusted them as they are now`;
  return new SluiceError(
    "Validation",
    "folder_untrusted",
    `${what}; look at them, then say --trust (it is remembered until one of them changes)`,
  );
}

function notTrusted({ code, state }: Folder): string {
  const why =
    state().kind === "changed"
      ? "the code of this folder was changed since it was trusted"
      : "nobody trusted the code of this folder";
  return `${basename(code.configs[0] ?? "")} was not loaded: ${why}; look at it, then say --trust to sluice run`;
}

/** The files of a config that are not as they were recorded. */
function changesOf(recorded: ConfigSource, now: LoadedConfig | undefined): readonly string[] {
  const byPath = (files: ConfigSource["files"]): ReadonlyMap<string, string> =>
    new Map(files.map(({ file, digest }) => [file, digest]));
  const [before, after] = [byPath(recorded.files), byPath(now?.source.files ?? [])];
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((file) => before.get(file) !== after.get(file))
    .sort();
}
