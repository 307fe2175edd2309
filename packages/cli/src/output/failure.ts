import { isSluiceError, visible } from "@sluice/core";
import { secretMask } from "@sluice/tui/user";
import type { CommandContext } from "../command-context.ts";
import { exitCodeOfError } from "./exit-codes.ts";
import type { OutputFormat } from "./formats.ts";
import { createReporter } from "./reporter.ts";
import { reportOfError } from "./run-report.ts";

/** Says why a command could not do its work, in the format asked for. Returns the exit code. */
export function reportFailure(thrown: unknown, format: OutputFormat, { env, terminal }: CommandContext): number {
  // No run's filter saw what a file of the project or a provider says when it cannot be loaded.
  const clean = secretMask(env);
  const report = reportOfError(thrown, clean);
  terminal.err(`${terminal.paint("err", "bad", "sluice:")} ${visible(report.error?.message ?? "")}\n`);
  // An error that is not ours is a mistake in Sluice or in user code: its stack says where.
  if (!isSluiceError(thrown) && thrown instanceof Error && thrown.stack !== undefined) {
    terminal.err(`${visible(clean.text(thrown.stack))}\n`);
  }
  if (format !== "text") createReporter(format, terminal).result(report);
  return exitCodeOfError(isSluiceError(thrown) ? thrown.class : undefined);
}
