import { callbackInteractor, field, type Interactor, type PersonRequest } from "@sluice/core";

/** Approves calls of one tool whose argument fits. */
export interface Rule {
  readonly tool: string;
  /** The argument that the pattern is for. */
  readonly argument: string;
  /** Has to fit the whole text: begin it with ^ and end it with $. */
  readonly like: RegExp;
}

/** Answers every request: approves a call that a rule allows, and denies all others. `log` receives a line for each decision. */
export function byRules(name: string, rules: readonly Rule[], log: (line: string) => void): Interactor {
  return callbackInteractor(name, (request) => {
    const rule = rules.find((one) => allows(one, request));
    const what = field(request.body, "argsSummary") ?? request.kind;
    log(`${name}: ${rule === undefined ? "denied" : "approved"} ${String(what)}`);
    if (rule !== undefined) return { kind: "approve" };
    const allowed = rules.map(({ tool, argument, like }) => `${tool} with ${argument} like ${String(like)}`);
    return { kind: "deny", reason: `no person watches this job; it approves only ${allowed.join(", ") || "nothing"}` };
  });
}

function allows({ tool, argument, like }: Rule, { kind, body }: PersonRequest): boolean {
  const value = field(field(body, "input"), argument);
  return kind === "grantStageTool" && field(body, "tool") === tool && typeof value === "string" && like.test(value);
}
