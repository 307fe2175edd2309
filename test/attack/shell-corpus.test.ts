import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { done, field, type Json, pipeline, stage } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, type ResolvedModel } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { finish, modelFrom, part } from "../support/stream-model.ts";

// Every line of the corpus is given to a stage by a model. Each was confirmed to have its effect in plain bash
// (test/fixtures/shell/confirm.ts); here none may have any.

interface Attack {
  readonly family: string;
  readonly name: string;
  readonly line: string;
  readonly stage: string;
  readonly effect: string;
  readonly place?: string;
}
interface Place {
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
  readonly ATTACKS: readonly Attack[];
  readonly ENVELOPES: Readonly<Record<string, readonly string[]>>;
  readonly SECRETS: Readonly<Record<string, string>>;
  makeScene(options: { readonly port: number; readonly keep: readonly string[] }): Place;
  showsSecret(text: string, stage: string): boolean;
  lineEnvironment(scene: Place): Readonly<Record<string, string>>;
}
type Mode = "try" | "off";

const STORE = ".sluice/store";
/** Where the wall puts what a line left in a place that later commands obey. */
const MOVED_AWAY = ".sluice/moved-away";
/** Lines of one run. */
const AT_ONCE = 60;
/** Runs side by side. */
const LANES = 2;
const TIMEOUT_MS = 8_000;
/**
 * Most lines are of the stage that only reads, and all of them take minutes: a third runs, another each day. `SLUICE_CORPUS=all` runs
 * every line, and 0, 1 or 2 that third.
 */
const THIRDS = 3;
const CHOSEN = process.env.SLUICE_CORPUS ?? String(Math.floor(Date.now() / 86_400_000) % THIRDS);
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
const { ATTACKS, ENVELOPES, SECRETS } = corpus;

/** The one place that says how a session is put behind a wall. */
function behind(sandbox: Mode): object {
  return { sandbox };
}

/** A server that counts who connects to it. */
async function doorbell(): Promise<{ readonly port: number; rung(): boolean; close(): void }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on("error", () => undefined); // whoever connects may leave at any time
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
interface Came {
  readonly attack: Attack;
  readonly effects: readonly string[];
  /** `ok`, the cause of a denial, or the code of an error. */
  readonly outcome: string;
}

/** Runs lines of one stage, in places of their own that work side by side. */
async function comesOf(attacks: readonly Attack[], mode: Mode): Promise<readonly Came[]> {
  const lanes = Array.from({ length: LANES }, (_, lane) => attacks.filter((_, at) => at % LANES === lane));
  return (await Promise.all(lanes.map((some) => lane(some, mode)))).flat();
}

/** Runs lines in as few runs as they need; the workspace is put back before each. */
async function lane(attacks: readonly Attack[], mode: Mode): Promise<readonly Came[]> {
  const bell = await doorbell();
  const scene = corpus.makeScene({ port: bell.port, keep: [STORE, MOVED_AWAY] });
  const came: Came[] = [];
  try {
    while (came.length < attacks.length) {
      const before = came.length;
      const some = attacks.slice(before, before + AT_ONCE);
      const broken = await oneRun({ scene, rung: bell.rung }, some, mode, came);
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
  readonly scene: Place;
  rung(): boolean;
}

async function oneRun(here: Lane, attacks: readonly Attack[], mode: Mode, came: Came[]): Promise<string> {
  const { scene } = here;
  const session = createSession({
    ...behind(mode),
    cwd: scene.root,
    env: { ...corpus.lineEnvironment(scene) },
    mode: "ask",
    host: () => sqliteHost(join(scene.root, STORE)),
    model: attacker(here, attacks, came),
  });
  const work = stage({
    prompt: "Do the work.",
    allowedTools: ENVELOPES[attacks[0]?.stage ?? ""] ?? [],
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
function attacker(here: Lane, attacks: readonly Attack[], came: Came[]): ResolvedModel {
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
function callOf(scene: Place, { line, family, name }: Attack): { toolName: string; input: Json } {
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

function lookAfter({ scene, rung }: Lane, attack: Attack, { text, outcome }: { text: string; outcome: string }): Came {
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
function stored(scene: Place, text: string): string | undefined {
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

const told = ({ attack: { family, name, effect, line }, effects, outcome }: Came): string =>
  `${family} / ${name} (${effect}): ${effects.join(", ")} [${outcome}]  ${line}`;

function summary(stageName: string, mode: Mode, came: readonly Came[]): string {
  const outcomes = Map.groupBy(came, ({ outcome }) => outcome);
  const counts = [...outcomes].map(([outcome, { length }]) => `${length} ${outcome}`).join(", ");
  const had = came.filter(({ effects }) => effects.length > 0).length;
  const which = stageName === "read-only" ? ` (SLUICE_CORPUS=${CHOSEN})` : "";
  return `${stageName}${which}, sandbox ${mode}: ${had} of ${came.length} had an effect (${counts})`;
}

test.each((["off", "try"] as const).flatMap((mode) => Object.keys(ENVELOPES).map((name) => [name, mode] as const)))(
  "lines of a stage that is %s, sandbox %s: none has an effect",
  async (stageName, mode) => {
    // What a command may eat behind the wall is tested with the wall: memory is filled here for nothing.
    const eats = ({ effect, name }: Attack): boolean => effect === "eaten" && name.startsWith("memory");
    const attacks = ATTACKS.filter((attack) => attack.stage === stageName && !(mode === "try" && eats(attack))).filter(
      (_, at) => CHOSEN === "all" || stageName !== "read-only" || at % THIRDS === Number(CHOSEN),
    );
    const came = await comesOf(attacks, mode);
    console.log(summary(stageName, mode, came));
    const had = came.filter(({ effects }) => effects.length > 0);
    const known = mode === "off" ? had.filter(unguarded) : [];
    if (known.length > 0) console.log(`without a wall these stay:\n${known.map(told).join("\n")}`);
    expect(had.filter((each) => !known.includes(each)).map(told)).toEqual([]);
  },
  300_000,
);

/** Without a wall, a stage that may run everything writes what its user can, and a rule's command runs with any words behind it. */
function unguarded({ attack: { stage: its, family } }: Came): boolean {
  return its === "writing" || family === "words that a rule lets through";
}
