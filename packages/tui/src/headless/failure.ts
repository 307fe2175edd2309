import { isSluiceError, visible } from "@sluice/core";
import type { Terminal } from "../terminal.ts";
import { exitCodeOfError } from "./exit-code.ts";
import type { OutputFormat } from "./format.ts";
import { reportOfError } from "./report.ts";
import { createReporter } from "./reporter.ts";

/** Says why a command could not do its work, in the format asked for. Returns the exit code. */
export function reportFailure(thrown: unknown, format: OutputFormat, terminal: Terminal): number {
  const report = reportOfError(thrown);
  terminal.err(`${terminal.paint("err", "bad", "sluice:")} ${visible(report.error?.message ?? "")}\n`);
  // An error that is not ours is a mistake in Sluice or in user code: its stack says where.
  if (!isSluiceError(thrown) && thrown instanceof Error && thrown.stack !== undefined) {
    terminal.err(`${visible(thrown.stack)}\n`);
  }
  if (format !== "text") createReporter(format, terminal).result(report);
  return exitCodeOfError(isSluiceError(thrown) ? thrown.class : undefined);
}
