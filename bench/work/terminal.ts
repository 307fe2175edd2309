import { fileURLToPath } from "node:url";
import { type PacedReply, type PacedServer, startPacedServer } from "../../test/support/paced-server.ts";
import { startTerminal, type TerminalProcess } from "../../test/support/terminal.ts";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { scratch } from "../session.ts";
import { cpuOf } from "./process-cpu.ts";

const command = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url));
const UPDATES_A_SECOND = 100;
const KEY_EVERY_MS = 250;
const LINES = 5_000;

function environment(home: string, more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return { PATH: process.env.PATH ?? "", HOME: home, TERM: "xterm-256color", ...more };
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** First a turn of five thousand lines at once, then one that streams during the measurement. */
function replies(lines: number): (body: object, n: number) => PacedReply {
  const transcript = Array.from({ length: lines }, (_, at) => `- line ${at} of what the model said before\n`).join("");
  const sentence = "and it runs on with a few more words that mean nothing. ".split(/(?<= )/);
  const long = Array.from(
    { length: 60_000 },
    (_, at) => `${sentence[at % sentence.length]}${at % 40 === 39 ? "\n\n" : ""}`,
  );
  return (_body, n) =>
    n === 0 ? { text: [transcript], call: { name: "Glob", input: { pattern: "*" } } } : { text: long };
}

/** The app with a streaming model: its CPU, and the time from a key to the screen. */
export async function streamingApp({ quick }: WorkloadOptions): Promise<Workload> {
  const home = scratch();
  const server = await startPacedServer(UPDATES_A_SECOND, replies(quick ? 200 : LINES));
  const env = environment(home, { ANTHROPIC_API_KEY: "sk-bench", ANTHROPIC_BASE_URL: server.url });
  const app = startTerminal(process.execPath, [command, "--model", "anthropic/bench"], {
    columns: 120,
    rows: 40,
    cwd: home,
    env,
  });
  await app.waitFor("/ for commands");
  app.type("/run codeReview anything");
  await app.waitFor("codeReview anything");
  app.key("enter");
  await app.waitFor("turn 2 of 20");
  const windowMs = quick ? 1_000 : 5_000;
  return {
    warmUps: 1,
    slice: async () => {
      const printed = await window(app, server, windowMs);
      app.key("ctrl+o");
      await app.waitFor("Esc closes");
      const before = cpuOf(app.pid);
      const started = performance.now();
      await pause(windowMs);
      const read = (cpuOf(app.pid) - before) / (performance.now() - started);
      app.key("escape");
      await app.waitFor((screen) => !screen.includes("Esc closes"), "the transcript closed");
      return { units: 1, facts: { ...printed, readingPercent: read * 100 } };
    },
    close: async () => {
      app.close();
      await server.close();
    },
  };
}

/** A few seconds of streaming while keys are typed. */
async function window(
  app: TerminalProcess,
  server: PacedServer,
  windowMs: number,
): Promise<Readonly<Record<string, number>>> {
  const latencies: number[] = [];
  const cpu = cpuOf(app.pid);
  const bytes = app.bytes.length();
  const sent = server.sent.length;
  const started = performance.now();
  let typed = "";
  while (performance.now() - started < windowMs) {
    const letter = String.fromCharCode(97 + (typed.length % 26));
    const pressed = performance.now();
    typed += letter;
    app.type(letter);
    await app.waitFor(`❯ ${typed}`);
    const took = performance.now() - pressed;
    latencies.push(took);
    await pause(Math.max(0, KEY_EVERY_MS - took));
  }
  const seconds = (performance.now() - started) / 1_000;
  const used = cpuOf(app.pid) - cpu;
  app.key("ctrl+u");
  await app.waitFor("/ for commands");
  latencies.sort((one, other) => one - other);
  return {
    cpuPercent: used / (seconds * 10),
    keyMs: latencies[Math.floor(latencies.length * 0.5)] ?? Number.NaN,
    keyP95Ms: latencies[Math.floor(latencies.length * 0.95)] ?? Number.NaN,
    updates: (server.sent.length - sent) / seconds,
    kilobytes: (app.bytes.length() - bytes) / seconds / 1_000,
  };
}

/** From the start of a process to the first frame that accepts input, compared with a Node that prints one word. */
export async function firstPaint(_options: WorkloadOptions): Promise<Workload> {
  const home = scratch();
  const shown = async (
    args: readonly string[],
    text: string,
  ): Promise<{ readonly ms: number; readonly cpuMs: number }> => {
    const started = performance.now();
    const terminal = startTerminal(process.execPath, args, {
      columns: 120,
      rows: 40,
      cwd: home,
      env: environment(home),
    });
    await terminal.waitFor(text);
    const took = { ms: performance.now() - started, cpuMs: cpuOf(terminal.pid) };
    terminal.close();
    return took;
  };
  return {
    warmUps: 1,
    slice: async () => {
      const bare = await shown(["-e", "console.log('ready'); setTimeout(() => {}, 10_000)"], "ready");
      const paint = await shown([command, "--model", "scripted:none.json"], "/ for commands");
      return { units: 1, facts: { bareMs: bare.ms, paintMs: paint.ms, paintCpuMs: paint.cpuMs } };
    },
  };
}
