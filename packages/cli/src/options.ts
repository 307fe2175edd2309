import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Command, InvalidArgumentError, Option } from "commander";
import { OUTPUT_FORMATS } from "./output/formats.ts";

/** A file or folder of this package. Bundles of this module lie in `dist`, beside `src`. */
export function ownFile(path: string): string {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}

export function ownVersion(): string {
  const { version }: { readonly version: string } = JSON.parse(readFileSync(ownFile("package.json"), "utf8"));
  return version;
}

export function outputFormatOption(): Option {
  return new Option("--output-format <format>", "output format").choices(OUTPUT_FORMATS).default("text");
}

export function modeOption(help: string): Option {
  return new Option("--mode <mode>", help).choices(["ask", "allowlist", "yolo"]);
}

export function sandboxOption(help: string): Option {
  return new Option("--sandbox <mode>", help).choices(["require", "try", "off"]);
}

function onProviderFaultOption(): Option {
  const help =
    "what follows when a model's provider fails for longer than its retries, or refuses the key or the account, in stages and pipelines that do not say it: suspend the run with exit code 3 (default), or fail the stage";
  return new Option("--on-provider-fault <reaction>", help).choices(["suspend", "fail"]);
}

export const ADOPT_STORE = ["--adopt-store", "adopt a store that was moved here from another machine"] as const;

/** The options of every subcommand except `demo`, and its examples. */
export function withCommonOptions(command: Command, ...lines: readonly string[]): Command {
  if (lines.length > 0) command.addHelpText("after", examples(...lines));
  return command
    .addOption(outputFormatOption())
    .option("--store <dir>", "the folder that holds the journals (default: .sluice/store in the workspace)")
    .option("--cwd <dir>", "the workspace (default: the current folder)");
}

/** Whether the project's own code is loaded. */
export function withCodeOptions(command: Command): Command {
  return command
    .option("--trust", "trust the current config, pipelines and workflows of this folder")
    .option("--no-config", "ignore sluice.config.* of this folder");
}

/** The options, examples and exit codes of the subcommands that execute runs: `run`, `resume`, `fork` and `answer`. */
export function withWorkOptions(command: Command, ...lines: readonly string[]): Command {
  command.addHelpText("after", examples(...lines) + EXIT_CODES);
  return withCodeOptions(
    withCommonOptions(command)
      .option(
        "--model <provider/model>",
        "the model of all stages that set none (default: SLUICE_MODEL, else the project's, else by the keys that are set)",
      )
      .option("--record <file>", "record all model requests and answers to a file, for --model cassette:<file>")
      .option("--headless", "never ask for approval, even on a terminal; calls that need approval are denied")
      .option(
        "--wait [duration]",
        "keep requests open for sluice answer; with a duration (--wait=30m), suspend the run after that time without an answer",
        waitTime,
      )
      .option("--no-wait", "deny requests that no terminal here can answer, also in a run that was started with --wait")
      .addOption(modeOption("what is allowed in stages without an envelope (default: ask)"))
      .option(
        "--allow <pattern>",
        "a tool pattern for --mode allowlist, such as 'Bash(npm test *)'; can be repeated",
        collect,
      )
      .option("--max-parallel <n>", "maximum number of stages that run in parallel (default: 4)", wholeNumber(1))
      .addOption(
        sandboxOption(
          "sandbox for commands: try uses an OS sandbox if one can be built (default), require refuses to run without one, off uses none",
        ),
      )
      .option(
        "--suspend-sleeps",
        "suspend the run as soon as it only sleeps, with exit code 3; sluice serve or sluice wake continues it at its time",
      )
      .addOption(onProviderFaultOption())
      .option("--no-suspend-sleeps", "wait for sleeps here, also in a run that was started with --suspend-sleeps")
      .option(...ADOPT_STORE)
      .option("--fail-on-denied", "exit with code 5 if the run completed with denied calls")
      .option("--no-fail-on-denied", "do not, also in a run that was started with --fail-on-denied"),
  );
}

export const ALLOW_CHANGED = [
  "--allow-changed",
  "resume although the pipeline, its config or its tools changed",
] as const;

export function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

/** A parser of whole numbers. */
export function wholeNumber(least: 0 | 1): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (text.trim() !== "" && Number.isSafeInteger(number) && number >= least) return number;
    throw new InvalidArgumentError(`Expected a whole number of at least ${least}.`);
  };
}

/** True for an option without its number, which `withBareOptions` rewrites to `--option=`; else the number. */
export function optionalNumber(text: string): true | number {
  return text === "" ? true : wholeNumber(1)(text);
}

/** The first digits of a SHA-256 digest, in lower case. */
export function digestDigits(text: string): string {
  if (!/^[0-9a-f]{6,64}$/i.test(text))
    throw new InvalidArgumentError("Expected the first 6 to 64 hex digits of a digest.");
  return text.toLowerCase();
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** True for a bare --wait, which `withBareOptions` rewrites to `--wait=`; else milliseconds. */
export function waitTime(text: string): true | number {
  return text === "" ? true : duration(text);
}

/** Parses a duration to milliseconds. */
export function duration(text: string): number {
  const [, amount = "", unit = ""] = DURATION.exec(text) ?? [];
  const ms = Math.round(Number(amount) * (UNITS[unit] ?? 0));
  if (ms > 0 && Number.isSafeInteger(ms)) return ms;
  throw new InvalidArgumentError("Expected a duration such as 45s, 30m, 2h or 7d.");
}

/** Options whose value may be left out, and the values that they take. */
const OPTIONAL_VALUES: Readonly<Record<string, RegExp>> = {
  "--wait": DURATION,
  "--against-runs": /^\d+$/,
  "--http": /^\d+$/,
};

/** Passes the word after a bare option to it only if it is a value of that option: else commander would pass it a name. */
export function withBareOptions(args: readonly string[]): readonly string[] {
  const end = args.indexOf("--");
  const takenBy = (at: number): RegExp | undefined => {
    const word = args[at] ?? "";
    return (end === -1 || at < end) && Object.hasOwn(OPTIONAL_VALUES, word) ? OPTIONAL_VALUES[word] : undefined;
  };
  return args.flatMap((word, at): readonly string[] => {
    const value = takenBy(at);
    const next = args[at + 1] ?? "";
    if (value !== undefined) return [`${word}=${value.test(next) ? next : ""}`];
    return takenBy(at - 1)?.test(word) === true ? [] : [word];
  });
}

export const EXIT_CODES = `
Exit codes:
  0  completed            3  suspended; can be resumed
  1  failed or cancelled  4  missing or in use: model, key, store or run
  2  usage or definition  5  completed with denied calls, under --fail-on-denied
  130 and 143: stopped by SIGINT or SIGTERM; the run is suspended and can be resumed
`;

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}\n`;
}
