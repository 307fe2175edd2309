import type { JsonObject } from "@sluice/core";
import { call, type Ended, turn } from "./command.ts";
import type { DeskHere } from "./command-here.ts";

/** A workflow of one working state, which writes notes. */
export const NOTE = `id: note
initial: writing
context: { risk: low }
states:
  writing:
    allowed_tools: [Read, "Write(notes/**)"]
    instructions: Write about {{ctx.task}}.
    on:
      WRITTEN:
        - { target: complete, guard: low_risk }
        - { target: failed }
      GIVE_UP: failed
  complete: { type: final, outcome: completed }
  failed: { type: final, outcome: failed }
guards:
  low_risk: { field: risk, op: eq, value: low }
`;

/** The turn that sends an event. */
export function sends(event: string, data: JsonObject = {}): JsonObject {
  return turn(call("transition", { event, data }));
}

/** Turns of `writing` that ask for a tool outside of the envelope, and then send the event. */
export const asksFirst: readonly JsonObject[] = [
  turn(call("Write", { file_path: "elsewhere.md", content: "" })),
  sends("WRITTEN"),
];

/** Runs a pipeline of the desk to its end, with JSON output. */
export async function runNamed(
  here: Pick<DeskHere, "script" | "sluice">,
  name: string,
  turns: readonly JsonObject[],
  ...flags: readonly string[]
): Promise<Ended> {
  const model = here.script({ writing: turns });
  return await here.sluice(["run", name, "a task", "--model", model, "--output-format", "json", ...flags]);
}
