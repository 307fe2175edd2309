import { field, type Json, type Usage } from "@sluice/core";
import { LAST_DATE, numberField, textField } from "@sluice/core/runtime";

/** The member `usage` of an event's data. */
export function usageAt(data: Json | undefined): Usage {
  const usage = field(data, "usage");
  const optional = ["costUsd", "unpricedCalls", "unmeteredCalls"].filter((key) => field(usage, key) !== undefined);
  return {
    inputTokens: numberAt(usage, "inputTokens"),
    outputTokens: numberAt(usage, "outputTokens"),
    ...Object.fromEntries(optional.map((key) => [key, numberAt(usage, key)])),
  };
}

/** A text member; '' if it is absent or no text. */
export function textAt(value: Json | undefined, key: string): string {
  return textField(value, key) ?? "";
}

/** A number member; 0 if it is absent or no number. */
export function numberAt(value: Json | undefined, key: string): number {
  return numberField(value, key) ?? 0;
}

/** A member that is a time in epoch milliseconds; undefined if it is absent or no time. */
export function timeAt(value: Json | undefined, key: string): number | undefined {
  const member = field(value, key);
  return typeof member === "number" && Math.abs(member) <= LAST_DATE ? member : undefined;
}

/** The texts of a list member. */
export function textsAt(value: Json | undefined, key: string): readonly string[] {
  const member = field(value, key);
  return Array.isArray(member) ? member.filter((item) => typeof item === "string") : [];
}

/** The items of a list member; none if it is absent or no list. */
export function listAt(value: Json | undefined, key: string): readonly Json[] {
  const list = field(value, key);
  return Array.isArray(list) ? list : [];
}

/** The member `issues`, as `path: message` texts. */
export function issuesIn(value: Json | undefined): string {
  const issues = field(value, "issues");
  if (!Array.isArray(issues)) return "";
  return issues.map((issue: Json) => `${textAt(issue, "path")}: ${textAt(issue, "message")}`).join("; ");
}

/** The agent of another program that works on a run, from the data of `run.started`; '' for a run with models of its own. */
export function agentOf(started: Json | undefined): string {
  const agent = field(started, "agent");
  const [version, hold] = [textAt(agent, "version"), textAt(agent, "class")];
  return [textAt(agent, "name"), version, hold === "" ? "" : `(class ${hold})`].filter((part) => part !== "").join(" ");
}

/** Whether a recorded model id is that of an agent of another program. */
export function isAgentModel(model: string): boolean {
  return model.startsWith(AGENT_MODEL);
}

/** A recorded model id as text. */
export function modelText(model: string): string {
  return isAgentModel(model) ? `the agent ${model.slice(AGENT_MODEL.length).replace("/", " ")}` : model;
}

const AGENT_MODEL = "agent:";

/** The origin of a forked run, the run that a run follows, and the state in which it started if not in the initial one; '' for any other run. */
export function originOf(started: Json | undefined): string {
  const fork = field(started, "forkedFrom");
  const state = textAt(field(started, "from"), "state");
  const forked = fork === undefined ? "" : `forked from ${textAt(fork, "runId")} before ${textAt(fork, "execution")}`;
  const followed = textAt(field(started, "follows"), "runId");
  const follows = followed === "" ? "" : `follows run ${followed}`;
  return [forked, follows, state === "" ? "" : `started in state ${state}`].filter((part) => part !== "").join(", ");
}

/** A target of a state that names the one that follows, or what it named and was refused. Untrusted text. */
export interface ConsideredTarget {
  readonly to: string;
  readonly verdict: "chosen" | "refused" | "not chosen";
  /** Why it was refused. */
  readonly why: string;
}

/** The targets of a decision of a state that names the one that follows; none for other decisions. */
export function consideredIn(data: Json): readonly ConsideredTarget[] {
  const to = textAt(data, "to");
  return listAt(field(data, "why"), "considered").map((one): ConsideredTarget => {
    const [target, refused] = [textAt(one, "to"), field(one, "refused")];
    if (refused !== undefined) return { to: target, verdict: "refused", why: textAt(one, "refused") };
    return { to: target, verdict: target === to ? "chosen" : "not chosen", why: "" };
  });
}
