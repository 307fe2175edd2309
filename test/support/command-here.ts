import { Readable, Writable } from "node:stream";
import type { Terminal } from "../../packages/cli/src/output/terminal.ts";
import { runCommand } from "../../packages/cli/src/program.ts";
import {
  type Desk,
  desk,
  type Ended,
  finishes,
  PIPELINES,
  printed,
  type SluiceOptions,
  surroundingsOf,
  textAt,
} from "./command.ts";

/** What a command does is run in this process, where starting another one would prove nothing. */
export interface DeskHere extends Omit<Desk, "sluice" | "start"> {
  sluice(args: readonly string[], options?: Pick<SluiceOptions, "env" | "cwd">): Promise<Ended>;
}

export function deskHere(): DeskHere {
  const { folder, store, write, script } = desk();
  return { folder, store, write, script, sluice: sluiceHere(folder) };
}

/** The command in a folder of a desk, in this process. */
export function sluiceHere(folder: string): DeskHere["sluice"] {
  const surroundings = surroundingsOf(folder);
  return async (args, { env = {}, cwd = folder } = {}) => {
    const said = { stdout: "", stderr: "" };
    const terminal: Terminal = {
      out: (text) => {
        said.stdout += text;
      },
      err: (text) => {
        said.stderr += text;
      },
      paint: (_stream, _tone, text) => text,
      interactive: false,
      input: Readable.from([]),
      prompts: new Writable({ write: (_chunk, _encoding, done) => done() }),
      controlling: () => undefined,
      facts: () => ({
        stdin: false,
        stdout: false,
        stderr: false,
        columns: undefined,
        rows: undefined,
        colourBits: 1,
      }),
      flush: async () => undefined,
    };
    const code = await runCommand(args, { env: { ...surroundings, ...env }, here: cwd, terminal });
    return { code, ...said };
  };
}

/** A run with a fan-out of two, finished, in the store of the desk. */
export async function forkedRun(here: DeskHere, task = "x"): Promise<string> {
  const model = here.script({ start: [finishes()], left: [finishes()], right: [finishes()], join: [finishes("end")] });
  const ended = await here.sluice(["run", `${PIPELINES}#forked`, task, "--model", model, "--output-format", "json"]);
  return textAt(printed(ended), "runId");
}
