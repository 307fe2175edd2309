// What a pipeline may hold that a model writes.

import type { AnyPipeline, RunLimits } from "@sluice/core";
import { checkLimits, isFilledTexts, type Report } from "@sluice/core/runtime";
import { type Duration, parseDuration } from "@sluice/stages";
import { durationText } from "@sluice/stages/runtime";
import { KIND_NAMES, type KindName } from "../kinds/fields.ts";

/** The kinds of states that a model may use. Final states are always there. */
export type AuthoredKind = "agent" | KindName;

/** What a pipeline may hold that a model writes. What is not allowed here, its document cannot say. */
export interface AuthoredAllow {
  /** Default: `agent`, `human`, `timer` and `router`. */
  readonly kinds?: readonly AuthoredKind[];
  /** The tools that its agents may have: names, or patterns such as `Edit(src/**)`. The document can only narrow them. */
  readonly tools: readonly string[];
  /** The commands that scripts and polls may run, by their first words: `["npm", "test"]` also allows further arguments. */
  readonly commands?: readonly (readonly string[])[];
  /** The pipelines that states of kind `pipeline` may run, by the names that the document writes. */
  readonly pipelines?: Readonly<Record<string, AnyPipeline>>;
  /** The models that a state may name. Default: none, so that all use the session's. */
  readonly models?: readonly string[];
  /** Default: 20. */
  readonly maxStates?: number;
  /** Caps of its run. Default: 50 hops, and 5 visits of one state. */
  readonly limits?: RunLimits;
  /** The shortest time of a timer and between two attempts of a poll: at least `30s`. Default: `15m`. */
  readonly floor?: Duration;
}

/** The same, complete. */
export interface AuthoredRules {
  readonly kinds: ReadonlySet<AuthoredKind>;
  readonly tools: readonly string[];
  readonly commands: readonly (readonly string[])[];
  readonly pipelines: ReadonlyMap<string, AnyPipeline>;
  readonly models: readonly string[];
  readonly maxStates: number;
  readonly limits: RunLimits;
  readonly floorMs: number;
}

const KINDS: readonly AuthoredKind[] = ["agent", "human", "timer", "router"];
const MAX_STATES = 20;
const LIMITS: RunLimits = { maxHops: 50, maxVisits: 5 };
const FLOOR_MS = 900_000;
/** No model schedules anything more often, whatever the author allows. */
const LEAST_FLOOR_MS = 30_000;

/** Reads what is allowed, and reports what is wrong with it. */
export function readAllow(report: Report, allow: AuthoredAllow): AuthoredRules {
  const { kinds = KINDS, tools, commands = [], pipelines = {}, models = [], maxStates = MAX_STATES } = allow;
  const known: readonly string[] = ["agent", ...KIND_NAMES];
  report.unknownKeys("allow", allow, KEYS);
  if (!Array.isArray(kinds) || !kinds.every((kind) => known.includes(kind)))
    report.add("allow.kinds", `must be a list of kinds: ${known.join(", ")}`);
  if (!isFilledTexts(tools)) report.add("allow.tools", "must be a list of tools", '["Read", "Grep"], or [] for none');
  if (!Array.isArray(commands) || !commands.every((words) => isFilledTexts(words) && words.length > 0))
    report.add("allow.commands", "must be a list of commands, each a list of words", '[["npm", "test"]]');
  if (!isFilledTexts(models)) report.add("allow.models", "must be a list of models");
  if (!Number.isSafeInteger(maxStates) || maxStates < 1) report.add("allow.maxStates", "must be a whole number from 1");
  checkLimits(report, "allow.limits", allow.limits, "run");
  return {
    kinds: new Set(kinds),
    tools: isFilledTexts(tools) ? [...tools] : [],
    commands: commands.map((words) => [...words]),
    pipelines: new Map(Object.entries(pipelines)),
    models: [...models],
    maxStates,
    limits: { ...LIMITS, ...allow.limits },
    floorMs: readFloor(report, allow.floor),
  };
}

const KEYS = ["kinds", "tools", "commands", "pipelines", "models", "maxStates", "limits", "floor"];

function readFloor(report: Report, floor: Duration | undefined): number {
  if (floor === undefined) return FLOOR_MS;
  const read = parseDuration(floor);
  if (!read.ok) {
    report.add("allow.floor", read.message);
    return FLOOR_MS;
  }
  if (read.ms >= LEAST_FLOOR_MS) return read.ms;
  report.add("allow.floor", `must be at least ${durationText(LEAST_FLOOR_MS)}`);
  return FLOOR_MS;
}
