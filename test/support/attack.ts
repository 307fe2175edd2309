import { hash } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import {
  type AllowedTool,
  done,
  field,
  type GuardHook,
  type Interactor,
  isJsonObject,
  type Json,
  type JsonObject,
  pipeline,
  type SluiceEvent,
  type StateEnvironment,
  type StateLimits,
  stage,
} from "@sluice/core";
import type { ResolvedModel, RunResult } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { eventsOf, session, type TestSession, type TestSessionOptions } from "./run-kit.ts";
import { finish, modelFrom, part } from "./stream-model.ts";

/** What stands in the file beside the workspace: whatever a model, a record or a person sees of it has leaked. */
export const OUTSIDE = "OUTSIDE-SECRET-8b1f";
/** What stands in `secret.txt` of the workspace, which stages with `Read(src/**)` may not see. */
export const INSIDE = "INSIDE-SECRET-77c2";
/** What an attacker's program leaves behind. */
const CANARY = "PWN";

/** A workspace with a neighbour that no run has any business with. */
export interface Scene {
  /** The folder above the workspace. */
  readonly outer: string;
  readonly root: string;
  /** Path of a file in the workspace. */
  path(name: string): string;
  put(name: string, content: string | Uint8Array): string;
  text(name: string): string;
}

export function scene(): Scene {
  const outer = realpathSync(mkdtempSync(join(tmpdir(), "sluice-attack-")));
  onTestFinished(() => rmSync(outer, { recursive: true, force: true }));
  const root = join(outer, "ws");
  const path = (name: string): string => join(root, name);
  const put = (name: string, content: string | Uint8Array): string => {
    mkdirSync(dirname(path(name)), { recursive: true });
    writeFileSync(path(name), content);
    return path(name);
  };
  mkdirSync(join(outer, "beside"));
  writeFileSync(join(outer, "outside.txt"), `${OUTSIDE}\n`);
  writeFileSync(join(outer, "beside", "deep.txt"), `${OUTSIDE}\n`);
  for (const [name, content] of Object.entries(FILES)) put(name, content);
  return { outer, root, path, put, text: (name) => readFileSync(path(name), "utf8") };
}

const FILES: Readonly<Record<string, string>> = {
  "a.txt": "alpha\n",
  "secret.txt": `${INSIDE}\n`,
  "src/b.ts": "export const b = 1;\n",
  "docs/c.md": "# C\n",
  ".git/HEAD": "ref: refs/heads/main\n",
  ".git/config": "[core]\n\trepositoryformatversion = 0\n",
  ".sluice/pipelines/mine.ts": "export const mine = 1;\n",
  "sluice.config.ts": "export const config = {};\n",
};
/** What no run may write. */
const PROTECTED = [".git", ".sluice/pipelines", "sluice.config.ts"];

/** A call of a model: a tool and its arguments, as a value or as the very text it sends. */
export type Call = readonly [tool: string, input: Json | { readonly raw: string }];
export const raw = (text: string): { readonly raw: string } => ({ raw: text });
/** One turn of a model: calls, or the parts of its stream. */
export type Turn = readonly Call[] | { readonly parts: readonly LanguageModelV4StreamPart[] };

/** What is tried, and in what kind of session and stage. */
export interface Attack extends Omit<TestSessionOptions, "model" | "cwd"> {
  /** Undefined: the stage has no envelope. */
  readonly allowedTools?: readonly AllowedTool[];
  /** One call a turn. */
  readonly calls?: readonly Call[];
  readonly turns?: readonly Turn[];
  readonly stageHook?: GuardHook;
  readonly limits?: StateLimits;
  /** The variables of the stage's processes. */
  readonly variables?: StateEnvironment;
  readonly task?: string;
  /** The workspace's own files that may differ afterwards. */
  readonly mayWrite?: readonly string[];
  /** How the run ends; `completed` when omitted. */
  readonly status?: RunResult<unknown>["status"];
}

