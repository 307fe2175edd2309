import { resolve } from "node:path";
import {
  didYouMean,
  type GuardHook,
  isObject,
  messageOf,
  type Problem,
  parsePattern,
  problemsError,
  type SecurityMode,
  type StateExecutor,
  type Tool,
} from "@sluice/core";
import {
  type McpServers,
  MODEL_PROVIDERS,
  modelFacts,
  type PriceOption,
  readHttpAddress,
  readMcpServers,
  readSandboxSettings,
  type SandboxMode,
  type SandboxSettings,
} from "@sluice/stages";
import type { SluiceConfig } from "./config.ts";
import {
  checkedBy,
  kindOf,
  listOf,
  membersOf,
  oneOf,
  type Read,
  recordOf,
  text,
  textLike,
  that,
  wholeNumber,
} from "./fields.ts";
import { isPipeline, type LoadedPipeline } from "./load.ts";
import { realPath } from "./project-paths.ts";

/** A config whose every field was checked; paths are absolute. */
export interface ProjectSettings {
  readonly model?: string | undefined;
  readonly defaultModels?: Readonly<Record<string, string>> | undefined;
  readonly mode?: SecurityMode | undefined;
  readonly allow?: readonly string[] | undefined;
  readonly maxParallel?: number | undefined;
  readonly sandbox?: SandboxSettings | undefined;
  readonly requestTimeoutMs?: number | undefined;
  readonly store?: string | undefined;
  readonly pipelines: ReadonlyMap<string, LoadedPipeline>;
  readonly defaultPipeline?: string | undefined;
  readonly tools: readonly Tool[];
  readonly mcpServers?: McpServers | undefined;
  readonly executors: readonly StateExecutor[];
  readonly onCall?: GuardHook | undefined;
  readonly protectedPaths: readonly string[];
  readonly secrets: readonly string[];
  readonly passEnv: readonly string[];
  readonly baseUrls: Readonly<Record<string, string>>;
  readonly prices?: Readonly<Record<string, PriceOption>> | undefined;
}

const pattern = textLike((entry) => {
  try {
    parsePattern(entry);
    return undefined;
  } catch (thrown) {
    return messageOf(thrown);
  }
});

/** A value that is a key is said to be none, and never shown. */
const variableName = textLike(
  (name) => (/^[A-Za-z_][A-Za-z0-9_()]{0,127}$/.test(name) ? undefined : "is no name of an environment variable"),
  "write the variable's name, never its value",
);

const address = textLike((value) => {
  const read = readHttpAddress(value);
  if (!read.ok) return read.fault === "not_http" ? "is no http(s) address" : "holds a user name or a password";
  const { search, hash } = read.url;
  return search === "" && hash === "" ? undefined : "has a query or a fragment, which would not be sent";
}, "write one such as https://host/v1; keys come from the environment");

const plainPath = textLike(
  (path) => (/[*?[\]{}!]/.test(path) ? "is a pattern, and would protect nothing" : undefined),
  "name a file or a folder",
);

const provider = (name: string): Omit<Problem, "path"> | undefined => {
  const known = MODEL_PROVIDERS.filter(({ variables }) => variables.length > 0).map((one) => one.name);
  return known.includes(name) ? undefined : { message: "is no provider", suggestion: meantOf(name, known) };
};

const pipelineName = (name: string): Omit<Problem, "path"> | undefined =>
  /^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(name)
    ? undefined
    : { message: "is no name: a letter, then up to 63 letters, digits, _ or -", suggestion: "rename it" };

const isTool = (value: unknown): value is Tool =>
  isObject(value) && typeof value.name === "string" && typeof value.bind === "function" && "schemaDigest" in value;
const isExecutor = (value: unknown): value is StateExecutor =>
  isObject(value) && typeof value.kind === "string" && typeof value.act === "function";
const isFunction = (value: unknown): value is GuardHook => typeof value === "function";

/** One reader a field: a field of SluiceConfig without one does not compile. */
const FIELDS = {
  model: text,
  defaultModels: recordOf(text, provider),
  mode: oneOf(["ask", "allowlist", "yolo"]),
  allow: listOf(pattern),
  maxParallel: wholeNumber,
  sandbox: checkedBy(
    (value): value is SandboxMode | SandboxSettings => typeof value === "string" || isPlain(value),
    readSandboxSettings,
  ),
  requestTimeoutMs: wholeNumber,
  store: text,
  pipelines: recordOf(that(isPipeline, "has to be a pipeline", "give what pipeline({ … }) returns"), pipelineName),
  defaultPipeline: text,
  tools: listOf(that(isTool, "has to be a tool", "give what defineTool({ … }) returns")),
  mcpServers: checkedBy((value): value is McpServers => isPlain(value), readMcpServers),
  executors: listOf(that(isExecutor, "has to be an executor", "an object with kind and act")),
  onCall: that(isFunction, "has to be a function", "(call, ctx) => undefined, or { veto: reason }"),
  protectedPaths: listOf(plainPath),
  secrets: listOf(variableName),
  passEnv: listOf(variableName),
  baseUrls: recordOf(address, provider),
  prices: checkedBy((value): value is Readonly<Record<string, PriceOption>> => isPlain(value), modelFacts),
} satisfies Readonly<Record<keyof SluiceConfig, Read<unknown>>>;

