import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { onTestFinished } from "vitest";
import { z } from "zod";

const ROOT = join(import.meta.dirname, "../..");
const COMMAND = join(ROOT, "packages/cli/bin/sluice.js");
const COMPILED = join(ROOT, "node_modules/.cache/compiled");

const stepSchema = z.strictObject({
  name: z.string(),
  id: z.string().optional(),
  if: z.string().optional(),
  shell: z.literal("bash").optional(),
  run: z.string().optional(),
  uses: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
  with: z.record(z.string(), z.union([z.string(), z.boolean(), z.number()])).optional(),
});
type Step = z.infer<typeof stepSchema>;

/** What GitHub accepts of the metadata of a composite action, as far as ours uses it. */
const actionSchema = z.strictObject({
  name: z.string(),
  description: z.string(),
  inputs: z.record(z.string(), z.strictObject({ description: z.string(), default: z.string() })),
  outputs: z.record(z.string(), z.strictObject({ description: z.string(), value: z.string() })),
  runs: z.strictObject({ using: z.literal("composite"), steps: z.array(stepSchema) }),
});

export function parseYaml(text: string): unknown {
  const yaml: { readonly parse: (text: string) => unknown } = createRequire(
    join(ROOT, "packages/workflows/package.json"),
  )("yaml");
  return yaml.parse(text);
}

/** The metadata of the action in a folder; throws if it has fields that GitHub does not know. */
export function readAction(folder = join(ROOT, "action")): z.infer<typeof actionSchema> {
  return actionSchema.parse(parseYaml(readFileSync(join(folder, "action.yml"), "utf8")));
}

/** A machine with the folder of a job. */
export interface Machine {
  /** GITHUB_WORKSPACE. */
  readonly folder: string;
  /** A git repository in it, with one commit of these files. */
  checkOut(files: Readonly<Record<string, string>>): Promise<string>;
  git(...args: readonly string[]): Promise<string>;
  /** Runs a line in the checkout. */
  bash(line: string): Promise<void>;
  /** Runs the steps of the action. */
  run(inputs: Readonly<Record<string, string>>, env?: Readonly<Record<string, string>>): Promise<EndedJob>;
}

export interface EndedJob {
  readonly green: boolean;
  readonly outputs: Readonly<Record<string, string>>;
  readonly summary: string;
  readonly log: string;
  /** The workflow commands that the runner obeyed, without those that stop and resume it. */
  readonly commands: readonly string[];
  /** The uploads, by the name of their artifact. */
  readonly artifacts: ReadonlyMap<string, string>;
  /** The files by which the steps commanded the runner, apart from outputs and the summary. */
  readonly injected: string;
}

