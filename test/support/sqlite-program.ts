import { appendFileSync } from "node:fs";
import { field, type Json, type ProgramEnd, type StepRunner } from "@sluice/core";

/** A small run: notes what really happens in a log beside the journal, so that a repeated effect shows. */
export interface Input {
  readonly log: string;
  /** Where this process is to kill itself, once: the log says whether it did. */
  readonly dieIn?: string;
  readonly ask?: boolean;
  readonly fork?: boolean;
}

function readInput(input: Json): Input {
  const [log, dieIn] = [field(input, "log"), field(input, "dieIn")];
  if (typeof log !== "string") throw new Error("the input names no log");
  return {
    log,
    ask: field(input, "ask") === true,
    fork: field(input, "fork") === true,
    ...(typeof dieIn === "string" ? { dieIn } : {}),
  };
}

export async function program(steps: StepRunner, json: Json): Promise<ProgramEnd> {
  const input = readInput(json);
  const at = async (stepId: string): Promise<string> =>
    await steps.run(
      stepId,
      (call) => {
        // What a writing call does: an open record of an earlier process means that it may have acted.
        if (call.opened !== undefined && call.opened.incarnation !== steps.incarnation) return "outcome_unknown";
        appendFileSync(input.log, `${steps.runId}/${stepId}\n`);
        if (input.dieIn === `${steps.runId}/${stepId}`) process.kill(process.pid, "SIGKILL");
        return "done";
      },
      { open: { events: [] } },
    );

  const values: Json[] = [await at("one"), await at("two")];
  if (input.fork === true) {
    const child = { log: input.log, ...(input.dieIn === undefined ? {} : { dieIn: input.dieIn }) };
    const children = ["lint", "test"].map((key) => ({ key, input: child, events: [] }));
    const settled = await steps.runChildren("fan", children, {
      onFailure: "cancel",
      failed: () => false,
      open: { events: [] },
      joined: () => [],
    });
    values.push(Object.fromEntries(Object.entries(settled).map(([key, end]) => [key, end.value])));
  }
  if (input.ask === true) {
    const data = { requestId: "q1", kind: "askUser", digest: "d1", body: { question: "go on?" } };
    await steps.run("ask", () => null, { open: { events: [{ type: "request.opened", data }] } });
    const answer = await steps.waitForSignal("request/q1");
    if (answer === undefined) return { status: "cancelled", value: null, events: [] };
    await steps.run("asked", (call) => {
      call.event({ type: "request.answered", data: { requestId: "q1", by: answer.by } });
      return null;
    });
    values.push({ answer: answer.payload, by: answer.by });
  }
  values.push(await at("three"));
  return { status: "completed", value: values, events: [] };
}
