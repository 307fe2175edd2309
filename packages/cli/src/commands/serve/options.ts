import { type Command, InvalidArgumentError } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { duration, wholeNumber, withCommonOptions } from "../../options.ts";
import { type LoopbackAddress, parseLoopback } from "./loopback.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(
    command,
    "sluice serve",
    "sluice serve --store /var/lib/sluice --metrics 127.0.0.1:9500",
    "sluice serve --no-metrics --json",
  )
    .description(
      "Wakes the runs of a store at their time, until it is stopped: runs that sleep, runs for which an answer or a message arrived, and runs whose process died after they had slept. Runs of all projects in the store are continued as sluice resume does. Requests stay open for sluice answer. One process at a time serves a store. SIGTERM and SIGINT suspend the runs, which are due again at once, and end it with exit code 0; a second signal ends it at once. Health and metrics are on loopback addresses only.",
    )
    .option("--max-parallel <n>", "maximum number of runs that are awake at once (default: 16)", wholeNumber(1))
    .option("--poll <duration>", "the longest time without a look at the store, 30s at most (default: 30s)", pollTime)
    .option("--metrics <address>", "the loopback address of /healthz and /metrics (default: 127.0.0.1:9464)", address)
    .option("--no-metrics", "open no port")
    .option("--json", "the same as --output-format stream-json")
    .action(context.acts(async () => (await import("./action.ts")).serve));
}

const LONGEST_POLL_MS = 30_000;
const SHORTEST_POLL_MS = 100;

function pollTime(text: string): number {
  const ms = duration(text);
  if (ms >= SHORTEST_POLL_MS && ms <= LONGEST_POLL_MS) return ms;
  throw new InvalidArgumentError("Expected a duration from 100ms to 30s.");
}

function address(text: string): LoopbackAddress {
  const parsed = parseLoopback(text);
  if (parsed !== undefined) return parsed;
  throw new InvalidArgumentError(
    "Expected a loopback address with a port, such as 127.0.0.1:9464: metrics are never public. Put a proxy in front to publish them.",
  );
}
