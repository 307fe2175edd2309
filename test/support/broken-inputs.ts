// Inputs with one mistake each, as people make them, with the command that meets the mistake.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface BrokenInput {
  readonly name: string;
  /** `<run>` is the last run of the commands before. */
  readonly args: readonly string[];
  readonly exit: number;
  readonly files?: Readonly<Record<string, string>>;
  /** `closed` is the address of a port at which nothing listens. */
  readonly env?: (server: string, closed: string) => Readonly<Record<string, string>>;
  /** Arguments of Node itself. */
  readonly node?: readonly string[];
  /** Commands that come before it and succeed, or what else the folder needs. */
  readonly before?: readonly (readonly string[])[];
  readonly prepare?: (folder: string) => void;
}

/** A pipeline of one stage, with one part replaced by something broken. */
function pipelineFile(
  part: { stage?: string; imports?: string; next?: string; options?: string; schema?: string } = {},
): string {
  const {
    stage = "",
    imports = "",
    next = "{ plan: ({ output }) => done(output) }",
    options = "",
    schema = "z.object({ steps: z.array(z.string()) })",
  } = part;
  return `import { done, pipeline, stage, to } from "@sluice/core";
import { z } from "zod";
${imports}
const plan = stage({
  prompt: "Plan it.",
  allowedTools: [],
  completionTool: "submit",
  completionSchema: ${schema},
  turnCap: 2,
  retry: { maxAttempts: 1 },
  ${stage}
});

export const planned = pipeline({
  id: "planned",
  input: z.object({ task: z.string() }),
  stages: { plan },
  initial: "plan",
  next: ${next},
  ${options}
});
`;
}

const SUBMIT = { calls: [{ tool: "submit", input: { steps: ["one"] } }] };
const script = JSON.stringify({ stages: { plan: [SUBMIT, SUBMIT] } });
const RUN = ["run", "planned.ts", "tidy up", "--headless"];
const SCRIPTED = [...RUN, "--model", "scripted:script.json"];
const failingParts = `export function stepsOf(task: { steps?: string[] }): string {
  const first = task.steps;
  return first.join(", ");
}
`;
const withScript = (planned: string, more: Readonly<Record<string, string>> = {}) => ({
  "planned.ts": planned,
  "script.json": script,
  ...more,
});
const trusted = ["run", "codeReview", "tidy up", "--headless", "--trust", "--model", "scripted:script.json"];
const config = (text: string, more: Readonly<Record<string, string>> = {}) => ({
  "sluice.config.ts": text,
  "script.json": script,
  ...more,
});

const CONFIGS: readonly BrokenInput[] = [
  {
    name: "a config with a syntax error",
    args: trusted,
    exit: 2,
    files: config(
      'import { defineConfig } from "@sluice/cli";\n\nexport default defineConfig({\n  mode: "ask"\n  model: "x",\n});\n',
    ),
  },
  {
    name: "a config with a field of the wrong type",
    args: trusted,
    exit: 2,
    files: config('export default {\n  maxParallel: "four",\n};\n'),
  },
  {
    name: "a config with an unknown field",
    args: trusted,
    exit: 2,
    files: config("export default {\n  maxParalel: 4,\n};\n"),
  },
  {
    name: "a config whose import throws",
    args: trusted,
    exit: 2,
    files: config('import { mode } from "./.sluice/workflows/settings.ts";\n\nexport default { mode };\n', {
      ".sluice/workflows/settings.ts":
        "const found: { team?: { mode: string } } = {};\n\nexport const mode = found.team.mode;\n",
    }),
  },
  {
    name: "a config that imports a missing file",
    args: trusted,
    exit: 2,
    files: config('import { tools } from "./.sluice/workflows/tools.ts";\n\nexport default { tools };\n', {
      ".sluice/workflows/tool.ts": "export const tools = [];\n",
    }),
  },
  {
    name: "a config that imports a package that is not installed",
    args: trusted,
    exit: 2,
    files: config('import { load } from "dotenv-of-mine";\n\nexport default { model: load() };\n', {
      "package.json": "{}",
    }),
  },
  {
    name: "a config without a default export",
    args: trusted,
    exit: 2,
    files: config('export const config = { mode: "ask" };\n'),
  },
  {
    name: "a config with invalid prices",
    args: trusted,
    exit: 2,
    files: config('export default {\n  prices: { "acme/large": { input: "3", output: 15 } },\n};\n'),
  },
  {
    name: "a config that throws a text",
    args: trusted,
    exit: 2,
    files: config('throw "no team is set";\n'),
  },
];

