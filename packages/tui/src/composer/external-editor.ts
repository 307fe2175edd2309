import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { messageOf } from "@sluice/core/runtime";
import type { Environment } from "../user/environment.ts";
import { MAX_TEXT } from "./editing/editor.ts";

export type EditedOutside =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly fault: string };

/** Largest possible size of a valid text, in bytes. */
const MAX_BYTES = 4 * MAX_TEXT;

/** Edits a text in VISUAL, EDITOR or the first default editor found, which uses the terminal meanwhile. Removes its temporary file. */
export async function editOutside(text: string, env: Environment): Promise<EditedOutside> {
  const command = editorCommand(env);
  if (!command.ok) return command;
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), "sluice-edit-"));
    const file = join(folder, "input.md");
    writeFileSync(file, text, { mode: 0o600, flag: "wx" });
    const fault = await run(command.program, [...command.args, file], env);
    if (fault !== undefined) return { ok: false, fault };
    if (statSync(file).size > MAX_BYTES) return { ok: false, fault: "the edited text is too long and was not used" };
    return { ok: true, text: edited(readFileSync(file, "utf8"), text) };
  } catch (thrown) {
    return { ok: false, fault: `the text could not be edited: ${messageOf(thrown)}` };
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

type EditorCommand =
  | { readonly ok: true; readonly program: string; readonly args: readonly string[] }
  | { readonly ok: false; readonly fault: string };

function editorCommand(env: Environment): EditorCommand {
  const name = ["VISUAL", "EDITOR"].find((variable) => (env[variable]?.trim() ?? "") !== "");
  if (name !== undefined) {
    const [program = "", ...args] = words(env[name] ?? "");
    return program === "" ? { ok: false, fault: `${name} names no program` } : { ok: true, program, args };
  }
  if (process.platform === "win32") return { ok: true, program: "notepad", args: [] };
  const defaults = ["vi", "nano"];
  const program = defaults.find((each) => isInstalled(each, env));
  if (program !== undefined) return { ok: true, program, args: [] };
  return { ok: false, fault: `no editor was found (${defaults.join(", ")}); set VISUAL or EDITOR` };
}

function isInstalled(program: string, env: Environment): boolean {
  const folders = (env.PATH ?? "").split(delimiter).filter((folder) => isAbsolute(folder));
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch (thrown) {
      if (thrown instanceof Error && "code" in thrown) return false;
      throw thrown;
    }
  });
}

/** Splits at blanks outside of quotes; backslashes are literal. */
function words(command: string): readonly string[] {
  const found = command.match(/(?:[^\s"']|"[^"]*"|'[^']*')+|["']\S*/g) ?? [];
  return found.map((word) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ""),
  );
}

/** Runs a program on the terminal. Returns the fault, if any. */
function run(file: string, args: readonly string[], env: Environment): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(file, [...args], { stdio: "inherit", env: { ...env } });
    child.once("error", (error) => resolve(`${file} could not be started: ${error.message}`));
    child.once("exit", (code, signal) => {
      if (code === 0) resolve(undefined);
      else resolve(`${file} ended with ${signal ?? `exit code ${code ?? "unknown"}`}; the text is unchanged`);
    });
  });
}

/** Removes the line break that editors add at the end. */
function edited(read: string, before: string): string {
  const text = read.replace(/^\uFEFF/, "").replaceAll(/\r\n?/g, "\n");
  return text.endsWith("\n") && !before.endsWith("\n") ? text.slice(0, -1) : text;
}
