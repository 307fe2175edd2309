import { existsSync, readdirSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { isSluiceError, SluiceError } from "@sluice/core";
import type { SecurityMode } from "@sluice/core/gate";
import { COMMANDS_FOLDER, visible } from "@sluice/core/runtime";
import type { ConfigSource } from "@sluice/stages";
import { readSettings, secretMask } from "@sluice/tui/user";
import type { CommandContext } from "../command-context.ts";
import {
  asTrusted,
  type CodeDigests,
  digestCode,
  findCode,
  importedFiles,
  inLine,
  type ProjectCode,
  type TrustedCode,
  untrustedFolder,
} from "./code.ts";
import type { LoadedConfig } from "./load-config.ts";
import type { Admit } from "./modules.ts";
import type { Finding } from "./pipelines.ts";
import {
  type ProjectPathOptions,
  type ProjectPaths,
  projectPathsOf,
  usualStore,
  workspaceOf,
} from "./project-paths.ts";
import { createNamedFiles, createTrust, powersOf, type Trust, type TrustState, trustQuestion } from "./trust.ts";

export type Projects = ReturnType<typeof createProjects>;
export type Project = Finding & { readonly trusted: boolean };

export interface EarlierRun {
  readonly runId: string;
  readonly config: ConfigSource | undefined;
  /** Accepts a changed config. */
  readonly allowChanged: boolean;
}

interface Flags extends ProjectPathOptions {
  readonly trust?: boolean;
  /** False ignores the project's config. */
  readonly config?: boolean;
  readonly mode?: SecurityMode;
}

/** Asks the user whether to trust a folder. */
export type AskTrust = (question: string) => Promise<boolean>;

/** The project folders of a command. For each, trust is asked and code is loaded at most once. */
export function createProjects(flags: Flags, context: CommandContext, ask: AskTrust | undefined) {
  const { terminal, env, here } = context;
  const trust = createTrust(env);
  const trusted = flags.trust === true;
  const folders = new Map<string, Folder>();
  const say = (text: string): void => terminal.err(`sluice: ${visible(secretMask(env).text(text))}\n`);
  const named = createNamedFiles(env, say);

  const moveLeftAway: MoveLeftAway = async (root, configured = usualStore(root)) => {
    const { store } = projectPathsOf({ ...flags, store: flags.store ?? readSettings(env).store }, here);
    for (const one of new Set([store, usualStore(root), configured])) {
      const records = join(one, COMMANDS_FOLDER);
      if (!existsSync(records) || readdirSync(records).length === 0) continue;
      const { moveAwayLeft } = await import("@sluice/stages/runtime");
      for (const line of await moveAwayLeft(one, root)) say(line);
    }
  };
  const folderAt = async (root: string): Promise<Folder> => {
    // Its code may be what a command of a killed process left, also after the folder was opened.
    await moveLeftAway(root);
    const known = folders.get(root) ?? createFolder(findCode(root), { trust, trusted, ask, say, moveLeftAway });
    folders.set(root, known);
    return known;
  };
  const projectOf = ({ code, requireTrust }: Folder, config?: LoadedConfig, withoutConfig?: string): Project => {
    if (withoutConfig !== undefined) say(withoutConfig);
    for (const file of code.unread)
      say(`${basename(file)} is ignored; a config is sluice.config.ts, .mts, .js or .mjs`);
    return {
      code,
      here,
      config,
      withoutConfig,
      moveLeftAway: () => moveLeftAway(code.root, config?.settings.store),
      requireTrust,
      trusted,
      named,
    };
  };

  return {
    /** What all others do before they load code of a folder, for a command that loads it itself. */
    moveLeftAway,
    /** The workspace and its store. An untrusted config is not loaded for it, with a notice. */
    async place(): Promise<ProjectPaths> {
      const named = flags.store ?? readSettings(env).store;
      const folder = await folderAt(workspaceOf(flags, here));
      if (named !== undefined || folder.code.configs.length === 0 || flags.config === false)
        return projectPathsOf({ ...flags, store: named }, here);
      if (await folder.isOpen()) return projectPathsOf(flags, here, (await folder.config())?.settings.store);
      if (!folder.wasAsked()) say(`${notTrusted(folder)}; using the default store`);
      return projectPathsOf(flags, here);
    },
    /** The project as it is without asking: its config only if it is trusted already. */
    async look(root: string): Promise<Project> {
      const folder = await folderAt(root);
      const mayLoad = flags.config !== false && folder.code.configs.length > 0 && (await folder.isOpen());
      return projectOf(folder, mayLoad ? await folder.config() : undefined);
    },
    /** The project of a new run; asks the user for trust if required and possible. */
    async open(root: string): Promise<Project> {
      const folder = await folderAt(root);
      const [config] = folder.code.configs;
      // The user may rely on the rules of a removed config, or on a removed pipeline.
      if (flags.config !== false && folder.hasLost()) await folder.requireTrust();
      if (config === undefined) return projectOf(folder);
      if (flags.config === false)
        return projectOf(folder, undefined, `${basename(config)} was not loaded (--no-config)`);
      if (await folder.mayLoad()) {
        const loaded = await folder.config();
        const powers = loaded === undefined ? "" : powersOf(loaded.settings, flags);
        if (powers !== "") say(`${basename(config)} sets ${inLine(powers)}`);
        return projectOf(folder, loaded);
      }
      // The user may rely on the rules of a config that was trusted: a run starts without it only if it never was.
      if (folder.state().kind === "changed") await folder.requireTrust();
      return projectOf(folder, undefined, notTrusted(folder));
    },
    /** The project of an earlier run, with the config if the run was started with one. */
    async reopen(root: string, { runId, config: recorded, allowChanged }: EarlierRun): Promise<Project> {
      const folder = await folderAt(root);
      const [config] = folder.code.configs;
      if (recorded === undefined) {
        const without = `run ${runId} was started without ${basename(config ?? "")}, and continues without it`;
        return config === undefined ? projectOf(folder) : projectOf(folder, undefined, without);
      }
      // No config counts as a changed one: the rules that a run was started with must not disappear silently.
      const wanted = flags.config !== false;
      if (config !== undefined && wanted) await folder.requireTrust();
      const loaded = wanted ? await folder.config() : undefined;
      const changed = changesOf(recorded, loaded);
      if (changed.length > 0 && !allowChanged)
        throw new SluiceError(
          "Validation",
          "config_changed",
          `the config of run ${runId} has changed (${changed.join(", ")}); restore it, or resume with --allow-changed`,
        );
      return projectOf(folder, loaded);
    },
  };
}

interface FolderOptions {
  readonly trust: Trust;
  /** Whether --trust is set. */
  readonly trusted: boolean;
  /** Undefined without a user to ask. */
  readonly ask: AskTrust | undefined;
  readonly say: (text: string) => void;
  readonly moveLeftAway: MoveLeftAway;
}

/**
 * Moves away what commands of killed processes left in a folder, by the records in its stores, and says so. `configured` is the store
 * that its config names. Throws `sandbox_failed` if something could not be moved.
 */
type MoveLeftAway = (root: string, configured?: string) => Promise<void>;

type Folder = ReturnType<typeof createFolder>;

function createFolder(code: ProjectCode, { trust, trusted, ask, say, moveLeftAway }: FolderOptions) {
  const { root } = code;
  let digests: CodeDigests | undefined;
  /** What was trusted now, with the modules that the code imports. */
  let granted: CodeDigests | undefined;
  let answer: Promise<boolean> | undefined;
  let loaded: Promise<LoadedConfig | undefined> | undefined;
  const read = (): CodeDigests => {
    digests ??= trust.codeOf(root, digestCode(code));
    return digests;
  };
  /** Code that cannot be trusted, such as a link, is unknown, unless the folder was trusted before. */
  const state = (): TrustState => {
    try {
      return trust.stateOf(root, read());
    } catch (thrown) {
      if (!isSluiceError(thrown, "folder_untrusted") || trust.knows(root) || trusted) throw thrown;
      return { kind: "unknown" };
    }
  };
  const decide = async (): Promise<boolean> => {
    if (state().kind === "trusted") {
      // --trust also covers what the code computes to import now.
      if (trusted) granted = read();
      return true;
    }
    if (!trusted && (ask === undefined || digests === undefined)) return false;
    const entries = digestCode(code);
    const imported = new Map([...entries, ...importedFiles(entries.keys()), ...entries]);
    digests = new Map([...imported, ...trust.codeOf(root, imported)]);
    if (!trusted && !(await ask?.(trustQuestion(root, read(), state())))) return false;
    trust.grant(root, imported, say);
    granted = imported;
    return true;
  };
  /** Trusted code. Where trust was granted now, it also covers what the code computes to import while it is loaded. */
  const trustedCode = (): TrustedCode => {
    if (granted === undefined) return asTrusted(read(), root);
    const covered = new Map(granted);
    const seen = new Map(read());
    const exact = asTrusted(seen, root);
    const admit: Admit = (module) => {
      const { file, digest, late } = module;
      if (late || seen.has(file)) exact.admit(module);
      if (covered.get(file) === digest) return;
      seen.set(file, digest);
      covered.set(file, digest);
      trust.grant(root, covered, say);
    };
    return { digests: seen, admit };
  };
  const mayLoad = (): Promise<boolean> => {
    answer ??= decide();
    return answer;
  };
  let trustedNow: TrustedCode | undefined;
  const codeNow = (): TrustedCode => {
    trustedNow ??= trustedCode();
    return trustedNow;
  };
  return {
    code,
    state,
    /** Whether trusted code was removed. */
    hasLost: (): boolean => {
      const current = state();
      return current.kind === "changed" && current.files.some((file) => !read().has(file));
    },
    /** Whether its code may be loaded; asks the user if possible. */
    mayLoad,
    /** The same, without asking. */
    isOpen: async (): Promise<boolean> =>
      answer === undefined && !trusted ? state().kind === "trusted" : await mayLoad(),
    /** Whether `mayLoad` has been called. */
    wasAsked: (): boolean => answer !== undefined,
    /** Its trusted code. Throws Validation `folder_untrusted`. */
    requireTrust: async (): Promise<TrustedCode> => {
      if (await mayLoad()) return codeNow();
      throw untrusted(root, state(), read());
    },
    /** Its config; only to be called if its code may be loaded. */
    config: (): Promise<LoadedConfig | undefined> => {
      loaded ??= load(code, codeNow(), moveLeftAway);
      return loaded;
    },
  };
}

/** Imports the config reader on demand: commands that only read runs do not need it. */
async function load(
  code: ProjectCode,
  trusted: TrustedCode,
  moveLeftAway: MoveLeftAway,
): Promise<LoadedConfig | undefined> {
  if (code.configs.length === 0) return undefined;
  const { loadConfig } = await import("./load-config.ts");
  const loaded = await loadConfig(code, trusted);
  // Only the config names this store.
  if (loaded?.settings.store !== undefined) await moveLeftAway(code.root, loaded.settings.store);
  return loaded;
}

function untrusted(root: string, state: TrustState, code: CodeDigests): SluiceError {
  const changed = state.kind === "changed";
  const files = (changed ? state.files : [...code.keys()]).map((file) => inLine(relative(root, file)));
  const named = `${files.slice(0, MOST_NAMED).join(", ")}${files.length > MOST_NAMED ? ", …" : ""}`;
  const what = changed
    ? "files have changed since they were trusted"
    : "the files that decide what runs are not trusted";
  return untrustedFolder(
    `in ${root}, ${what}: ${named}; review them, then use --trust (remembered until one of them changes)`,
  );
}

const MOST_NAMED = 8;

function notTrusted({ code, state }: Folder): string {
  const why =
    state().kind === "changed"
      ? "the code of this folder changed since it was trusted"
      : "the code of this folder is not trusted";
  return `${basename(code.configs[0] ?? "")} was not loaded: ${why}; review it, then use sluice run --trust`;
}

/** The files of a config that differ from the record. */
function changesOf(recorded: ConfigSource, loaded: LoadedConfig | undefined): readonly string[] {
  const byPath = (files: ConfigSource["files"]): ReadonlyMap<string, string> =>
    new Map(files.map(({ file, digest }) => [file, digest]));
  const [before, after] = [byPath(recorded.files), byPath(loaded?.source.files ?? [])];
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((file) => before.get(file) !== after.get(file))
    .sort();
}
