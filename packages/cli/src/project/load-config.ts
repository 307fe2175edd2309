import { basename, resolve } from "node:path";
import {
  type Clock,
  type GuardHook,
  type Interactor,
  type Problem,
  type ProviderRetry,
  SluiceError,
  type StateExecutor,
  type Tool,
} from "@sluice/core";
import { parsePattern } from "@sluice/core/gate";
import {
  checkProviderFaults,
  createReport,
  didYouMean,
  isObject,
  messageOf,
  problemsError,
  SECURITY_MODES,
} from "@sluice/core/runtime";
import type { ConfigSource, McpServers, PriceOption, SandboxMode, SandboxSettings } from "@sluice/stages";
import {
  MODEL_PROVIDERS,
  modelFacts,
  readHttpAddress,
  readMcpServers,
  readSandboxSettings,
} from "@sluice/stages/runtime";
import { bundled } from "./bundled.ts";
import { fileDigests, fileStem, isPipelineName, type ProjectCode, type TrustedCode } from "./code.ts";
import type { SluiceConfig } from "./config.ts";
import {
  checkedBy,
  kindOf,
  listOf,
  mapped,
  membersOf,
  oneOf,
  type Read,
  recordOf,
  text,
  textLike,
  that,
  wholeNumber,
} from "./fields/fields.ts";
import { notifyOption } from "./fields/notify-option.ts";
import { configFieldPlace } from "./load/field-place.ts";
import { isPipeline, type LoadedPipeline, type LoadFailure, loadModule } from "./load/load.ts";
import { realPath } from "./project-paths.ts";

type Lists = "tools" | "executors" | "interactors" | "notify" | "protectedPaths" | "secrets" | "passEnv" | "baseUrls";

/** A validated config with absolute paths. */
export interface ProjectSettings
  extends Omit<SluiceConfig, Lists | "sandbox" | "pipelines">,
    Required<Pick<SluiceConfig, Lists>> {
  readonly sandbox?: SandboxSettings;
  readonly pipelines: ReadonlyMap<string, LoadedPipeline>;
}

export interface LoadedConfig {
  /** Absolute, links resolved. */
  readonly file: string;
  readonly settings: ProjectSettings;
  /** What runs record of it: the file, and the digests of all its code. */
  readonly source: ConfigSource;
  /** Absolute paths that determine what is loaded next time; no run may write them. */
  readonly code: readonly string[];
}

/**
 * Loads the config of a folder in its trusted version; undefined if there is none. Throws Validation `config_ambiguous`,
 * `config_load_failed`, `config_invalid` or `folder_untrusted`, or the SluiceError that its code throws.
 */
export async function loadConfig(
  code: ProjectCode,
  { admit, digests }: TrustedCode,
  clock?: Clock,
): Promise<LoadedConfig | undefined> {
  const [file, ...others] = code.configs;
  if (file === undefined) return undefined;
  if (others.length > 0) {
    const names = code.configs.map((path) => basename(path)).join(" and ");
    throw new SluiceError("Validation", "config_ambiguous", `${names} are both in ${code.root}; keep only one`);
  }
  const failed: LoadFailure = (message, of) => new SluiceError("Validation", "config_load_failed", message, of);
  const { exports, files, deciding } = await loadModule(file, admit, failed, clock);
  const known = [...[...code.pipelines, ...code.workflows].map(fileStem), ...bundled().keys()];
  const settings = readConfig(file, code.root, exports.default, known);
  return { file, settings, source: { file, files: fileDigests(files) }, code: [...deciding, ...digests.keys()] };
}

const pattern = textLike((entry) => {
  try {
    parsePattern(entry);
    return undefined;
  } catch (thrown) {
    return messageOf(thrown);
  }
});

/** A key in the place of its variable's name is rejected without showing it. */
const variableName = textLike(
  (name) => (/^[A-Za-z_][A-Za-z0-9_()]{0,127}$/.test(name) ? undefined : "is not the name of an environment variable"),
  "write the variable's name, never its value",
);

const address = textLike((value) => {
  const read = readHttpAddress(value);
  if (!read.ok) return read.fault === "not_http" ? "is not an http(s) address" : "contains a user name or a password";
  const { search, hash } = read.url;
  return search === "" && hash === "" ? undefined : "has a query or a fragment, which is not sent";
}, "use an address such as https://host/v1; keys come from the environment");

