import { isSluiceError } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import { secretMask } from "@sluice/tui/user";
import type { CommandContext } from "../command-context.ts";
import { exitCodeOfError } from "./exit-codes.ts";
import type { OutputFormat } from "./formats.ts";
import { writeReport } from "./reporter.ts";
import { reportOfError } from "./run-report.ts";

/** Reports an error in the requested format. Returns the exit code. */
export function reportFailure(thrown: unknown, format: OutputFormat, { env, terminal }: CommandContext): number {
  // Errors of project files and providers have not passed the secret filter of a run.
  const clean = secretMask(env);
  const report = reportOfError(thrown, clean);
  terminal.err(`${terminal.paint("err", "bad", "sluice:")} ${visible(report.error?.message ?? "")}\n`);
  // An unexpected error is a bug in Sluice or in user code: show where.
  if (!isSluiceError(thrown) && thrown instanceof Error && thrown.stack !== undefined) {
    terminal.err(`${visible(clean.text(thrown.stack))}\n`);
  }
  if (format !== "text") writeReport(format, terminal, report);
  return exitCodeOfError(isSluiceError(thrown) ? thrown.class : undefined);
}