/** What came of it. The run has ended in its usual way, with one result a call, and nothing beside the workspace has changed. */
export interface Attacked {
  readonly result: RunResult<unknown>;
  readonly events: readonly SluiceEvent[];
  /** What each call came to, in order: `ok`, the cause of a denial, or the code of an error. */
  readonly outcomes: readonly string[];
  /** What the model got as the result of each call. */
  readonly outputs: readonly Json[];
  /** The transcript at the end, as the provider gets it. */
  readonly prompt: LanguageModelV4Prompt;
  /** Everything the model was ever sent. */
  readonly sent: string;
  /** Everything the record holds: step values and events. */
  readonly recorded: string;
  /** What everybody may be shown: events, and open requests as people see them. */
  readonly shown: string;
  readonly live: TestSession;
}

/** Drives one real run of one stage in a workspace, with a model that does what the attack says and then finishes. */
export async function attack(place: Scene, given: Attack): Promise<Attacked> {
  const {
    allowedTools,
    calls = [],
    turns = calls.map((call) => [call]),
    stageHook,
    limits,
    variables,
    task = "work",
    mayWrite = [],
    status = "completed",
    ...options
  } = given;
  const before = snapshot(place, mayWrite);
  const prompts: LanguageModelV4Prompt[] = [];
  const live = session({
    env: { PATH: process.env.PATH },
    mode: "ask",
    ...options,
    cwd: place.root,
    model: attacker(turns, prompts),
  });
  const work = stage({
    prompt: "Do the work.",
    ...(allowedTools === undefined ? {} : { allowedTools }),
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap: turns.length + 1,
    ...(stageHook === undefined ? {} : { onCall: stageHook }),
    ...(limits === undefined ? {} : { limits }),
    ...(variables === undefined ? {} : { env: variables }),
  });
  const attacked = pipeline({
    id: "attacked",
    input: z.object({ task: z.string() }),
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output.text) },
  });
  const handle = live.start(attacked, { task });
  const result = await handle;
  expect(result.status, JSON.stringify("error" in result ? result.error : null)).toBe(status);
  const events = await eventsOf(live.host, handle.runId);
  const prompt = prompts.at(-1) ?? [];
  const answered = resultsIn(prompt);
  const sent = JSON.stringify(prompts);
  const journals = await live.host.journal(handle.runId);
  const recorded = journals.flatMap(({ records }) => records.map(({ value, events: kept }) => value + kept)).join("\n");
  const shown = JSON.stringify(events);
  expect(snapshot(place, mayWrite)).toEqual(before);
  for (const text of [sent, recorded, shown]) expect(text).not.toContain(OUTSIDE);
  expect(findCanary(place.outer), "the attacker's program ran").toEqual([]);
  const outputs = answered.map(({ output }) => output);
  return { result, events, prompt, sent, recorded, shown, outputs, outcomes: answered.map(outcomeOf), live };
}

/** Says its turns one after the other, then finishes; keeps every transcript it is sent. */
function attacker(turns: readonly Turn[], prompts: LanguageModelV4Prompt[]): ResolvedModel {
  return {
    id: "attacker",
    secrets: [],
    at: ({ turn }) =>
      modelFrom((options) => {
        prompts.push(structuredClone(options.prompt));
        const parts = partsOf(turns[turn] ?? [["finish", { text: "done" }]], turn);
        return Promise.resolve(ReadableStream.from(parts));
      }),
  };
}

function partsOf(turn: Turn, at: number): readonly LanguageModelV4StreamPart[] {
  if ("parts" in turn) return turn.parts;
  const calls = turn.map(([toolName, input], index) =>
    part({ type: "tool-call", toolCallId: `c${at}_${index}`, toolName, input: textOf(input) }),
  );
  return [part({ type: "stream-start", warnings: [] }), ...calls, finish("tool-calls")];
}

function textOf(input: Call[1]): string {
  return isJsonObject(input) && Object.keys(input).length === 1 && typeof input.raw === "string"
    ? input.raw
    : JSON.stringify(input);
}

interface Answered {
  readonly output: Json;
  readonly error: boolean;
}