const LOADING: readonly BrokenInput[] = [
  {
    name: "a pipeline with an enum",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ imports: "\nexport enum Mode { Fast, Slow }\n" })),
  },
  {
    name: "a pipeline that imports a name that is misspelled",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ imports: 'import { stepOf } from "./parts.ts";' }), { "parts.ts": failingParts }),
  },
  {
    name: "a pipeline that imports a type as a value",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ imports: 'import { Parts } from "./parts.ts";' }), {
      "parts.ts": "export interface Parts { readonly steps: string[] }\n",
    }),
  },
  {
    name: "a pipeline that imports a .tsx file",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ imports: 'import { page } from "./page.tsx";' }), {
      "page.tsx": "export const page = <p>steps</p>;\n",
    }),
  },
  {
    name: "a pipeline that calls require",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ imports: 'const fs = require("node:fs");' })),
  },
  {
    name: "a pipeline that imports JSON as code",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ imports: 'import parts from "./parts.json";' }), { "parts.json": "{}\n" }),
  },
  {
    name: "a pipeline that imports damaged JSON",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ imports: 'import parts from "./parts.json" with { type: "json" };' }), {
      "parts.json": '{\n  "steps": [1,]\n}\n',
    }),
  },
  {
    name: "a pipeline with an error in an imported file, with its cause",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ imports: 'import "./parts.ts";' }), {
      "parts.ts":
        'function settings(): unknown {\n  try {\n    return JSON.parse("{ steps }");\n  } catch (cause) {\n    throw new Error("the settings cannot be read", { cause });\n  }\n}\n\nexport const all = settings();\n',
    }),
  },
];

const DEFINITIONS: readonly BrokenInput[] = [
  {
    name: "a pipeline whose initial state does not exist",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile().replace('initial: "plan"', 'initial: "plann"')),
  },
  {
    name: "a route to a state that does not exist",
    args: SCRIPTED,
    exit: 1,
    files: withScript(pipelineFile({ next: '{ plan: () => to("review") }' })),
  },
  {
    name: "a schema that is not JSON",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ schema: "z.object({ due: z.date() })" })),
  },
  {
    name: "a schema of an object that is no schema",
    args: SCRIPTED,
    exit: 2,
    files: withScript(pipelineFile({ schema: "{ steps: z.array(z.string()) }" })),
  },
];

const HOOKS: readonly BrokenInput[] = [
  {
    name: "a prompt that throws in an imported file",
    args: SCRIPTED,
    exit: 1,
    files: withScript(
      pipelineFile({ imports: 'import { stepsOf } from "./parts.ts";', stage: "prompt: () => stepsOf({})," }).replace(
        '  prompt: "Plan it.",\n',
        "",
      ),
      { "parts.ts": failingParts },
    ),
  },
  {
    name: "a precondition that throws later",
    args: SCRIPTED,
    exit: 1,
    files: withScript(
      pipelineFile({
        stage:
          'precondition: async () => {\n    await Promise.resolve();\n    throw new RangeError("the disk is full");\n  },',
      }),
    ),
  },
  {
    name: "an assert that returns nonsense",
    args: SCRIPTED,
    exit: 1,
    files: withScript(pipelineFile({ stage: "assert: () => true as never," })),
  },
  {
    name: "an exit hook that throws",
    args: SCRIPTED,
    exit: 1,
    files: withScript(pipelineFile({ stage: 'exit: () => { throw new Error("cannot clean up"); },' })),
  },
  {
    name: "a route that throws",
    args: SCRIPTED,
    exit: 1,
    files: withScript(pipelineFile({ next: '{ plan: ({ output }) => done(output.step.join(" ")) }' })),
  },
  {
    name: "a route that returns nonsense",
    args: SCRIPTED,
    exit: 1,
    files: withScript(pipelineFile({ next: '{ plan: () => "review" as never }' })),
  },
  {
    name: "a condition of a table that throws",
    args: SCRIPTED,
    exit: 1,
    files: withScript(
      pipelineFile().replace(
        "next: { plan: ({ output }) => done(output) }",
        'transitions: [{ from: "plan", on: "success", when: ({ result }) => result.output.step.length > 0, to: done(null) }]',
      ),
    ),
  },
  {
    name: "an executor that throws",
    args: [...SCRIPTED, "--trust"],
    exit: 4,
    files: withScript(
      pipelineFile({ imports: 'import { custom } from "./parts.ts";' }).replace(
        "stages: { plan }",
        "stages: { plan: custom }",
      ),
      {
        "parts.ts":
          'import { state, type StateExecutor } from "@sluice/core";\nimport { z } from "zod";\n\nexport const count: StateExecutor = {\n  kind: "count",\n  act: async () => {\n    throw new TypeError("nothing to count");\n  },\n};\nexport const custom = state({ kind: "count", output: z.object({ count: z.number() }) });\n',
        "sluice.config.ts": 'import { count } from "./parts.ts";\n\nexport default { executors: [count] };\n',
      },
    ),
  },
  {
    name: "a tool of the config that throws",
    args: [...SCRIPTED, "--trust"],
    exit: 1,
    files: {
      "planned.ts": pipelineFile({
        stage: 'allowedTools: ["Count"], assert: () => ({ fail: "nothing was counted" }),',
      }).replace("  allowedTools: [],\n", ""),
      "script.json": JSON.stringify({ stages: { plan: [{ calls: [{ tool: "Count", input: {} }] }, SUBMIT] } }),
      "sluice.config.ts":
        'import { defineTool } from "@sluice/core";\nimport { z } from "zod";\n\nconst count = defineTool({\n  name: "Count",\n  description: "Counts.",\n  input: z.object({}),\n  effect: "read",\n  subjects: () => [],\n  execute: () => {\n    throw new TypeError("nothing to count");\n  },\n});\n\nexport default { tools: [count] };\n',
    },
  },
  {
    name: "a completion schema whose code throws",
    args: SCRIPTED,
    exit: 1,
    files: withScript(
      pipelineFile({ schema: "z.object({ steps: z.array(z.string()) }).refine((plan) => plan.step.length > 0)" }),
    ),
  },
];