const plainPath = textLike(
  (path) => (/[*?[\]{}!]/.test(path) ? "is a pattern, which protects nothing" : undefined),
  "name a file or a folder",
);

const provider = (name: string): Omit<Problem, "path"> | undefined => {
  const known = MODEL_PROVIDERS.filter(({ variables }) => variables.length > 0).map((one) => one.name);
  return known.includes(name) ? undefined : { message: "is not a provider", suggestion: suggestionFor(name, known) };
};

const pipelineName = (name: string): Omit<Problem, "path"> | undefined =>
  isPipelineName(name)
    ? undefined
    : { message: "is not a valid name: use a letter, then up to 63 letters, digits, _ or -", suggestion: "rename it" };

const isTool = (value: unknown): value is Tool =>
  isObject(value) && typeof value.name === "string" && typeof value.bind === "function" && "schemaDigest" in value;
const isExecutor = (value: unknown): value is StateExecutor =>
  isObject(value) && typeof value.kind === "string" && typeof value.act === "function";
const isInteractor = (value: unknown): value is Interactor =>
  isObject(value) && typeof value.name === "string" && value.name.trim() !== "" && typeof value.answer === "function";
const isFunction = (value: unknown): value is GuardHook => typeof value === "function";

/** Throws for invalid settings, with which a pipeline would be refused too. */
function checkRetry(retry: ProviderRetry): void {
  const report = createReport();
  checkProviderFaults(report, { retry });
  if (report.problems.length > 0) throw problemsError("config_invalid", "retry:", report.problems);
}

type AllSettings = Required<ProjectSettings>;

const FIELDS: { readonly [Name in keyof AllSettings]: Read<AllSettings[Name]> } = {
  model: text,
  defaultModels: mapped(recordOf(text, provider), (map) => Object.fromEntries(map)),
  mode: oneOf(SECURITY_MODES),
  allow: listOf(pattern),
  maxParallel: wholeNumber,
  sandbox: mapped(
    checkedBy(
      (value): value is SandboxMode | SandboxSettings => typeof value === "string" || isPlain(value),
      readSandboxSettings,
    ),
    (sandbox) => (typeof sandbox === "string" ? { mode: sandbox } : sandbox),
  ),
  requestTimeoutMs: wholeNumber,
  retry: checkedBy((value): value is ProviderRetry => isPlain(value), checkRetry),
  onProviderFault: oneOf(["suspend", "fail"]),
  store: text,
  pipelines: recordOf(that(isPipeline, "must be a pipeline", "use the result of pipeline({ … })"), pipelineName),
  defaultPipeline: text,
  tools: listOf(that(isTool, "must be a tool", "use the result of defineTool({ … })")),
  mcpServers: checkedBy((value): value is McpServers => isPlain(value), readMcpServers),
  executors: listOf(that(isExecutor, "must be an executor", "use an object with kind and act")),
  interactors: listOf(that(isInteractor, "must be an interactor", "use callbackInteractor(name, (request) => …)")),
  notify: listOf(notifyOption),
  onCall: that(isFunction, "must be a function", "(call, ctx) => undefined, or { veto: reason }"),
  protectedPaths: listOf(plainPath),
  secrets: listOf(variableName),
  passEnv: listOf(variableName),
  baseUrls: mapped(recordOf(address, provider), (map) => Object.fromEntries(map)),
  prices: checkedBy((value): value is Readonly<Record<string, PriceOption>> => isPlain(value), modelFacts),
};

const isField = (name: string): name is keyof ProjectSettings => Object.hasOwn(FIELDS, name);

/** Fields of a session that its starter decides, with what to do instead. */
const NOT_IN_CONFIG: Readonly<Record<string, string>> = {
  wait: "use sluice run --wait",
  headless: "use sluice run --headless",
  trust: "a project cannot trust itself",
  cwd: "the workspace is the folder of this file",
  env: "set environment variables before you start sluice",
  clock: "use a session in a program",
  onFault: "use a session in a program",
};

/**
 * Validates the exports of a config file; `known` are the names of pipelines outside of it. Throws Validation `config_invalid`
 * with all problems.
 */
