import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { withCommonOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withCommonOptions(
    command,
    "sluice audit r7k2m9x4ab",
    "sluice audit r7k2m9x4ab --verify",
    "sluice audit r7k2m9x4ab.jsonl --head <hash>",
    "sluice audit r7k2m9x4ab --stage plan --verdict refused",
    "sluice audit r7k2m9x4ab --json > audit.json",
  )
    .description(
      "Shows every event of a run and its child runs in the order they were written, children indented, with who decided and why. --verify recomputes the hash chain and finds every record that was changed, removed, added or moved. A process that can rewrite the whole store can also compute new hashes: keep the head elsewhere and pass it as --head. The journal is tamper-evident, not tamper-proof.",
    )
    .argument(
      "<run|file>",
      "the run's id or a unique beginning of it, or an export: a path that ends in .jsonl, or begins with /, ./ or ../",
    )
    .option("--verify", "verify the journal; exit with code 1 if it was changed")
    .option("--head <hash>", "verify, and compare with a head that you kept elsewhere")
    .option("--json", "the same as --output-format json: one document {runId, head, records, verified, faults, events}")
    .option("--stage <state>", "only events of this state")
    .option("--tool <name>", "only events that concern this tool")
    .addOption(new Option("--verdict <verdict>", "only entries with this verdict").choices(["approved", "refused"]))
    .action(context.acts(async () => (await import("./action.ts")).audit));
}
