import type { Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { examples, withCommonOptions } from "../../options.ts";
import type { DoctorRequest } from "./action.ts";

export function addDoctor(program: Command, context: CommandRun): void {
  withCommonOptions(program.command("doctor"))
    .summary("say what is missing here, and how to mend it")
    .description(
      "Looks at what a run would find in this folder: Node, programs, providers with their keys (never a key's value), the model it would get and why, the store, the project's config and pipelines and whether you trusted them, MCP servers, the terminal. Nothing is changed. The local Ollama is asked, and the MCP servers of a trusted config are started; nothing else is called. Exit 0 when a run can start, 4 when not.",
    )
    .addHelpText(
      "after",
      examples("sluice doctor", "sluice doctor --output-format json", "sluice doctor --cwd ../other-project"),
    )
    .action((flags: DoctorRequest["flags"]) =>
      context.exitWith(import("./action.ts").then(({ doctor }) => doctor({ flags }, context))),
    );
}
