// A model's choice of the state that follows, as it arrives in the arguments of a call.
import type { Issue, Json, JsonObject, RouteTarget } from "@sluice/core";
import { cappedTarget, shortened } from "@sluice/core/runtime";

/** Characters of an input as JSON. */
const LONGEST_INPUT = 100_000;
const LONGEST_NAME = 80;

/** A choice that the run can follow, or why it cannot. */
export type ChoiceReading =
  | { readonly ok: true; readonly output: JsonObject }
  /** `to` is what the model named, as far as it named anything. */
  | { readonly ok: false; readonly to: string; readonly issues: readonly Issue[] };

/** Checks what a model chose. The names of its fields are those of `key`, such as `to`, and `input` and `reason`. */
export async function readChoice(
  given: JsonObject,
  targets: readonly RouteTarget[],
  { key, path }: { readonly key: string; readonly path: string },
): Promise<ChoiceReading> {
  const { [key]: named, input, reason, ...others } = given;
  const to = typeof named === "string" ? shortened(named, LONGEST_NAME) : "";
  const refused = (issues: readonly Issue[]): ChoiceReading => ({ ok: false, to, issues });
  const extra = Object.keys(others).map((name) => ({
    path: `${path}.${shortened(name, LONGEST_NAME)}`,
    message: "is not an argument",
  }));
  if (extra.length > 0) return refused(extra.slice(0, 20));
  const target = targets.find(({ state }) => state === named);
  const names = targets.filter((each) => each.visitsLeft !== 0).map(({ state }) => state);
  if (target === undefined) {
    const what = typeof named === "string" ? `there is no target ${JSON.stringify(to)}` : "it names no target";
    return refused([{ path: `${path}.${key}`, message: `${what}; the targets are ${names.join(", ")}` }]);
  }
  const capped = cappedTarget(target);
  if (capped !== undefined)
    return refused([
      {
        path: `${path}.${key}`,
        message: `${to} cannot be chosen: ${capped}; you can still choose ${names.join(", ")}`,
      },
    ]);
  if (reason !== undefined && reason !== null && typeof reason !== "string")
    return refused([{ path: `${path}.reason`, message: "is not a text" }]);
  const faults = await inputIssues(target, input, `${path}.input`);
  if (faults.length > 0) return refused(faults);
  const said = typeof reason === "string" && reason.trim() !== "" ? { reason } : {};
  return { ok: true, output: { to: target.state, ...(input === undefined ? {} : { input }), ...said } };
}

async function inputIssues(
  { inputSchema }: RouteTarget,
  input: Json | undefined,
  path: string,
): Promise<readonly Issue[]> {
  const size = JSON.stringify(input ?? null).length;
  if (size > LONGEST_INPUT) return [{ path, message: `has ${size} characters, at most ${LONGEST_INPUT} are allowed` }];
  const verdict = await inputSchema?.check(input);
  if (verdict === undefined || verdict.ok) return [];
  return verdict.issues.map((issue) => ({ path: issue.path.replace(/^\$/, path), message: issue.message }));
}
