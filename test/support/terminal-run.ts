import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Json, JsonObject, SluiceEvent } from "@sluice/core";
import { expect } from "vitest";
import { lookAt } from "./look-at.ts";
import type { TerminalProcess } from "./terminal.ts";
import type { KeyName } from "./terminal-keys.ts";
import { COMMAND, type OpenOptions, type TerminalPlace, terminalPlace } from "./terminal-kit.ts";

/** A card takes keys only when nobody has typed for so long, in milliseconds. */
const ARMED_AFTER_MS = 420;
/** A key that answers has to come so long after the one before. */
const MEANT_AFTER_MS = 270;

export interface ScriptTurn {
  readonly text?: string;
  readonly delayMs?: number;
  readonly calls?: readonly { readonly tool: string; readonly input: Json }[];
}

/** A place with a scripted model and a workspace, and the app opened in it. */
export interface AppPlace extends TerminalPlace {
  /** What the model says from now on, by stage. */
  script(stages: Readonly<Record<string, readonly ScriptTurn[]>>): void;
  write(path: string, text: string): void;
  read(path: string): string;
  /** The app, with its line to type in on the screen. */
  open(args?: readonly string[], options?: OpenOptions): Promise<TerminalProcess>;
  /** The command in another process, without a terminal. */
  elsewhere(
    ...args: readonly string[]
  ): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>;
  /** The only run of the store. */
  runId(): Promise<string>;
  runIds(): Promise<readonly string[]>;
  /** What the journal says happened in a run and below it; in the only one when none is named. */
  events(run?: string): Promise<readonly SluiceEvent[]>;
}

export function appPlace(): AppPlace {
  const place = terminalPlace();
  const file = join(place.home, "script.json");
  const elsewhere: AppPlace["elsewhere"] = (...args) =>
    new Promise((resolve) => {
      const env = { ...place.env, CI: "true" };
      execFile(process.execPath, [COMMAND, ...args], { cwd: place.workspace, env }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr }),
      );
    });
  // What the command says about a store is proven elsewhere, without a terminal.
  const store = join(place.workspace, ".sluice", "store");
  const runIds = (): Promise<readonly string[]> =>
    lookAt(store, async (host) => (await host.list()).map((run) => run.runId));
  const runId = async (): Promise<string> => {
    const [run = "", ...others] = await runIds();
    expect(others).toEqual([]);
    return run;
  };
  return {
    ...place,
    elsewhere,
    runId,
    runIds,
    script: (stages) => writeFileSync(file, JSON.stringify({ stages })),
    write(path, text) {
      const whole = join(place.workspace, path);
      mkdirSync(dirname(whole), { recursive: true });
      writeFileSync(whole, text);
    },
    read: (path) => readFileSync(join(place.workspace, path), "utf8"),
    async open(args = [], options = {}) {
      const app = place.sluice(["--model", `scripted:${file}`, ...args], { columns: 100, rows: 30, ...options });
      await app.waitFor("/ for commands");
      return app;
    },
    async events(run) {
      const id = run ?? (await runId());
      return await lookAt(store, async (host) => {
        const events: SluiceEvent[] = [];
        for await (const event of host.events(id, { children: true })) events.push(event);
        return events;
      });
    },
  };
}

/** The data of the events of one type, in order. */
export function dataOf(events: readonly SluiceEvent[], type: SluiceEvent["type"]): readonly JsonObject[] {
  return events.filter((event) => event.type === type).map(({ data }) => data);
}

/** What a person does between two keys. The app tells keys that are meant from others by the time between them. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Types a line and submits it. */
export async function submit(app: TerminalProcess, line: string): Promise<void> {
  app.type(line);
  await app.waitFor(line.slice(-40));
  app.key("enter");
  // What follows at once would count as pasted.
  await app.waitFor("/ for commands");
}

/** Waits for a card and turns to it, as a person does who has read it. */
export async function turnToCard(app: TerminalProcess): Promise<void> {
  await app.waitFor(/▌ [□■]/);
  for (let tries = 0; !app.screen().some((row) => row.startsWith("▌ ■")); tries += 1) {
    if (tries === 20) throw new Error(`the card takes no keys\n${app.picture()}`);
    await pause(ARMED_AFTER_MS);
    app.key("tab");
    await pause(MEANT_AFTER_MS);
  }
}

/** Answers the card that is up by the choice with this name. */
export async function choose(app: TerminalProcess, option: string, way: KeyName): Promise<void> {
  await turnToCard(app);
  await pause(ARMED_AFTER_MS);
  while (!app.screen().some((row) => row.startsWith(`▌ ❯ ${option}`))) {
    const before = app.screen().join("\n");
    app.key(way);
    await app.waitFor((screen) => screen !== before, `the choice after ${way}`);
  }
  await pause(MEANT_AFTER_MS);
  app.key("enter");
}

/** Says yes to a question of the app's own. */
export async function sayYes(app: TerminalProcess, title: string): Promise<void> {
  await app.waitFor(title);
  await pause(ARMED_AFTER_MS);
  app.key("down");
  await app.waitFor(/❯ (Yes|Trust|Start)/);
  await pause(MEANT_AFTER_MS);
  app.key("enter");
}

/** Leaves the app, and looks at what it did to the terminal. */
export async function leave(app: TerminalProcess): Promise<void> {
  app.key("ctrl+d");
  expect(await app.end()).toEqual({ code: 0, signal: undefined });
  expectUnharmed(app);
}

/** Nothing was wiped, nothing was left switched on, and no frame stayed behind. */
export function expectUnharmed({ bytes, lines }: TerminalProcess): void {
  expect([bytes.scrollbackWiped(), bytes.screenCleared(), bytes.reset()]).toEqual([0, 0, 0]);
  expect(bytes.left()).toEqual([]);
  expect(bytes.osc()).toEqual([]);
  expect(lines().filter((line) => line.startsWith("▌") || line.includes("/ for commands"))).toEqual([]);
}

/** Calls that end each stage of codeReview. */
export const PLANNED: ScriptTurn = {
  calls: [{ tool: "submit_plan", input: { summary: "the plan", steps: ["a step"], files: ["a.txt"], risks: [] } }],
};
export const CHANGED: ScriptTurn = {
  calls: [{ tool: "submit_diff", input: { summary: "the change", changes: [], deviations: [] } }],
};
export const REVIEWED: ScriptTurn = {
  calls: [{ tool: "submit_review", input: { verdict: "approve", summary: "the review", findings: [] } }],
};

/** One Edit of a.txt. */
export function edit(from: string, to: string): ScriptTurn {
  return {
    text: `Now ${from} becomes ${to}.`,
    calls: [{ tool: "Edit", input: { file_path: "a.txt", old_string: from, new_string: to } }],
  };
}

export const READ: ScriptTurn = { text: "First I read it.", calls: [{ tool: "Read", input: { file_path: "a.txt" } }] };
