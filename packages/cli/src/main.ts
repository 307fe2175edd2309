import { createTerminal } from "./output/terminal.ts";
import { runCommand } from "./program.ts";

/** How long the process waits for unfinished work after it has written its result. */
const LINGER_MS = 1_000;
const OUTPUT_LOST = 4;
const CRASHED = 1;

const terminal = createTerminal(process);
const args = process.argv.slice(2);
const context = { env: process.env, here: process.cwd(), terminal };
// An uncaught error of project code may quote a key, which Node would print.
process.on("uncaughtException", (thrown) => {
  import("./output/failure.ts").then(({ failureOutputIn, reportFailure }) => {
    // After the app has restored the terminal.
    process.once("exit", () => void reportFailure(thrown, failureOutputIn(args, context), context));
    process.exit(CRASHED);
  }, process.abort);
});
const exitCode = await runCommand(args, context);
const fault = await terminal.flush();
if (fault !== undefined) terminal.err(`sluice: the result could not be written: ${fault}\n`);
process.exitCode = fault === undefined ? exitCode : OUTPUT_LOST;
// A tool that ignores its abort signal must not keep the process alive; an idle process exits earlier.
setTimeout(() => process.exit(), LINGER_MS).unref();