/** What a session has and a project does not decide, with what to use instead. */
const NOT_HERE: Readonly<Record<string, string>> = {
  interactors: "who answers is decided by whoever starts a run",
  wait: "give --wait to sluice run",
  headless: "give --headless to sluice run",
  trust: "no project can trust itself",
  cwd: "the workspace is the folder of this file",
  env: "set the variables where sluice is started",
  clock: "it is for programs",
  onFault: "it is for programs",
};

/**
 * Checks what a config file exports. Throws Validation `config_invalid` with all that is wrong. `known` are the names of the
 * pipelines that are found without it.
 */
export function readConfig(file: string, root: string, value: unknown, known: Iterable<string>): ProjectSettings {
  const members = isPlain(value) ? membersOf(value) : undefined;
  if (members === undefined) {
    const message = `it exports ${kindOf(value)}`;
    throw invalid(file, [{ path: "default", message, suggestion: "write export default defineConfig({ … })" }]);
  }
  const problems: Problem[] = [];
  const given = new Map(members);
  for (const name of given.keys()) if (!Object.hasOwn(FIELDS, name)) problems.push(unknownField(name));
  const read = <T>(name: keyof SluiceConfig, reader: Read<T>): T | undefined =>
    given.has(name) ? reader(given.get(name), name, problems) : undefined;

  const model = read("model", FIELDS.model);
  const store = read("store", FIELDS.store);
  const pipelines = read("pipelines", FIELDS.pipelines) ?? new Map<string, LoadedPipeline>();
  const defaultPipeline = read("defaultPipeline", FIELDS.defaultPipeline);
  const tools = read("tools", FIELDS.tools) ?? [];
  const executors = read("executors", FIELDS.executors) ?? [];
  const settings: ProjectSettings = {
    model: model === undefined ? undefined : fromRoot(model, root),
    defaultModels: asRecord(read("defaultModels", FIELDS.defaultModels)),
    mode: read("mode", FIELDS.mode),
    allow: read("allow", FIELDS.allow),
    maxParallel: read("maxParallel", FIELDS.maxParallel),
    sandbox: given.has("sandbox") ? asSettings(read("sandbox", FIELDS.sandbox)) : undefined,
    requestTimeoutMs: read("requestTimeoutMs", FIELDS.requestTimeoutMs),
    store: store === undefined ? undefined : resolve(root, store),
    pipelines,
    defaultPipeline,
    tools,
    mcpServers: read("mcpServers", FIELDS.mcpServers),
    executors,
    onCall: read("onCall", FIELDS.onCall),
    protectedPaths: (read("protectedPaths", FIELDS.protectedPaths) ?? []).map((path) => realPath(resolve(root, path))),
    secrets: read("secrets", FIELDS.secrets) ?? [],
    passEnv: read("passEnv", FIELDS.passEnv) ?? [],
    baseUrls: asRecord(read("baseUrls", FIELDS.baseUrls)) ?? {},
    prices: read("prices", FIELDS.prices),
  };
  const names = [...pipelines.keys(), ...known];
  if (defaultPipeline !== undefined && !names.includes(defaultPipeline))
    problems.push({
      path: "defaultPipeline",
      message: `there is no pipeline ${JSON.stringify(defaultPipeline)}`,
      suggestion: meantOf(defaultPipeline, names),
    });
  problems.push(
    ...twice(
      "tools",
      tools.map(({ name }) => name),
    ),
    ...twice(
      "executors",
      executors.map(({ kind }) => kind),
    ),
  );
  if (problems.length > 0) throw invalid(file, problems);
  return settings;
}

function invalid(file: string, problems: readonly Problem[]): Error {
  const count = problems.length === 1 ? "a mistake" : `${problems.length} mistakes`;
  return problemsError("config_invalid", `${file} has ${count}:`, problems);
}

function unknownField(name: string): Problem {
  const why = Object.hasOwn(NOT_HERE, name) ? NOT_HERE[name] : undefined;
  if (why !== undefined) return { path: name, message: "is not for a project to decide", suggestion: why };
  return { path: name, message: "is no field of a config", suggestion: meantOf(name, Object.keys(FIELDS)) };
}

function meantOf(word: string, known: readonly string[]): string {
  const close = didYouMean(word, known);
  return close === undefined ? `there is ${known.join(", ")}` : `did you mean ${close}?`;
}

function twice(path: string, names: readonly string[]): readonly Problem[] {
  return names.flatMap((name, at) =>
    names.indexOf(name) === at
      ? []
      : [{ path: `${path}[${at}]`, message: `${JSON.stringify(name)} is there already`, suggestion: "keep one" }],
  );
}

function asSettings(sandbox: SandboxMode | SandboxSettings | undefined): SandboxSettings | undefined {
  return typeof sandbox === "string" ? { mode: sandbox } : sandbox;
}

/** A script is named from the workspace, wherever the user stands. */
function fromRoot(model: string, root: string): string {
  const script = /^scripted:(.+)$/s.exec(model)?.[1];
  return script === undefined ? model : `scripted:${resolve(root, script)}`;
}

function asRecord(map: ReadonlyMap<string, string> | undefined): Readonly<Record<string, string>> | undefined {
  return map === undefined ? undefined : Object.fromEntries(map);
}

/** A Map, a Date or a pipeline is an object too, but none that was written as a config. */
function isPlain(value: unknown): boolean {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
