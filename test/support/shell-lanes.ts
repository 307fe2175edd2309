import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { done, field, type Json, pipeline, stage } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, type ResolvedModel } from "@sluice/stages";
import { z } from "zod";
import { finish, modelFrom, part } from "./stream-model.ts";

// Command lines that a model gives to a stage in a real run, and what comes of them.

/** One line of the corpus in test/fixtures/shell. */
export interface ShellAttack {
  readonly family: string;
  readonly name: string;
  readonly line: string;
  readonly stage: string;
  readonly effect: string;
  readonly place?: string;
}
/** A workspace with its neighbours, which is put back before each line. */
export interface ShellPlace {
  readonly top: string;
  readonly root: string;
  readonly home: string;
  fill(text: string): string;
  reset(script?: string): void;
  changes(): ReadonlySet<string>;
  hostLooks(): boolean;
  endLeft(): boolean;
  remove(): void;
}
interface Corpus {
  readonly ATTACKS: readonly ShellAttack[];
  readonly ENVELOPES: Readonly<Record<string, readonly string[]>>;
  readonly SECRETS: Readonly<Record<string, string>>;
  makeScene(options: { readonly port: number; readonly keep: readonly string[] }): ShellPlace;
  showsSecret(text: string, stage: string): boolean;
  runPlainly(scene: ShellPlace, line: string, limits?: string): Promise<string>;
  lineEnvironment(scene: ShellPlace): Readonly<Record<string, string>>;
}
export type WallMode = "try" | "off";

const STORE = ".sluice/store";
/** Where the wall puts what a line left in a place that later commands obey. */
const MOVED_AWAY = ".sluice/moved-away";
/** Lines of one run. */
const AT_ONCE = 60;
/** Runs side by side. */
const LANES = 2;
const TIMEOUT_MS = 8_000;
/** What only the environment of this process holds. */
const OWNERS_OWN = /VITEST[A-Z_]*=/;

/** Fixtures are no part of the tests' project, so they are loaded by their paths. */
async function corpusOf(...files: readonly string[]): Promise<Corpus> {
  const loaded: Corpus[] = await Promise.all(
    files.map((file) => import(join(import.meta.dirname, "../fixtures/shell", file))),
  );
  return Object.assign({}, ...loaded);
}
const corpus = await corpusOf("attack.ts", "attacks.ts", "scene.ts");
export const { ATTACKS, ENVELOPES } = corpus;
const { SECRETS } = corpus;

/** A copy of the corpus's workspace, for what only judges its lines. */
export function linePlace() {
  const { root, fill, remove, ...scene } = corpus.makeScene({ port: 1, keep: [] });
  return { root, fill, remove, env: corpus.lineEnvironment({ root, fill, remove, ...scene }) };
}

/** A server that counts who connects to it. */
async function doorbell(): Promise<{ readonly port: number; rung(): boolean; close(): void }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on("error", () => undefined); // a client may leave at any time
    socket.end("HTTP/1.0 404 Not Found\r\n\r\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  const rung = (): boolean => {
    const had = connections > 0;
    connections = 0;
    return had;
  };
  return { port: address.port, rung, close: () => void server.close() };
}

/** What came of one line. */
export interface Came {
  readonly attack: ShellAttack;
  readonly effects: readonly string[];
  /** `ok`, the cause of a denial, or the code of an error. */
  readonly outcome: string;
}

/** Runs lines of one stage, in places of their own that work side by side. */
export async function comesOf(attacks: readonly ShellAttack[], how: RunsAs): Promise<readonly Came[]> {
  return (await Promise.all(lanesOf(attacks).map((some) => lane(some, how)))).flat();
}

function removeCanaries(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.name.startsWith("PWN")) rmSync(path, { recursive: true, force: true });
    else if (entry.isDirectory()) removeCanaries(path);
  }
}

export interface RunsAs {
  readonly sandbox: WallMode;
  readonly allowedTools: readonly string[];
}

function lanesOf<T>(all: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: LANES }, (_, lane) => all.filter((_, at) => at % LANES === lane));
}

/** The lines that do not have their effect when plain bash runs them, each in a fresh copy of the workspace. */
export async function withoutEffect(attacks: readonly ShellAttack[]): Promise<readonly ShellAttack[]> {
  const found = lanesOf(attacks).map(async (some) => {
    const scene = corpus.makeScene({ port: 1, keep: [] });
    const not: ShellAttack[] = [];
    let isAsBefore = false;
    try {
      for (const attack of some) {
        if (!isAsBefore || attack.place !== undefined) scene.reset(attack.place);
        await corpus.runPlainly(scene, scene.fill(attack.line), "ulimit -f 400000;");
        scene.endLeft();
        const effects = scene.changes();
        if (!effects.has(attack.effect)) not.push(attack);
        // Removing what was added is faster than a new copy.
        isAsBefore = attack.place === undefined && [...effects].every((effect) => effect === "canary");
        if (isAsBefore) removeCanaries(scene.top);
      }
    } finally {
      scene.endLeft();
      scene.remove();
    }
    return not;
  });
  return (await Promise.all(found)).flat();
}

