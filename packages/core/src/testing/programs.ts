import assert from "node:assert/strict";
import type { ProgramEnd, RunProgram, StepRunner } from "../journal/seam.ts";
import { ask, cancelled, child, completed, fanOutOptions, statusesOf } from "./world.ts";

/** A root with one fan-out: `children` maps the key of each child to its program. */
export function fanningOut(
  children: Readonly<Record<string, RunProgram>>,
  onFailure: "cancel" | "settle" | "any" = "settle",
): RunProgram {
  return async (steps, input) => {
    const [, , key = ""] = steps.runId.split("/");
    if (key !== "") return await (children[key] ?? assert.fail(`no child ${key}`))(steps, input);
    const ends = await steps.runChildren(
      "fan",
      Object.keys(children).map((each) => child(each)),
      fanOutOptions(onFailure),
    );
    return completed(Object.entries(ends).map(([each, { status, value }]) => [each, status, value]));
  };
}

/** Two levels of fan-outs, with an open question in the deepest child. */
export async function nested(steps: StepRunner): Promise<ProgramEnd> {
  const depth = steps.runId.split("/").length;
  if (depth === 1) {
    const ends = await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
    return steps.signal.aborted ? cancelled(steps) : completed(statusesOf(ends));
  }
  if (steps.runId === "r1/fan/a") return completed();
  if (depth === 3) await steps.runChildren("deep", [child("c")], fanOutOptions());
  else await ask(steps, "q1");
  return steps.signal.aborted ? cancelled(steps) : completed();
}
