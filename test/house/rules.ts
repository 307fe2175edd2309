import { isBuiltin } from "node:module";
import { posix } from "node:path";
import type { SourceFile } from "./sources.ts";

/** What a package may import of the others. A package that is not listed breaks the rule. */
const packageDirection: Readonly<Record<string, readonly string[]>> = {
  core: [],
  stages: ["core"],
  sqlite: ["core"],
  view: ["core", "stages"],
  workflows: ["core", "stages"],
  gateway: ["core", "stages", "view"],
  tui: ["core", "stages", "view", "workflows"],
  cli: ["core", "stages", "sqlite", "view", "workflows", "gateway", "tui"],
};

/** What a folder of core may import of the others. The four in the middle do not know each other. */
const coreDirection: Readonly<Record<string, readonly string[]>> = {
  base: [],
  schema: ["base"],
  definition: ["schema", "base"],
  machine: ["definition", "schema", "base"],
  gate: ["definition", "schema", "base"],
  people: ["definition", "schema", "base"],
  journal: ["definition", "schema", "base"],
  run: ["gate", "machine", "people", "journal", "definition", "schema", "base"],
  testing: ["journal", "base"],
};

/** The same for the stages: a session stands on all others. */
const stagesDirection: Readonly<Record<string, readonly string[]>> = {
  secrets: [],
  models: ["secrets"],
  tools: ["models", "secrets"],
  sandbox: ["tools"],
  agent: ["models", "secrets"],
  kinds: ["secrets", "tools"],
  telemetry: ["agent"],
  opentelemetry: ["telemetry"],
  history: ["agent", "models", "sandbox", "tools"],
  session: ["agent", "history", "kinds", "models", "sandbox", "secrets", "telemetry", "tools"],
  replay: ["agent", "history", "kinds", "models", "secrets", "session", "tools"],
  testing: ["models", "session"],
  pipelines: ["kinds"],
};

/** The same for the view: text and words know no run, the projection no HTML. */
const viewDirection: Readonly<Record<string, readonly string[]>> = {
  text: [],
  words: ["text"],
  projection: ["words"],
  html: ["projection", "words", "text"],
};

/** The same for the app: what a key does is decided without the screen, what runs do without the app. */
const tuiDirection: Readonly<Record<string, readonly string[]>> = {
  user: [],
  run: [],
  composer: ["user"],
  cards: ["composer", "user"],
  app: ["cards", "composer", "run", "user"],
  commands: ["app", "cards", "run", "user"],
  screen: ["app", "cards", "commands", "composer", "run", "user"],
};

/** The same for the command. */
const cliDirection: Readonly<Record<string, readonly string[]>> = {
  output: [],
  project: [],
  notify: ["project"],
  runs: ["notify", "output", "project"],
  waking: ["output", "project", "runs"],
  commands: ["output", "project", "runs", "waking"],
};

/** The same for the gateway: a run knows no protocol, and a host is started with what the protocols need. */
const gatewayDirection: Readonly<Record<string, readonly string[]>> = {
  run: [],
  mcp: ["run"],
  hooks: ["mcp", "run"],
  hosts: ["hooks", "mcp", "run"],
  acp: ["hosts", "mcp", "run"],
};

const folderDirection: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  core: coreDirection,
  stages: stagesDirection,
  view: viewDirection,
  tui: tuiDirection,
  gateway: gatewayDirection,
  cli: cliDirection,
};

/** The files that may hand on what others define: each is an entry of its package. */
const entries = new Set([
  "packages/core/src/index.ts",
  "packages/core/src/gate.ts",
  "packages/core/src/host.ts",
  "packages/core/src/machine.ts",
  "packages/core/src/runtime.ts",
  "packages/core/src/schemas.ts",
  "packages/core/src/testing.ts",
  "packages/stages/src/index.ts",
  "packages/stages/src/testing.ts",
  "packages/stages/src/opentelemetry.ts",
  "packages/stages/src/runtime.ts",
  "packages/stages/src/tools.ts",
  "packages/stages/src/pipelines.ts",
  "packages/sqlite/src/index.ts",
  "packages/view/src/index.ts",
  "packages/workflows/src/index.ts",
  "packages/gateway/src/index.ts",
  "packages/view/src/records.ts",
  "packages/view/src/routes.ts",
  "packages/view/src/words.ts",
  "packages/view/src/text.ts",
  "packages/view/src/html.ts",
  "packages/tui/src/index.ts",
  "packages/tui/src/user.ts",
  "packages/cli/src/index.ts",
]);

/** Whether a file is an entry of its package. */
export function isPackageEntry(path: string): boolean {
  return entries.has(path);
}

