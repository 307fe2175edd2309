import { resolve } from "node:path";
import { isSluiceError, type SourcePlace } from "@sluice/core";
import { placeText, sourcePlaceOf, visible } from "@sluice/core/runtime";
import { type Cleaner, frameOf, secretMask } from "@sluice/tui/user";
import { indented } from "@sluice/view/words";
import type { CommandContext } from "../command-context.ts";
import { exitCodeOfError } from "./exit-codes.ts";
import { cwdIn, debugIn, formatIn, type OutputFormat } from "./formats.ts";
import { writeReport } from "./reporter.ts";
import { reportOfError } from "./run-report.ts";

/** How an error is reported. */
export interface FailureOutput {
  readonly format: OutputFormat;
  /** The folder that places in files are relative to, and whose files may be shown. */
  readonly workspace: string;
  /** Whether stacks and causes are shown. */
  readonly debug: boolean;
}

/** How the errors of a command line are reported. */
export function failureOutputIn(args: readonly string[], { env, here }: CommandContext): FailureOutput {
  return { format: formatIn(args), workspace: resolve(here, cwdIn(args) ?? "."), debug: debugIn(args, env) };
}

/** Reports an error in the requested format: one message with the place and the fix. Returns the exit code. */
export function reportFailure(thrown: unknown, output: FailureOutput, { env, terminal }: CommandContext): number {
  const { format, workspace, debug } = output;
  // Errors of project files and providers have not passed the secret filter of a run.
  const clean = secretMask(env);
  // An error of Sluice says its place itself: its stack leads to what runs this command.
  const place = isSluiceError(thrown) ? thrown.at : sourcePlaceOf(thrown);
  const at = place === undefined ? undefined : clean.text(shownPlace(place, workspace));
  const report = reportOfError(thrown, clean, at);
  terminal.err(`${terminal.paint("err", "bad", "sluice:")} ${visible(report.error?.message ?? "")}\n`);
  if (place !== undefined && at !== undefined) {
    terminal.err(`${visible(`  at ${at}`)}\n`);
    const frame = frameOf(place, workspace, clean.text);
    if (frame !== "") terminal.err(`${indented(frame, "    ")}\n`);
  }
  // Sluice throws only errors of its own: another one without a place in the user's code is a bug in Sluice.
  if (debug || (!isSluiceError(thrown) && place === undefined)) terminal.err(stackText(thrown, clean));
  if (format !== "text") writeReport(format, terminal, report);
  return exitCodeOfError(isSluiceError(thrown) ? thrown.class : undefined);
}

/** Outside of the workspace the whole path: this person has named the file, or its code imports it. */
function shownPlace(place: SourcePlace, workspace: string): string {
  const text = placeText(place, workspace);
  return text.startsWith("…") ? `${place.file}:${place.line}:${place.column}` : text;
}

const MOST_CAUSES = 5;

/** The stacks of an error and its causes. */
function stackText(thrown: unknown, clean: Cleaner): string {
  const stacks: string[] = [];
  for (let error = thrown; error instanceof Error && stacks.length < MOST_CAUSES; error = error.cause)
    stacks.push(`${stacks.length === 0 ? "" : "caused by "}${error.stack ?? error.message}`);
  return visible(clean.text(stacks.map((stack) => `${stack}\n`).join("")));
}