const compatible = (path: string) => (server: string) => ({ OPENAI_COMPATIBLE_BASE_URL: `${server}${path}` });
const asked = (model: string, ...more: readonly string[]): readonly string[] => [...RUN, "--model", model, ...more];
const planned = { "planned.ts": pipelineFile({ stage: 'onProviderFault: "fail",' }) };

const MODELS: readonly BrokenInput[] = [
  { name: "a missing key", args: [...RUN, "--model", "anthropic/claude-sonnet-5-5"], exit: 4, files: planned },
  {
    name: "a wrong key",
    args: asked("anthropic/claude-sonnet-5-5"),
    exit: 1,
    files: planned,
    env: (server) => ({ ANTHROPIC_BASE_URL: `${server}/401`, ANTHROPIC_API_KEY: "sk-ant-of-nobody-0123456789" }),
  },
  {
    name: "a key that is needed and not set",
    args: asked("openai-compatible/large"),
    exit: 1,
    files: planned,
    env: compatible("/401/v1"),
  },
  {
    name: "an account without credit",
    args: asked("openai/gpt-6-sol"),
    exit: 1,
    files: planned,
    env: (server) => ({ OPENAI_BASE_URL: `${server}/402/v1`, OPENAI_API_KEY: "sk-of-nobody-0123456789" }),
  },
  {
    name: "a model id that does not exist",
    args: asked("anthropic/claude-sonet-5-5"),
    exit: 1,
    files: planned,
    env: (server) => ({ ANTHROPIC_BASE_URL: `${server}/404`, ANTHROPIC_API_KEY: "sk-ant-of-nobody-0123456789" }),
  },
  {
    name: "a login page of a proxy in place of an answer",
    args: asked("openai-compatible/large"),
    exit: 1,
    files: planned,
    env: compatible("/login/v1"),
  },
  {
    name: "a page of a proxy that refuses",
    args: asked("openai-compatible/large"),
    exit: 1,
    files: planned,
    env: compatible("/blocked/v1"),
  },
  {
    name: "a server that is not there",
    args: asked("openai-compatible/large"),
    exit: 1,
    files: planned,
    env: (_server, closed) => ({ OPENAI_COMPATIBLE_BASE_URL: `${closed}/v1` }),
  },
  {
    name: "an Ollama that is not there",
    args: asked("ollama/qwen3"),
    exit: 1,
    files: planned,
    env: (_server, closed) => ({ OLLAMA_HOST: closed }),
  },
  {
    name: "a server whose host is not known",
    args: asked("openai-compatible/large"),
    exit: 1,
    files: planned,
    env: () => ({ OPENAI_COMPATIBLE_BASE_URL: "https://models.acme.invalid/v1" }),
  },
  {
    name: "a base URL with the path of a request",
    args: asked("openai-compatible/large"),
    exit: 1,
    files: planned,
    env: compatible("/404/v1/chat/completions"),
  },
  { name: "a model without a known provider", args: asked("claude-sonnet-5-5"), exit: 2, files: planned },
  {
    name: "a script that is not JSON",
    args: SCRIPTED,
    exit: 2,
    files: { ...planned, "script.json": '{ "stages": { "plan": [ }' },
  },
  {
    name: "a cassette that is damaged",
    args: [...RUN, "--model", "cassette:calls.json"],
    exit: 2,
    files: { ...planned, "calls.json": '{"version":1}\nnot a line\n' },
  },
];

