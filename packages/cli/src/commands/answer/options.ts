import { Argument, type Command } from "commander";
import type { CommandRun } from "../../command-context.ts";
import { ALLOW_CHANGED, digestDigits, withWorkOptions } from "../../options.ts";

export function configure(command: Command, context: CommandRun): void {
  withWorkOptions(
    command,
    "sluice answer r7k2m9x4ab t1.c0 approve",
    "sluice answer r7k2m9x4ab t1.c0 --digest 9f86d081884c7d65 approve",
    "sluice answer r7k2m9x4ab t1.c0 --digest 9f86d081884c7d65 --code 7KQ2-XD9V-HTC4-RNB0-W5M8 approve",
    'sluice answer r7k2m9x4ab "plan#1/a1/t1.c0" deny --reason "not before the release"',
    "sluice answer r7k2m9x4ab question --value blue --resume",
  )
    .description(
      "Answers an open request of a run from any process; sluice show lists the requests. approve allows exactly the requested call; deny rejects it, and the model reads the reason; defer rejects it for now. A question takes a --value instead. The first answer counts. With --digest, as sluice show prints it, the answer applies only to the request that you saw. If the run has started processes without a sandbox, which could answer like this, an approval or a value needs the --code from the run's own terminal. With --resume, this process resumes the run if no other process executes it, and the options of sluice resume apply.",
    )
    .argument("<run>", "the run's id, or a unique beginning of it")
    .argument("<request>", "the request's id, or a unique end of it")
    .addArgument(new Argument("[answer]", "the answer to an approval request").choices(["approve", "deny", "defer"]))
    .option("--reason <text>", "the reason for a denial; the model reads it")
    .option("--value <json|text>", "the answer to a question: JSON if it matches the question's schema, else text")
    .option(
      "--digest <hex>",
      "the digest of the request that you saw, or at least its first 6 digits; a request with another digest is not answered",
      digestDigits,
    )
    .option(
      "--code <code>",
      "the request's one-time code, from the terminal of the process that executes the run; only if required",
    )
    .option("--resume", "resume the run here if no other process executes it")
    .option(...ALLOW_CHANGED)
    .action(context.acts(async () => (await import("./action.ts")).answer));
}
