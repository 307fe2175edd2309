import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { done, field, type GuardHook, type Json, pipeline, stage } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, type ResolvedModel } from "@sluice/stages";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { missingProgram } from "../support/programs.ts";
import { finish, modelFrom, part } from "../support/stream-model.ts";

// Commands as planners, reviewers and testers type them. Each works in plain bash (test/fixtures/shell/confirm-ordinary.ts);
// here they should run without asking anybody.

/**
 * Every line is judged. Since running all of them takes minutes, a third runs, another each day. `SLUICE_ORDINARY=all` runs every
 * line, and 0, 1 or 2 that third.
 */
const THIRDS = 3;
const CHOSEN = process.env.SLUICE_ORDINARY ?? String(Math.floor(Date.now() / 86_400_000) % THIRDS);

interface Ordinary {
  readonly line: string;
  readonly stage: string;
  readonly rules: readonly string[];
  readonly runsCode: boolean;
  readonly exit: number;
}
interface Fixtures {
  readonly ORDINARY: readonly Ordinary[];
  readonly STORE_SECRET: string;
  readonly PROGRAMS: string;
  buildWorkspace(root: string): void;
}
type Mode = "try" | "off";

/** How many of a hundred have to run without a grant. */
const ENOUGH: Readonly<Record<Mode, number>> = { try: 99, off: 85 };
/** What people expect first of a stage that may run some commands: these run in every mode. */
const ALWAYS = ["git status", "npm test 2>&1 | head", "pytest -v tests/ | tail -20", "cat README.md | head -20"];
const READING = ["Read", "Grep", "Glob", "Bash"];

/** Fixtures are no part of the tests' project, so they are loaded by their paths. */
async function fixturesOf(...files: readonly string[]): Promise<Fixtures> {
  const loaded: Fixtures[] = await Promise.all(
    files.map((file) => import(join(import.meta.dirname, "../fixtures/shell", file))),
  );
  return Object.assign({}, ...loaded);
}
const { PROGRAMS, STORE_SECRET, buildWorkspace, ...listed } = await fixturesOf(
  "ordinary.ts",
  "scene.ts",
  "workspace.ts",
);
const ORDINARY = listed.ORDINARY.filter(({ line }) => missingProgram(line) === undefined);

/** The one place that says how a session is put behind a wall. */
function behind(sandbox: Mode): object {
  return { sandbox };
}

const top = realpathSync(mkdtempSync(join(tmpdir(), "sluice-ordinary-")));
const root = join(top, "ws");
beforeAll(() => {
  mkdirSync(root);
  buildWorkspace(root);
});
afterAll(() => rmSync(top, { recursive: true, force: true }));

/** What came of one command; `why` says what kept it from running as it does in plain bash. */
interface Came {
  readonly command: Ordinary;
  readonly why: string | undefined;
}

/** Gives all commands to stages, those that are allowed alike in one run. With a hook, the gate decides about them as well. */
async function comesOf(commands: readonly Ordinary[], mode: Mode, onCall?: GuardHook): Promise<readonly Came[]> {
  const came: Came[] = [];
  for (const alike of Map.groupBy(commands, ({ rules }) => rules.join()).values())
    came.push(...(await comesOfAlike(alike, mode, onCall)));
  return came;
}

async function comesOfAlike(
  commands: readonly Ordinary[],
  mode: Mode,
  onCall: GuardHook | undefined,
): Promise<readonly Came[]> {
  const came: Came[] = [];
  const path = [PROGRAMS, join(root, "node_modules", ".bin")].join(delimiter);
  const session = createSession({
    ...behind(mode),
    cwd: root,
    env: { PATH: path, HOME: top, LANG: "C.UTF-8" },
    mode: "ask",
    host: () => sqliteHost(join(top, "store")),
    model: planner(commands, came),
    ...(onCall === undefined ? {} : { onCall }),
  });
  const first = commands[0];
  const work = stage({
    prompt: "Do the work.",
    allowedTools: first?.stage === "scoped" ? ["Read", ...first.rules] : READING,
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap: commands.length + 2,
  });
  const worked = pipeline({
    id: "worked",
    input: z.object({ task: z.string() }),
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output.text) },
  });
  try {
    const result = await session.run(worked, { task: "work" });
    expect(result.status, JSON.stringify("error" in result ? result.error : null)).toBe("completed");
  } finally {
    await session.close();
  }
  return came;
}