function readConfig(file: string, root: string, value: unknown, known: Iterable<string>): ProjectSettings {
  const members = isPlain(value) ? membersOf(value) : undefined;
  if (members === undefined) {
    const message = `it exports ${kindOf(value)}`;
    throw invalid(file, [{ path: "default", message, suggestion: "write export default defineConfig({ … })" }]);
  }
  const problems: Problem[] = [];
  const found: { -readonly [Name in keyof AllSettings]?: AllSettings[Name] } = {};
  const read = <Name extends keyof AllSettings>(name: Name, member: unknown): void => {
    const setting: AllSettings[Name] | undefined = FIELDS[name](member, name, problems);
    if (setting !== undefined) found[name] = setting;
  };
  for (const [name, member] of members) {
    if (isField(name)) read(name, member);
    else {
      const why = Object.hasOwn(NOT_IN_CONFIG, name) ? NOT_IN_CONFIG[name] : undefined;
      const unknown = { message: "is not a field of a config", suggestion: suggestionFor(name, Object.keys(FIELDS)) };
      problems.push({
        path: name,
        ...(why === undefined ? unknown : { message: "cannot be set in a config", suggestion: why }),
      });
    }
  }
  const {
    model = "",
    store,
    pipelines = new Map<string, LoadedPipeline>(),
    defaultPipeline,
    tools = [],
    executors = [],
    interactors = [],
  } = found;
  const script = /^scripted:(.+)$/s.exec(model)?.[1];
  // Script files are relative to the workspace, whatever the current folder.
  if (script !== undefined) found.model = `scripted:${resolve(root, script)}`;
  if (store !== undefined) found.store = resolve(root, store);
  const protectedPaths = (found.protectedPaths ?? [])
    .map((path) => resolve(root, path))
    .flatMap((path) => [...new Set([path, realPath(path)])]);
  const names = [...pipelines.keys(), ...known];
  if (defaultPipeline !== undefined && !names.includes(defaultPipeline))
    problems.push({
      path: "defaultPipeline",
      message: `there is no pipeline ${JSON.stringify(defaultPipeline)}`,
      suggestion: suggestionFor(defaultPipeline, names),
    });
  const toolNames = tools.map(({ name }) => name);
  const kinds = executors.map(({ kind }) => kind);
  const interactorNames = interactors.map(({ name }) => name);
  problems.push(
    ...duplicates("tools", toolNames),
    ...duplicates("executors", kinds),
    ...duplicates("interactors", interactorNames),
    ...namesOfOthers(interactorNames),
  );
  if (problems.length > 0) throw invalid(file, problems);
  return {
    secrets: [],
    notify: [],
    passEnv: [],
    baseUrls: {},
    ...found,
    pipelines,
    tools,
    executors,
    interactors,
    protectedPaths,
  };
}

function invalid(file: string, problems: readonly Problem[]): Error {
  const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
  const at = configFieldPlace(file, problems[0]?.path ?? "");
  return problemsError("config_invalid", `${file} has ${count}:`, problems, at);
}

function suggestionFor(word: string, known: readonly string[]): string {
  const close = didYouMean(word, known);
  return close === undefined ? `use one of ${known.join(", ")}` : `did you mean "${close}"?`;
}

function duplicates(path: string, names: readonly string[]): readonly Problem[] {
  return names.flatMap((name, index) =>
    names.indexOf(name) === index
      ? []
      : [{ path: `${path}[${index}]`, message: `${JSON.stringify(name)} is a duplicate`, suggestion: "keep one" }],
  );
}

/** An answer is recorded with a name: these are the names of people at a screen, and of the queue itself. */
const NAMES_OF_OTHERS = ["terminal", "app", "editor", "queue"];

function namesOfOthers(names: readonly string[]): readonly Problem[] {
  return names.flatMap((name, index) =>
    NAMES_OF_OTHERS.includes(name)
      ? [
          {
            path: `interactors[${index}]`,
            message: `the name ${JSON.stringify(name)} is taken`,
            suggestion: "rename it",
          },
        ]
      : [],
  );
}

/** Whether a value is an object literal, unlike a Map, a Date or a pipeline. */
function isPlain(value: unknown): boolean {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