/** Modules that only some places may know: what they let in or out is in one folder to read. */
const confined: readonly { readonly module: RegExp; readonly only: readonly string[] }[] = [
  {
    module: /^(ai|@ai-sdk\/.*)$/,
    only: [
      "packages/stages/src/models/",
      "packages/stages/src/tools/mcp/",
      "packages/stages/src/agent/",
      "packages/gateway/src/run/",
      "packages/gateway/src/acp/external/",
    ],
  },
  // A peer that most do without: nothing that they load may ask for it.
  { module: /^@opentelemetry\//, only: ["packages/stages/src/opentelemetry/"] },
  { module: /^node:sqlite$/, only: ["packages/sqlite/src/"] },
  { module: /^@modelcontextprotocol\//, only: ["packages/gateway/src/mcp/"] },
  { module: /^@agentclientprotocol\//, only: ["packages/gateway/src/acp/"] },
  // What the screen shows and what keys do is decided without them, and tested without a screen.
  { module: /^(ink|react)(\/.*)?$/, only: ["packages/tui/src/screen/"] },
];

/** Rooms that only their own entry may bring in: what they import is not there for everybody. */
const ownEntryOnly: Readonly<Record<string, string>> = {
  "packages/stages/src/opentelemetry/": "packages/stages/src/opentelemetry.ts",
};

/** Entries beside the main one that sources may import. */
const lightEntries = new Set([
  "@sluice/core/host",
  "@sluice/core/gate",
  "@sluice/core/machine",
  "@sluice/core/runtime",
  "@sluice/stages/pipelines",
  "@sluice/stages/runtime",
  "@sluice/stages/tools",
  "@sluice/stages/environment-secrets",
  "@sluice/view/records",
  "@sluice/view/routes",
  "@sluice/view/words",
  "@sluice/view/text",
  "@sluice/view/html",
  "@sluice/tui/user",
]);

/** Core decides; files, processes and the network are for those above it. */
const outsideOfCore = /^node:(fs|child_process|cluster|dgram|http|http2|https|net|tls|worker_threads)(\/.*)?$/;

/** The dependencies a package declares, by its folder's name. */
export type Manifests = Readonly<Record<string, { readonly dependencies: readonly string[] }>>;

/** Each breach of the import rules in a file, as one line; none when the file keeps them. */
export function breachesOf(file: SourceFile, manifests: Manifests): readonly string[] {
  const [, packageName = "", , ...inside] = file.path.split("/");
  const folder = inside.length > 1 ? inside[0] : undefined;
  const breaches: string[] = [];
  const breach = (text: string): void => void breaches.push(`${file.path}: ${text}`);

  if (packageDirection[packageName] === undefined) breach(`the package ${packageName} has no import rule`);
  const directions = folderDirection[packageName];
  if (directions !== undefined && folder !== undefined && directions[folder] === undefined) {
    breach(`the folder ${folder} has no import rule`);
  }
  if (packageName === "core" && folder === undefined && !entries.has(file.path)) {
    breach("a file of core that is not an entry belongs in a folder");
  }
  if (packageName === "core" && file.computedImports > 0) breach("an import() of a computed name");
  if (file.exportsDefault) breach("a default export");
  if (!entries.has(file.path)) {
    for (const name of file.reExports) breach(`re-exports ${name}; only a package's entry does`);
    if (/^index\.[a-z]+$/.test(posix.basename(file.path))) breach("a barrel that is not the package's entry");
  }

  for (const specifier of file.imports) {
    const fault = specifier.startsWith(".")
      ? relativeFault(file.path, packageName, folder, specifier)
      : externalFault(file.path, packageName, normalized(specifier), manifests);
    if (fault !== undefined) breach(`imports ${specifier}: ${fault}`);
  }
  return breaches;
}

function relativeFault(path: string, packageName: string, folder: string | undefined, specifier: string) {
  const target = posix.join(posix.dirname(path), specifier);
  const source = `packages/${packageName}/src/`;
  if (!target.startsWith(source)) return "it leaves the package's src; import the package by its name";
  if (entries.has(target)) return "an entry imports the inside, never the other way";
  const apart = Object.entries(ownEntryOnly).find(([room]) => target.startsWith(room) && !path.startsWith(room));
  if (apart !== undefined && apart[1] !== path) return `only ${apart[1]} may`;
  const directions = folderDirection[packageName];
  if (directions === undefined || folder === undefined) return undefined;
  const [targetFolder = "", ...inside] = target.slice(source.length).split("/");
  // Beside the folders of core there are entries only, which are refused above.
  if (inside.length === 0 || targetFolder === folder || directions[folder]?.includes(targetFolder)) return undefined;
  return `${folder} may import ${list(directions[folder] ?? [])}`;
}

function externalFault(path: string, packageName: string, specifier: string, manifests: Manifests) {
  const place = confined.find(({ module }) => module.test(specifier));
  if (place !== undefined && !place.only.some((prefix) => path.startsWith(prefix))) {
    return `only ${place.only.join(", ")} may`;
  }
  if (packageName === "core" && outsideOfCore.test(specifier)) return "core knows no files, processes or network";
  if (specifier.startsWith("node:")) return undefined;

  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  if (name.startsWith("@sluice/")) {
    const allowed = packageDirection[packageName] ?? [];
    if (!allowed.includes(name.slice("@sluice/".length))) return `${packageName} may import ${list(allowed)}`;
    if (specifier !== name && !lightEntries.has(specifier)) return "src imports a package by its main entry";
  }
  return manifests[packageName]?.dependencies.includes(name) ? undefined : "not a dependency of the package";
}

function normalized(specifier: string): string {
  return !specifier.startsWith("node:") && isBuiltin(specifier) ? `node:${specifier}` : specifier;
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "nothing" : `only ${names.join(", ")}`;
}