function planner(commands: readonly Ordinary[], came: Came[]): ResolvedModel {
  return {
    id: "planner",
    secrets: [],
    at: ({ turn }) =>
      modelFrom(({ prompt }) => {
        const before = commands[turn - 1];
        if (before !== undefined) came.push({ command: before, why: whyNot(before, prompt) });
        const next = commands[turn];
        const call =
          next === undefined
            ? { toolName: "finish", input: { text: "done" } }
            : { toolName: "Bash", input: { command: next.line, timeout: 60_000 } };
        return Promise.resolve(
          ReadableStream.from([
            part({ type: "stream-start", warnings: [] }),
            part({ type: "tool-call", toolCallId: `c${turn}`, ...call, input: JSON.stringify(call.input) }),
            finish("tool-calls"),
          ]),
        );
      }),
  };
}

/** Keeps a call from running that nothing else kept from it. */
const judging: GuardHook = () => ({ veto: JUDGED });
const JUDGED = "this is only judged";

function whyNot({ exit }: Ordinary, prompt: LanguageModelV4Prompt): string | undefined {
  const last = prompt.findLast(({ role }) => role === "tool");
  const result = last?.role === "tool" ? last.content.find(({ type }) => type === "tool-result") : undefined;
  if (result?.type !== "tool-result") throw new Error("the last call has no result");
  const value: Json = JSON.parse(JSON.stringify("value" in result.output ? result.output.value : null));
  const text = typeof value === "string" ? value : JSON.stringify(value);
  expect(text).not.toContain(STORE_SECRET);
  if (field(value, "cause") === "hook" && JSON.stringify(value).includes(JUDGED)) return undefined;
  if (field(value, "code") === "tool_call_denied") return String(field(value, "reason"));
  if (result.output.type === "error-json" && typeof value !== "string") return `it ran, but: ${text.slice(0, 200)}`;
  const ended = Number(/^Exit code (\d+)/.exec(text)?.[1] ?? 0);
  return ended === exit ? undefined : `it ran, but: ${text.slice(0, 200)}`;
}

test.each(["off", "try"] as const)(
  "ordinary commands, sandbox %s: nearly all may run without a grant, and run as they do in plain bash",
  async (mode) => {
    const before = readFileSync(join(root, "package.json"), "utf8");
    const came = await comesOf(ORDINARY, mode, judging);
    const not = came.filter(({ why }) => why !== undefined);
    const kept = not.map(({ command: { line, stage: its }, why }) => `  [${its}] ${line}\n    ${why ?? ""}`);
    const share = (100 * (came.length - not.length)) / came.length;
    const counts = `${came.length - not.length} of ${came.length} (${share.toFixed(1)} %)`;
    console.log(`sandbox ${mode}: ${counts} may run; these may not:\n${kept.join("\n")}`);
    expect(came).toHaveLength(ORDINARY.length);
    const may = came.filter(({ why }) => why === undefined).map(({ command }) => command);
    const third = may.filter((_, at) => CHOSEN === "all" || at % THIRDS === Number(CHOSEN));
    const ran = await comesOf(third, mode);
    expect(ran.filter(({ why }) => why !== undefined)).toEqual([]);
    expect(ran).toHaveLength(third.length);
    expect(share).toBeGreaterThanOrEqual(ENOUGH[mode]);
    expect(ORDINARY.map(({ line }) => line)).toEqual(expect.arrayContaining(ALWAYS));
    expect(not.filter(({ command }) => ALWAYS.includes(command.line))).toEqual([]);
    expect(readFileSync(join(root, "package.json"), "utf8")).toBe(before);
  },
  900_000,
);
