import { formatIn } from "./output/output.ts";
import { createTerminal } from "./output/terminal.ts";
import { runCommand } from "./program.ts";

/** How long the process stays for what is still at work after its result was written. */
const LINGER_MS = 1_000;
const OUTPUT_LOST = 4;
const CRASHED = 1;

const terminal = createTerminal(process);
const args = process.argv.slice(2);
const context = { env: process.env, here: process.cwd(), terminal };
// What code of a project throws where nobody catches it may quote a key, and Node would print it as it is.
process.on("uncaughtException", (thrown) => {
  import("./output/failure.ts").then(({ reportFailure }) => {
    // When the app has given the terminal back.
    process.once("exit", () => void reportFailure(thrown, formatIn(args), context));
    process.exit(CRASHED);
  }, process.abort);
});
const exitCode = await runCommand(args, context);
const fault = await terminal.flush();
if (fault !== undefined) terminal.err(`sluice: the result could not be written: ${fault}\n`);
process.exitCode = fault === undefined ? exitCode : OUTPUT_LOST;
// A tool that ignores its abort must not keep the command; a process with nothing left to do is gone before this.
setTimeout(() => process.exit(), LINGER_MS).unref();
