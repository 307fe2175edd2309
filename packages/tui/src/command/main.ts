import { createTerminal } from "../terminal.ts";
import { runCommand } from "./program.ts";

/** How long the process stays for what is still at work after its result was written. */
const LINGER_MS = 1_000;
const OUTPUT_LOST = 4;

const terminal = createTerminal(process);
const exitCode = await runCommand(process.argv.slice(2), { env: process.env, here: process.cwd(), terminal });
const fault = await terminal.flush();
if (fault !== undefined) terminal.err(`sluice: the result could not be written: ${fault}\n`);
process.exitCode = fault === undefined ? exitCode : OUTPUT_LOST;
// A tool that ignores its abort must not keep the command; a process with nothing left to do is gone before this.
setTimeout(() => process.exit(), LINGER_MS).unref();
