import { type Command, InvalidArgumentError, Option } from "commander";
import { OUTPUT_FORMATS } from "./output/output.ts";

/** --output-format, --store and --cwd: every subcommand has them. */
export function withCommonOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--output-format <format>", "how the result is written").choices(OUTPUT_FORMATS).default("text"),
    )
    .option("--store <dir>", "the folder that holds the journals (default: .sluice/store in the workspace)")
    .option("--cwd <dir>", "the workspace (default: the folder you are in)");
}

/** What `run` and `resume` share. */
export function withWorkOptions(command: Command): Command {
  return withCommonOptions(command)
    .option(
      "--model <provider/model>",
      "the model of all stages that name none (default: SLUICE_MODEL, else the project's, else by the keys that are set)",
    )
    .option("--record <file>", "write what all models are asked and answer to a file, for --model cassette:<file>")
    .option("--headless", "ask nobody, also on a terminal: what needs a person is denied")
    .option(
      "--wait [duration]",
      "keep requests open for sluice answer; with a duration (--wait=30m) suspend the run when nobody answered in that time",
      waitTime,
    )
    .addOption(
      new Option("--mode <mode>", "what decides in stages that have no envelope (default: ask)").choices([
        "ask",
        "allowlist",
        "yolo",
      ]),
    )
    .option(
      "--allow <pattern>",
      "a tool pattern for --mode allowlist, such as 'Bash(npm test *)'; may be repeated",
      collect,
    )
    .option("--max-parallel <n>", "stages at work at once (default: 4)", positiveInteger)
    .addOption(
      new Option(
        "--sandbox <mode>",
        "what commands run behind: try uses an OS sandbox where one can be built (default), require runs none without one, off uses none",
      ).choices(["require", "try", "off"]),
    )
    .option("--adopt-store", "take over a store that was moved here from another machine")
    .option("--fail-on-denied", "exit 5 when the run completed but calls were denied")
    .option("--trust", "trust the config and the pipelines of this folder as they are now")
    .option("--no-config", "leave sluice.config.* of this folder alone");
}

/** Of the commands that go on with a run. */
export const ALLOW_CHANGED = "--allow-changed";
export const ALLOW_CHANGED_HELP =
  "go on although the pipeline, its config or its tools are not what the run was started with";

export function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

export function positiveInteger(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError("It is a whole number from 1.");
  return number;
}

export function wholeNumber(text: string): number {
  const number = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(number) || number < 0)
    throw new InvalidArgumentError("It is a whole number from 0.");
  return number;
}

/** The beginning of a SHA-256, in lower case. */
export function digestDigits(text: string): string {
  if (!/^[0-9a-f]{6,64}$/i.test(text))
    throw new InvalidArgumentError("It is the first 6 to 64 hex digits of a digest.");
  return text.toLowerCase();
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** True for a bare --wait, which `withBareWait` writes as `--wait=`; else milliseconds. */
function waitTime(text: string): true | number {
  return text === "" ? true : duration(text);
}

/** A time in milliseconds. */
export function duration(text: string): number {
  const [, amount = "", unit = ""] = DURATION.exec(text) ?? [];
  const ms = Math.round(Number(amount) * (UNITS[unit] ?? 0));
  if (ms > 0 && Number.isSafeInteger(ms)) return ms;
  throw new InvalidArgumentError("It is a time such as 45s, 30m, 2h or 7d.");
}

/** A bare --wait takes the next word only when that is a duration: else the pipeline's name would be taken for one. */
export function withBareWait(args: readonly string[]): readonly string[] {
  const end = args.indexOf("--");
  const isBare = (at: number): boolean => args[at] === "--wait" && (end === -1 || at < end);
  return args.flatMap((word, at): readonly string[] => {
    if (isBare(at)) return [`--wait=${DURATION.test(args[at + 1] ?? "") ? args[at + 1] : ""}`];
    return isBare(at - 1) && DURATION.test(word) ? [] : [word];
  });
}

export const EXIT_CODES = `
Exit codes:
  0  completed            3  suspended, to be resumed
  1  failed or cancelled  4  something is missing or not free: model, key, store, run
  2  usage or definition  5  completed with denied calls, under --fail-on-denied
  130 and 143: stopped by SIGINT or SIGTERM; the run is suspended and can be resumed
`;

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}\n`;
}