/** Runs lines in as few runs as they need; the workspace is put back before each. */
async function lane(attacks: readonly ShellAttack[], how: RunsAs): Promise<readonly Came[]> {
  const bell = await doorbell();
  const scene = corpus.makeScene({ port: bell.port, keep: [STORE, MOVED_AWAY] });
  const came: Came[] = [];
  try {
    while (came.length < attacks.length) {
      const before = came.length;
      const some = attacks.slice(before, before + AT_ONCE);
      const broken = await oneRun({ scene, rung: bell.rung }, some, how, came);
      for (const secret of [SECRETS.outside, SECRETS.name, SECRETS.home]) {
        const where = stored(scene, String(secret));
        if (where !== undefined) came.push(about("a secret is in the run store", where));
      }
      if (came.length - before >= some.length) continue;
      // The line that was at work when its run broke: a store that is gone is an effect, too.
      const attack = attacks[came.length];
      if (attack !== undefined) came.push({ attack, effects: [`broke the run: ${broken}`], outcome: "broken" });
      rmSync(join(scene.root, STORE), { recursive: true, force: true });
    }
    if (scene.endLeft()) came.push(about("a process is left", ""));
    scene.reset();
    if (scene.hostLooks()) came.push(about("git ran something for the host", ""));
  } finally {
    scene.endLeft();
    scene.remove();
    bell.close();
  }
  return came;
}

/** What was found only afterwards. */
function about(effect: string, line: string): Came {
  return { attack: { family: "afterwards", name: "", line, stage: "", effect }, effects: [effect], outcome: "ok" };
}

interface Lane {
  readonly scene: ShellPlace;
  rung(): boolean;
}

async function oneRun(here: Lane, attacks: readonly ShellAttack[], how: RunsAs, came: Came[]): Promise<string> {
  const { scene } = here;
  const session = createSession({
    sandbox: how.sandbox,
    cwd: scene.root,
    env: { ...corpus.lineEnvironment(scene) },
    mode: "ask",
    host: () => sqliteHost(join(scene.root, STORE)),
    model: attacker(here, attacks, came),
  });
  const work = stage({
    prompt: "Do the work.",
    allowedTools: how.allowedTools,
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap: attacks.length + 2,
  });
  const attacked = pipeline({
    id: "attacked",
    input: z.object({ task: z.string() }),
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output.text) },
  });
  try {
    const result = await session.run(attacked, { task: "work" });
    return "error" in result ? JSON.stringify(result.error) : result.status;
  } catch (thrown) {
    return String(thrown);
  } finally {
    await session.close().catch(() => undefined); // a store that a line destroyed cannot be closed
  }
}

/** Gives one line a turn, and looks at what came of the one before. */
function attacker(here: Lane, attacks: readonly ShellAttack[], came: Came[]): ResolvedModel {
  const { scene } = here;
  return {
    id: "attacker",
    secrets: [],
    at: ({ turn }) =>
      modelFrom(async ({ prompt }) => {
        const before = attacks[turn - 1];
        if (before !== undefined) came.push(lookAfter(here, before, resultIn(prompt)));
        const next = attacks[turn];
        const call = next === undefined ? { toolName: "finish", input: { text: "done" } } : callOf(scene, next);
        if (next !== undefined) {
          here.rung();
          scene.reset(next.place);
        }
        return ReadableStream.from([
          part({ type: "stream-start", warnings: [] }),
          part({ type: "tool-call", toolCallId: `c${turn}`, ...call, input: JSON.stringify(call.input) }),
          finish("tool-calls"),
        ]);
      }),
  };
}

/** The description makes each call another one, where two attacks differ in their place only. */
function callOf(scene: ShellPlace, { line, family, name }: ShellAttack): { toolName: string; input: Json } {
  const input = { command: scene.fill(line), timeout: TIMEOUT_MS, description: `${family}: ${name}` };
  return { toolName: "Bash", input };
}

function resultIn(prompt: LanguageModelV4Prompt): { readonly text: string; readonly outcome: string } {
  const last = prompt.findLast(({ role }) => role === "tool");
  const output = last?.role === "tool" ? last.content.find(({ type }) => type === "tool-result") : undefined;
  if (output?.type !== "tool-result") throw new Error("the last call has no result");
  const value: Json = JSON.parse(JSON.stringify("value" in output.output ? output.output.value : null));
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (output.output.type !== "error-json") return { text, outcome: "ok" };
  const code = field(value, "code");
  return { text, outcome: String(code === "tool_call_denied" ? field(value, "cause") : (code ?? "failed")) };
}

function lookAfter(
  { scene, rung }: Lane,
  attack: ShellAttack,
  { text, outcome }: { text: string; outcome: string },
): Came {
  const found = new Set<string>();
  if (attack.effect === "process" && scene.endLeft()) found.add("process");
  for (const effect of scene.changes()) found.add(effect);
  if (corpus.showsSecret(text, attack.stage) || OWNERS_OWN.test(text)) found.add("secret");
  if (rung()) found.add("connected");
  if (attack.effect === "host" && scene.hostLooks()) found.add("host");
  // A stage that may write changes its workspace; only what the line is there for counts.
  const counts = (effect: string): boolean => attack.stage !== "writing" || effect === attack.effect;
  return { attack, outcome, effects: [...found].filter(counts) };
}

/** Where the run store holds a text, with what stands around it; the file that was put there does not count. */
function stored(scene: ShellPlace, text: string): string | undefined {
  const folder = join(scene.root, STORE);
  if (!existsSync(folder)) return undefined;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name === "planted.txt") continue;
    const bytes = readFileSync(join(entry.parentPath, entry.name));
    const at = bytes.indexOf(text);
    if (at >= 0) return bytes.toString("latin1", Math.max(0, at - 200), at + 300);
  }
  return undefined;
}

/** One line for a message: what the line is, what it did, and how its call ended. */
export function described({ attack: { family, name, effect, line }, effects, outcome }: Came): string {
  return `${family} / ${name} (${effect}): ${effects.join(", ")} [${outcome}]  ${line}`;
}