export function machine(): Machine {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "sluice-job-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const folder = join(base, "work");
  mkdirSync(folder);
  const project = join(folder, "project");
  const surroundings = {
    PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ""}`,
    HOME: join(base, "home"),
    XDG_STATE_HOME: join(base, "state"),
    OLLAMA_HOST: "http://127.0.0.1:9",
    NODE_COMPILE_CACHE: COMPILED,
    GIT_CONFIG_GLOBAL: "/dev/null",
    GITHUB_ACTIONS: "true",
    GITHUB_WORKSPACE: folder,
    ACTIONS_RUNTIME_TOKEN: "runtime-token",
  };
  const git = async (...args: readonly string[]): Promise<string> => {
    const identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    const { code, text } = await programOf("git", ["-C", project, ...identity, ...args], project, surroundings);
    if (code !== 0) throw new Error(`git ${args.join(" ")}: ${text}`);
    return text;
  };
  return {
    folder,
    git,
    async bash(line) {
      const { code, text: said } = await programOf("bash", ["-c", line], project, surroundings);
      if (code !== 0) throw new Error(`${line}: ${said}`);
    },
    async checkOut(files) {
      rmSync(project, { recursive: true, force: true });
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(project, path)), { recursive: true });
        writeFileSync(join(project, path), text);
      }
      await git("init", "-q");
      await git("add", "-A");
      await git("commit", "-qm", "files");
      return project;
    },
    run: async (inputs, env = {}) =>
      await runJob(join(ROOT, "action"), { sluice: COMMAND, cwd: "project", ...inputs }, folder, {
        ...surroundings,
        // Each job has temporary folders of its own.
        RUNNER_TEMP: mkdtempSync(join(base, "temp-")),
        ...env,
      }),
  };
}

/** Runs the steps of a composite action as the runner of GitHub does. `uses` steps are recorded. */
async function runJob(
  action: string,
  given: Readonly<Record<string, string>>,
  workspace: string,
  surroundings: Readonly<Record<string, string>>,
): Promise<EndedJob> {
  const { inputs, outputs, runs } = readAction(action);
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(inputs, name));
  if (unknown.length > 0) throw new Error(`the action has no input ${unknown.join(", ")}`);
  const defaults = Object.entries(inputs).map(([name, { default: value }]) => [name, value]);
  const context = {
    inputs: { ...Object.fromEntries(defaults), ...given },
    github: { action_path: action },
    steps: {} as Record<string, { outputs: Record<string, string> }>,
  };
  const artifacts = new Map<string, string>();
  let [green, summary, log, injected] = [true, "", "", ""];
  const commands: string[] = [];
  for (const step of runs.steps) {
    if (!holds(step.if, green, context)) continue;
    if (step.uses !== undefined) {
      const { name, path } = evaluated(step.with ?? {}, context);
      if (name !== undefined && path !== undefined) artifacts.set(name, path);
      continue;
    }
    const ended = await runStep(step, evaluated(step.env ?? {}, context), workspace, surroundings);
    if (ended.code !== 0) green = false;
    if (step.id !== undefined) context.steps[step.id] = { outputs: outputsIn(ended.files.GITHUB_OUTPUT) };
    summary += ended.files.GITHUB_STEP_SUMMARY;
    injected += ended.files.GITHUB_ENV + ended.files.GITHUB_PATH + ended.files.GITHUB_STATE;
    log += ended.text;
    commands.push(...obeyed(ended.text));
  }
  const values = Object.entries(outputs).map(([name, { value }]) => [name, text(value, context)]);
  return { green, outputs: Object.fromEntries(values), summary, log, commands, artifacts, injected };
}

const FILES = ["GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"] as const;

async function runStep(
  step: Step,
  env: Readonly<Record<string, string>>,
  workspace: string,
  surroundings: Readonly<Record<string, string>>,
) {
  const temporary = surroundings.RUNNER_TEMP ?? "";
  const commands = mkdtempSync(join(temporary, "_runner_file_commands-"));
  const paths = Object.fromEntries(FILES.map((name) => [name, join(commands, name)]));
  for (const path of Object.values(paths)) writeFileSync(path, "");
  const script = join(commands, "script.sh");
  writeFileSync(script, step.run ?? "");
  const all = { ...surroundings, ...paths, ...env };
  const ended = await programOf("bash", ["--noprofile", "--norc", "-eo", "pipefail", script], workspace, all);
  const [output, environment, path, state, summary] = FILES.map((name) => readFileSync(join(commands, name), "utf8"));
  const files = {
    GITHUB_OUTPUT: output ?? "",
    GITHUB_ENV: environment ?? "",
    GITHUB_PATH: path ?? "",
    GITHUB_STATE: state ?? "",
    GITHUB_STEP_SUMMARY: summary ?? "",
  };
  return { ...ended, files };
}

async function programOf(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part) => (said += part));
  await once(child, "close");
  return { code: child.exitCode, text: said };
}

type Context = Readonly<Record<string, unknown>>;

/** The few expressions that the action uses; any other is an error. */
function text(template: string, context: Context): string {
  return template.replaceAll(/\$\{\{ *([^}]*?) *\}\}/g, (_all, path: string) => valueAt(path, context));
}

function valueAt(path: string, context: Context): string {
  if (!/^[a-z_]+(?:\.[\w-]+)+$/.test(path)) throw new Error(`the expression ${path} is not known here`);
  const found = path.split(".").reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), context);
  return typeof found === "string" ? found : "";
}

function evaluated(values: NonNullable<Step["with"]>, context: Context): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, text(String(value), context)]));
}

function holds(condition: string | undefined, green: boolean, context: Context): boolean {
  const parts = condition?.split("&&").map((part) => part.trim()) ?? [];
  const rest = parts.filter((part) => part !== "always()");
  const compared = rest.every((part) => {
    const [, path = ""] = /^(\S+) != ''$/.exec(part) ?? [];
    return valueAt(path, context) !== "";
  });
  return compared && (green || parts.includes("always()"));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Outputs as the runner reads them: `name=value`, or a value between delimiters. The last one counts. */
function outputsIn(file: string): Record<string, string> {
  const outputs: Record<string, string> = {};
  const lines = file.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const [, name = "", delimiter] = /^([^=<]+)<<(.+)$/.exec(line) ?? [];
    if (delimiter === undefined) {
      const [, key, value = ""] = /^([^=]+)=(.*)$/.exec(line) ?? [];
      if (key !== undefined) outputs[key] = value;
      continue;
    }
    const end = lines.indexOf(delimiter, at + 1);
    if (end < 0) throw new Error(`no end of the output ${name}`);
    outputs[name] = lines.slice(at + 1, end).join("\n");
    at = end;
  }
  return outputs;
}

/** The workflow commands in a log, as the runner finds them: at the start of a line, or after ##[. A lone return ends a line. */
function obeyed(log: string): readonly string[] {
  const found: string[] = [];
  let stopped: string | undefined;
  for (const line of log.split(/\r\n|\r|\n/)) {
    const [, name = "", data = ""] =
      /^\s*::([\w-]+)(?: [^:]*)?::(.*)$/.exec(line) ?? /##\[([\w-]+)[^\]]*\](.*)/.exec(line) ?? [];
    if (stopped !== undefined) {
      if (line.trim() === `::${stopped}::`) stopped = undefined;
      continue;
    }
    if (name === "stop-commands") stopped = data;
    else if (name !== "") found.push(`${name} ${data}`);
  }
  return found;
}

/** The file of an artifact. */
export function artifactFile(job: EndedJob, name: string, path: string): string {
  return readFileSync(join(job.artifacts.get(name) ?? "", path), "utf8");
}

/** A JSON file of an artifact. */
export function artifactJson(job: EndedJob, name: string, path: string): JsonObject {
  const value: Json = JSON.parse(artifactFile(job, name, path));
  if (!isJsonObject(value)) throw new Error(`${path} holds no object`);
  return value;
}

/** A scripted model in a file of a checkout, by the turns of its stages. */
export function script(stages: Readonly<Record<string, readonly JsonObject[]>>): string {
  return JSON.stringify({ stages });
}