/** The results in a transcript. Fails unless every call has exactly one, in the order of the calls, and nothing speaks that should not. */
function resultsIn(prompt: LanguageModelV4Prompt): readonly Answered[] {
  const found: Answered[] = [];
  expect(prompt.map(({ role }) => role).filter((role) => role === "system")).toHaveLength(1);
  expect(prompt[0]?.role).toBe("system");
  expect(prompt[1]?.role).toBe("user");
  for (const [at, message] of prompt.entries()) {
    if (message.role !== "assistant") continue;
    const asked = message.content.flatMap((each) =>
      each.type === "tool-call" && each.providerExecuted !== true ? [each.toolCallId] : [],
    );
    const next: LanguageModelV4Message | undefined = prompt[at + 1];
    const given = next?.role === "tool" ? next.content.filter((each) => each.type === "tool-result") : [];
    expect(given.map(({ toolCallId }) => toolCallId)).toEqual(asked);
    for (const { output } of given) {
      if (output.type !== "text" && output.type !== "json" && output.type !== "error-json")
        throw new Error(`a result of type ${output.type}`);
      found.push({ output: JSON.parse(JSON.stringify(output.value)), error: output.type === "error-json" });
    }
  }
  return found;
}

function outcomeOf({ output, error }: Answered): string {
  const code = field(output, "code");
  if (!error) return "ok";
  const cause = field(output, "cause");
  return String(code === "tool_call_denied" ? cause : (code ?? output));
}

/** Every file beside the workspace and every protected one, with its content, mode and links. */
function snapshot({ outer, root }: Scene, mayWrite: readonly string[]): ReadonlyMap<string, string> {
  const seen = new Map<string, string>();
  const look = (path: string): void => {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined || mayWrite.some((name) => join(root, name) === path)) return;
    if (stats.isSymbolicLink()) seen.set(path, `link ${readlinkSync(path)}`);
    else if (stats.isDirectory()) {
      seen.set(path, "folder");
      for (const name of readdirSync(path)) look(join(path, name));
    } else if (stats.isFile()) seen.set(path, `${stats.mode} ${stats.size} ${hash("sha256", readFileSync(path))}`);
    else seen.set(path, `special ${stats.mode}`);
  };
  for (const name of readdirSync(outer)) if (join(outer, name) !== root) look(join(outer, name));
  for (const name of PROTECTED) look(join(root, name));
  return seen;
}

function findCanary(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.name.startsWith(CANARY)) return [path];
    return entry.isDirectory() ? findCanary(path) : [];
  });
}

/** The data of the events of one type. */
export function eventData(events: readonly SluiceEvent[], type: SluiceEvent["type"]): readonly JsonObject[] {
  return events.filter((event) => event.type === type).map(({ data }) => data);
}

/** An interactor that approves everything, and first does something. */
export function approving(first: () => void = () => undefined): Interactor {
  return {
    name: "approving",
    answer: async () => {
      first();
      return { kind: "approve" };
    },
  };
}

/** One line of a table of attacks. */
export interface Row extends Attack {
  /** What is tried. */
  readonly name: string;
  /** The effect it must not have. */
  readonly never: string;
  /** What each call comes to. */
  readonly outcomes?: readonly string[];
  /** What is prepared in and beside the workspace. */
  readonly place?: (place: Scene) => void;
  /** For what depends on the place. */
  readonly made?: (place: Scene) => Attack | Promise<Attack>;
  /** Looks for the effect, besides what every attack is held to. */
  readonly look?: (after: Attacked, place: Scene) => void;
}

/** Runs a table of attacks; what they have in common comes first. */
export function attacks(common: Attack, rows: readonly Row[]): void {
  test.each(rows)(
    "$name: never $never",
    async ({ name: _name, never: _never, outcomes, place, made, look, ...own }) => {
      const here = scene();
      place?.(here);
      const after = await attack(here, { ...common, ...own, ...(await made?.(here)) });
      if (outcomes !== undefined) expect(after.outcomes).toEqual(outcomes);
      look?.(after, here);
    },
  );
}

export const read = (file_path: string): Call => ["Read", { file_path }];
export const write = (file_path: string, content = "evil"): Call => ["Write", { file_path, content }];
export const edit = (file_path: string, old_string: string, new_string = "evil"): Call => [
  "Edit",
  { file_path, old_string, new_string },
];
export const bash = (command: string): Call => ["Bash", { command }];
export const grep = (input: JsonObject): Call => ["Grep", input];
export const glob = (pattern: string, path?: string): Call => [
  "Glob",
  path === undefined ? { pattern } : { pattern, path },
];

/** Tools that were started, in order. */
export function started(after: Attacked): readonly Json[] {
  return eventData(after.events, "call.started").map(({ tool }) => tool ?? null);
}

/** Nothing ran at all. */
export function nothingRan(after: Attacked): void {
  expect(started(after)).toEqual([]);
}
