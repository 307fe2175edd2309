// What a command printed: the part that states read, and the file with all of it.

import { constants } from "node:fs";
import { mkdir, open, realpath, rm, writeFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { type ActScope, type Json, parseJson } from "@sluice/core";
import { jsonFault, rootRunId, type SecretFilter, sha256 } from "@sluice/core/runtime";
import { LiveText } from "../../secrets/cut-text.ts";
import { systemCode } from "../../tools/files/results.ts";
import { headTail } from "../../tools/files/text.ts";

/** Characters of a stream that an output has. */
export const SHOWN = 16_000;
/** Errors are at the end. */
const HEAD = Math.floor(SHOWN * 0.3);
/** Characters that are kept of each end of a stream, which is all of most. */
const KEPT_HALF = 5_000_000;
/** In the workspace: tools may read it, and no tool may write there. */
const OUTPUT_FOLDER = ".sluice/output";

/** Both streams of a command. */
export type Streams = {
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutFile?: string;
  readonly stderrFile?: string;
};
export const NO_STREAMS: Streams = { stdout: "", stderr: "" };

/** Collects both streams of a command without its secrets: they are masked before anything is cut, which could halve one. */
export function collectStreams(secrets: SecretFilter) {
  return { stdout: collectStream(secrets), stderr: collectStream(secrets) };
}

function collectStream(secrets: SecretFilter) {
  const kept = headTail(KEPT_HALF);
  const masked = new LiveText(secrets, (text) => kept.push(text));
  return {
    push: (text: string): void => masked.push(text),
    /** What was printed, up to the limit. Nothing more may be pushed. */
    text: (): string => {
      masked.end();
      return kept.text();
    },
  };
}

/** Both streams, each cut to what states read. All of a stream that is cut is in a file. */
export async function cutStreams(
  scope: Pick<ActScope, "ctx" | "executionId">,
  texts: { readonly stdout: string; readonly stderr: string },
  step: string,
): Promise<Streams> {
  const name = step.replaceAll("/", "-");
  const [stdout, stderr] = await Promise.all([
    cutStream(scope, texts.stdout, `${name}.stdout.txt`),
    cutStream(scope, texts.stderr, `${name}.stderr.txt`),
  ]);
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    ...(stdout.file === undefined ? {} : { stdoutFile: stdout.file }),
    ...(stderr.file === undefined ? {} : { stderrFile: stderr.file }),
  };
}

async function cutStream(
  scope: Parameters<typeof cutStreams>[0],
  text: string,
  name: string,
): Promise<{ readonly text: string; readonly file?: string }> {
  if (text.length <= SHOWN) return { text };
  const saved = await save(scope, name, text);
  const where = "file" in saved ? `all of it is in ${saved.file}` : `it could not be saved: ${saved.fault}`;
  return { text: cut(text, where), ...("file" in saved ? { file: saved.file } : {}) };
}

/** The head and the tail of a text that is longer than an output may be. */
function cut(text: string, note: string): string {
  const head = text.slice(0, HEAD);
  const tail = text.slice(HEAD - SHOWN);
  return `${head}\n… [${text.length - SHOWN} characters omitted; ${note}] …\n${tail}`.toWellFormed();
}

/** Removes what commands of finished runs printed in this workspace. */
export async function removeOutputs(workspace: string, runIds: readonly string[]): Promise<void> {
  for (const runId of runIds) {
    const folder = folderOf(workspace, runId);
    if ((await linkless(folder)) === true) await rm(folder, { recursive: true, force: true });
  }
}

function folderOf(workspace: string, runId: string): string {
  return join(workspace, OUTPUT_FOLDER, encodeURIComponent(rootRunId(runId)));
}

/** Whether a folder is where its path says: behind a link, it would be elsewhere. Undefined if there is none. */
async function linkless(folder: string): Promise<boolean | undefined> {
  try {
    return (await realpath(folder)) === folder;
  } catch (thrown) {
    if (systemCode(thrown) !== "ENOENT") throw thrown;
    return undefined;
  }
}

/** Writes a stream to a file of its run. A fault of the disk is not a fault of the command. */
async function save(
  { ctx, executionId }: Pick<ActScope, "ctx" | "executionId">,
  name: string,
  text: string,
): Promise<{ readonly file: string } | { readonly fault: string }> {
  const { workspace, runId, attempt } = ctx;
  const [, ...child] = runId.split("/");
  const folder = folderOf(workspace, runId);
  const file = join(folder, [...child.map(fileName), executionId, attempt, name].join("."));
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if ((await linkless(folder)) !== true) return { fault: `${OUTPUT_FOLDER} is a link` };
    await ignored(join(workspace, OUTPUT_FOLDER));
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
    const handle = await open(file, flags, 0o600);
    try {
      await handle.writeFile(text);
    } finally {
      await handle.close();
    }
    return { file: relative(workspace, file).split(sep).join("/") };
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === undefined) throw thrown;
    return { fault: code };
  }
}

/** A part of a run's id in the name of a file. The keys of items may have more bytes than such a name. */
function fileName(part: string): string {
  const encoded = encodeURIComponent(part);
  if (encoded.length <= LONGEST_PART) return encoded;
  return `${encoded.slice(0, LONGEST_PART - KEPT_DIGITS)}${sha256(part).slice(0, KEPT_DIGITS)}`;
}

const LONGEST_PART = 60;
const KEPT_DIGITS = 16;

/** Keeps a folder out of the project's repository. */
async function ignored(folder: string): Promise<void> {
  try {
    await writeFile(join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch (thrown) {
    if (systemCode(thrown) !== "EEXIST") throw thrown;
  }
}

/** What standard output says: JSON as it is in an object or list; other JSON, and text, as `result`; nothing as {}. */
export function parsedOutput(text: string): Json {
  if (text === "") return {};
  const value = asJson(text);
  return typeof value === "object" && value !== null ? value : { result: value };
}

/** The same of a command that is asked again and again, whose text is a report for people. */
export function parsedObject(text: string): Json {
  const value = asJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

function asJson(text: string): Json {
  const read = parseJson(text);
  // What is nested too deep, or names keys that JSON of ours may not have, stays text.
  return read.ok && jsonFault(read.value) === undefined ? read.value : text;
}