const WORKFLOWS: readonly BrokenInput[] = [
  {
    name: "a workflow that is not YAML",
    args: ["check", "flow.yaml"],
    exit: 1,
    files: { "flow.yaml": "id: flow\ninitial: plan\nstates:\n  plan: {\n" },
  },
  {
    name: "a workflow with an unknown target",
    args: ["check", "flow.yaml"],
    exit: 1,
    files: {
      "flow.yaml":
        "id: flow\ninitial: plan\nstates:\n  plan:\n    instructions: Plan it.\n    allowed_tools: [Read]\n    on:\n      DONE: endd\n  end:\n    type: final\n    outcome: completed\n",
    },
  },
  {
    name: "an input that does not fit",
    args: ["run", "planned.ts", "--input", '{"tsak":"x"}', "--headless", "--model", "scripted:script.json"],
    exit: 2,
    files: withScript(pipelineFile()),
  },
  {
    name: "an MCP server that does not start",
    args: trusted.with(1, "planned.ts"),
    exit: 4,
    files: {
      ...withScript(pipelineFile({ stage: 'allowedTools: ["mcp__files__*"],' }).replace("  allowedTools: [],\n", "")),
      "sluice.config.ts": 'export default { mcpServers: { files: { command: "no-such-program-of-mine" } } };\n',
    },
  },
];

function damage(folder: string): void {
  const store = join(folder, ".sluice", "store");
  mkdirSync(store, { recursive: true });
  writeFileSync(join(store, "journal.db"), "this is no database, whatever its name says\n".repeat(100));
}

const STORES: readonly BrokenInput[] = [
  { name: "a store that is no database", args: ["runs"], exit: 4, prepare: damage },
  {
    name: "a store that is a file",
    args: ["runs", "--store", "notes.txt"],
    exit: 4,
    files: { "notes.txt": "notes\n" },
  },
  {
    name: "a run that does not exist",
    args: ["show", "r000000"],
    exit: 4,
    files: withScript(pipelineFile()),
    before: [SCRIPTED],
  },
  {
    name: "an answer to a request that is not open",
    args: ["answer", "<run>", "plan#1/1/1.1/grant", "approve", "--digest", "0123456789ab"],
    exit: 2,
    files: withScript(pipelineFile()),
    before: [SCRIPTED],
  },
  {
    name: "the beginning of several runs",
    args: ["show", "r"],
    exit: 4,
    files: withScript(pipelineFile()),
    before: [SCRIPTED, SCRIPTED],
  },
];

/** A Zod without a JSON Schema of its own, as older projects have installed. */
function oldZod(folder: string): void {
  const zod = join(folder, "node_modules", "zod");
  mkdirSync(zod, { recursive: true });
  writeFileSync(
    join(zod, "package.json"),
    '{ "name": "zod", "version": "3.22.4", "type": "module", "exports": "./index.js" }',
  );
  const schema =
    '{ _def: { typeName: "ZodObject" }, parse: (value) => value, safeParse: (data) => ({ success: true, data }) }';
  writeFileSync(
    join(zod, "index.js"),
    `const any = () => (${schema});\nexport const z = { object: any, array: any, string: any };\n`,
  );
}

const OTHERS: readonly BrokenInput[] = [
  { name: "a Zod that is too old", args: SCRIPTED, exit: 2, files: withScript(pipelineFile()), prepare: oldZod },
  { name: "an unknown command", args: ["shwo", "r0"], exit: 2 },
  { name: "an unknown option", args: ["runs", "--stor", "x"], exit: 2 },
  { name: "an option with a wrong value", args: [...SCRIPTED, "--mode", "yes"], exit: 2 },
  { name: "a pipeline that does not exist", args: ["run", "codeRevew", "x"], exit: 2 },
  { name: "a workspace that does not exist", args: ["runs", "--cwd", "nowhere"], exit: 4 },
  {
    name: "a file that exports no pipeline",
    args: ["run", "parts.ts", "x"],
    exit: 2,
    files: { "parts.ts": "export const a = 1;\n" },
  },
  {
    name: "a Node that is too old",
    args: ["runs"],
    exit: 4,
    node: [
      "--import",
      `data:text/javascript,${encodeURIComponent("Object.defineProperty(process.versions, 'node', { value: '20.11.1' })")}`,
    ],
  },
];

export const BROKEN_INPUTS: readonly BrokenInput[] = [
  ...CONFIGS,
  ...LOADING,
  ...DEFINITIONS,
  ...HOOKS,
  ...MODELS,
  ...WORKFLOWS,
  ...STORES,
  ...OTHERS,
];

/** Writes the files of an input. */
export function layOut({ files = {}, prepare }: BrokenInput, folder: string): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  prepare?.(folder);
}
