import { Argument, type Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import {
  ALLOW_CHANGED,
  ALLOW_CHANGED_HELP,
  digestDigits,
  EXIT_CODES,
  examples,
  withWorkOptions,
} from "../../options.ts";
import type { AnswerRequest } from "./action.ts";

export function addAnswer(program: Command, context: CommandRun): void {
  withWorkOptions(program.command("answer"))
    .summary("answer a request of a run")
    .description(
      "Answers an open request of a run (sluice show lists them), from any process. approve lets exactly the one call run that was asked about; deny refuses it, and the model reads the reason; defer refuses it for now and tells the model so. A question takes a --value instead. The first answer counts. With --digest, as the lines of sluice show have it, the answer is for what you saw or for nothing. Where the run has started processes without a wall, which could answer like this, an approval or a value needs the --code that the run's own terminal shows. With --resume this process goes on with the run if no other does; the options of sluice resume are for that.",
    )
    .argument("<run>", "the run's id")
    .argument("<request>", "the request's id, or an ending of it that fits no other open request")
    .addArgument(new Argument("[answer]", "the answer to a request for leave").choices(["approve", "deny", "defer"]))
    .option("--reason <text>", "why it is denied; the model reads it")
    .option("--value <json|text>", "the answer to a question; JSON where that fits the question, else text")
    .option(
      "--digest <hex>",
      "the digest of what you looked at, or at least its first 6 digits; a request with another one is not answered",
      digestDigits,
    )
    .option("--code <code>", "the code of the request, as the terminal that runs it shows it; only where one is needed")
    .option("--resume", "go on with the run here, if nobody else does")
    .option(ALLOW_CHANGED, ALLOW_CHANGED_HELP)
    .addHelpText(
      "after",
      examples(
        "sluice answer r7k2m9x4ab t1.c0 approve",
        "sluice answer r7k2m9x4ab t1.c0 --digest 9f86d081884c7d65 approve",
        "sluice answer r7k2m9x4ab t1.c0 --digest 9f86d081884c7d65 --code 7KQ2-XD9V-HTC4-RNB0-W5M8 approve",
        'sluice answer r7k2m9x4ab "plan#1/a1/t1.c0" deny --reason "not before the release"',
        "sluice answer r7k2m9x4ab question --value blue --resume",
      ) + EXIT_CODES,
    )
    .action((runId: string, request: string, kind: AnswerRequest["answer"], flags: AnswerRequest["flags"]) =>
      context.exitWith(
        import("./action.ts").then(({ answer }) => answer({ runId, request, answer: kind, flags }, context)),
      ),
    );
}
