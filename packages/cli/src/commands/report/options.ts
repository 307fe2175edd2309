import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, withCommonOptions } from "../../options.ts";
import { ownVersion } from "../../output/version.ts";
import type { ReportRequest } from "./action.ts";

export function addReport(program: Command, context: CommandRun): void {
  withCommonOptions(program.command("report"))
    .summary("write a run as one HTML page")
    .description(
      "Writes one page that needs nothing else, no network and no script: the path a run took, a timeline, every stage with its transcript, tool calls and changes, grants and denials, tokens and money, and the head of its journal. What looks like a secret is replaced, what is long is cut and says so. Exit 1 when the journal is not as it was written; the page says it too.",
    )
    .argument("<run>", "the run's id")
    .option("-o, --output <file>", "where the page is written, - for stdout (default: <run>.html)")
    .option("--force", "replace a file that is there")
    .addHelpText("after", examples("sluice report r7k2m9x4ab -o run.html", "sluice report r7k2m9x4ab -o - > run.html"))
    .action((runId: string, flags: ReportRequest["flags"]) =>
      context.exitWith(
        import("./action.ts").then(({ report }) => report({ runId, flags, version: ownVersion() }, context)),
      ),
    );
}
