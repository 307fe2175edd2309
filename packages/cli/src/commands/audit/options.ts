import { type Command, Option } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, withCommonOptions } from "../../options.ts";
import type { AuditRequest } from "./action.ts";

export function addAudit(program: Command, context: CommandRun): void {
  withCommonOptions(program.command("audit"))
    .summary("show and verify a run's journal, or an export of it")
    .description(
      "Shows every event of a run and its children in the order they were written, children indented, with who decided and why. --verify recomputes the chain of hashes and finds any record that was changed, removed, added or moved. Whoever can rewrite the whole store can also compute new hashes: keep the head elsewhere and give it as --head. Tamper-evident, not tamper-proof.",
    )
    .argument("<run|file>", "the run's id, or an export: a path that ends in .jsonl, or begins with /, ./ or ../")
    .option("--verify", "check the journal; exit 1 when it is not as it was written")
    .option("--head <hash>", "verify, and compare with a head that was kept elsewhere")
    .option("--json", "the same as --output-format json: one document {runId, head, records, verified, faults, events}")
    .option("--stage <state>", "only what happened in this state")
    .option("--tool <name>", "only what concerns this tool")
    .addOption(new Option("--verdict <verdict>", "only what was decided so").choices(["approved", "refused"]))
    .addHelpText(
      "after",
      examples(
        "sluice audit r7k2m9x4ab",
        "sluice audit r7k2m9x4ab --verify",
        "sluice audit r7k2m9x4ab.jsonl --head <hash>",
        "sluice audit r7k2m9x4ab --stage plan --verdict refused",
        "sluice audit r7k2m9x4ab --json > audit.json",
      ),
    )
    .action((of: string, flags: AuditRequest["flags"]) =>
      context.exitWith(import("./action.ts").then(({ audit }) => audit({ of, flags }, context))),
    );
}
