import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { startTerminal, type TerminalProcess } from "./terminal.ts";

const ROOT = join(import.meta.dirname, "..", "..");
export const COMMAND = join(ROOT, "packages", "cli", "bin", "sluice.js");
const COMPILED = join(ROOT, "node_modules", ".cache", "compiled");

export interface OpenOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly cwd?: string;
  /** Beside the little that every process here gets. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A home without settings and keys, and an empty folder to work in. Both go when the test ends. */
export interface TerminalPlace {
  readonly home: string;
  readonly workspace: string;
  /** What every process here gets. */
  readonly env: Readonly<Record<string, string>>;
  /** The built command, on the Node that runs the tests. */
  sluice(args: readonly string[], options?: OpenOptions): TerminalProcess;
  /** A program of the tests. */
  node(file: string, args?: readonly string[], options?: OpenOptions): TerminalProcess;
  /** A command of the shell, which ends by saying what state its terminal is in. */
  shell(script: string, options?: OpenOptions): TerminalProcess;
}

export function terminalPlace(): TerminalPlace {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-terminal-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  const workspace = join(folder, "workspace");
  mkdirSync(workspace);
  const shared = {
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    HOME: folder,
    LANG: "C.UTF-8",
    TERM: "xterm-256color",
    // The terminal here is the one of VS Code without its window.
    TERM_PROGRAM: "vscode",
    NODE_COMPILE_CACHE: COMPILED,
  };
  const open = (file: string, args: readonly string[], { env = {}, ...options }: OpenOptions = {}): TerminalProcess => {
    const terminal = startTerminal(file, args, { cwd: workspace, ...options, env: { ...shared, ...env } });
    onTestFinished(() => terminal.close());
    return terminal;
  };
  return {
    home: folder,
    workspace,
    env: shared,
    sluice: (args, options) => open(process.execPath, [COMMAND, ...args], options),
    node: (file, args = [], options) => open(process.execPath, [file, ...args], options),
    shell: (script, options) => open("/bin/sh", ["-c", script], options),
  };
}
