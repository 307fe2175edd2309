import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import fc from "fast-check";
import { randomContext, randomOperator } from "./reference-guards.ts";

// Statewright documents that load: every field, every form of a transition, and names as people write them.

export interface DocumentOptions {
  /** Names of working states, which distinguish them; the finals are `ended`, `failed` and `gone`. */
  readonly states: readonly string[];
  readonly events: readonly string[];
  /** What `allowed_tools` may list. */
  readonly tools: readonly string[];
  readonly files: readonly string[];
  /** Workflows that it may invoke. */
  readonly workflows: readonly string[];
  /** Limits, variables, models and commands, too. */
  readonly everyField: boolean;
}

/** Names that are ids, and others. */
export const ANY_NAMES: DocumentOptions = {
  states: ["planning", "fix_it", "in progress", "révision", "2", "toString", "a/b {{x}}", "planning-2", "in-progress"],
  events: ["GO", "BACK", "1", "done it", "toString", "ÉTAT", "GO[0]"],
  tools: ["Read", "Bash", "Edit(src/**)", "Write(notes/*.md)", "Bash(npm test *)", "mcp__*", "Grep"],
  files: ["src/**/*.sql", "*.md", "db/**"],
  workflows: ["./child.json", "child two"],
  everyField: true,
};

const FINALS = ["ended", "failed", "gone"] as const;
const GUARDS = ["ready", "is it so", "größer", "a (b", "toString", "7"] as const;

function rarely<T>(field: string, made: fc.Arbitrary<T>): fc.Arbitrary<Record<string, T>> {
  return fc.option(made, { freq: 2, nil: undefined }).map((value) => (value === undefined ? {} : { [field]: value }));
}

function merged(...parts: readonly fc.Arbitrary<Record<string, Json>>[]): fc.Arbitrary<JsonObject> {
  return fc.tuple(...parts).map((all): JsonObject => Object.assign({}, ...all));
}

/** How a person has to approve it, if one has to. */
const asks = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      { requires_approval: true },
      { requires_approval: true, approval_message: "Is it right?" },
      { requires_approval: false },
    ),
  },
);

/** Guards by name, so that their names are enough to refer to them. */
function conditions(guards: readonly string[]): fc.Arbitrary<JsonObject> {
  if (guards.length === 0) return fc.constant({});
  const name = fc.constantFrom(...guards);
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant({}) },
    { weight: 3, arbitrary: name.map((guard) => ({ guard })) },
    { weight: 1, arbitrary: fc.array(name, { maxLength: 3 }).map((all) => ({ guards: all })) },
    {
      weight: 1,
      arbitrary: fc.tuple(name, fc.array(name, { maxLength: 2 })).map(([guard, all]) => ({ guard, guards: all })),
    },
  );
}

interface Known {
  readonly working: readonly string[];
  readonly targets: readonly string[];
  readonly guards: readonly string[];
  readonly workflows: readonly string[];
}

function transition({ working, targets, guards, workflows }: Known): fc.Arbitrary<Json> {
  const target = fc.constantFrom(...targets);
  const after = merged(
    target.map((on_complete) => ({ on_complete })),
    rarely("on_fail", target),
  );
  const rest = merged(conditions(guards), asks);
  const move = merged(
    fc
      .oneof({ weight: 6, arbitrary: target }, { weight: 1, arbitrary: fc.constant("$return") })
      .map((to) => ({ target: to })),
    rest,
  );
  const branch = fc
    .tuple(fc.constantFrom(...working), target)
    .filter(([initial, terminal]) => initial !== terminal)
    .map(([initial, terminal]) => ({ initial, terminal }));
  const fork = fc
    .tuple(
      fc.dictionary(fc.constantFrom("lint", "types", "two words", "3"), branch, {
        minKeys: 1,
        maxKeys: 3,
        noNullPrototype: true,
      }),
      rarely("join", fc.constantFrom("all", "any")),
      after,
      rest,
    )
    .map(([branches, join, next, more]): JsonObject => ({ fork: { branches, ...join, ...next }, ...more }));
  const invoke =
    workflows.length === 0
      ? []
      : [
          merged(
            fc.constantFrom(...workflows).map((name) => ({ invoke: name })),
            after,
            rarely("input", fc.constantFrom<JsonObject>({}, { n: 1, list: ["a", null] })),
            rest,
          ),
        ];
  const entry = fc.oneof({ weight: 6, arbitrary: move }, { weight: 2, arbitrary: fork }, ...invoke);
  return fc.oneof(
    { weight: 4, arbitrary: fc.oneof(target, fc.constant("$return")) },
    { weight: 5, arbitrary: entry },
    { weight: 4, arbitrary: fc.array(entry, { minLength: 1, maxLength: 4 }) },
  );
}

function safeNext(known: Known): fc.Arbitrary<Json> {
  const target = fc.constantFrom(...known.targets, "$return");
  return fc.oneof(
    target,
    merged(
      target.map((to) => ({ target: to })),
      conditions(known.guards),
      asks,
    ),
  );
}

const PROMPTS = [
  "",
  "Do it.",
  "Work on {{ctx.task}} with {{input.task}} and \\{{input.x}}.",
  "Do the work of this phase, then leave it.",
  'Lines\n\tand "quotes": é 😀 \\',
] as const;

function state(known: Known, { tools, events, everyField }: DocumentOptions): fc.Arbitrary<JsonObject> {
  const count = fc.constantFrom(1, 7, 40);
  const base = [
    fc.subarray([...tools]).map((allowed_tools) => ({ allowed_tools })),
    fc
      .dictionary(fc.constantFrom(...events), transition(known), {
        minKeys: everyField ? 0 : 2,
        maxKeys: 4,
        noNullPrototype: true,
      })
      .map((on) => ({ on })),
    rarely("safe_next", safeNext(known)),
    rarely("instructions", fc.constantFrom(...(everyField ? PROMPTS : PROMPTS.slice(0, 2)))),
  ];
  if (!everyField) return merged(...base);
  return merged(
    ...base,
    rarely("max_iterations", count),
    rarely("turn_cap", fc.constantFrom(50, 3)),
    rarely("model", fc.constant("some/model")),
    rarely("max_edit_lines", count),
    rarely("maxFilesPerState", count),
    rarely("context_budget_bytes", count),
    rarely("deny_env", fc.subarray(["PROD_DB_URL", "TOKEN"])),
    rarely("env_overrides", fc.constantFrom<JsonObject>({}, { CI: true, DEPTH: 3 }, { NODE_ENV: "test" })),
  ).chain((made) => {
    const listed = Array.isArray(made.allowed_tools) ? made.allowed_tools : [];
    const hasBash = listed.includes("Bash") && !listed.includes("Bash(npm test *)");
    const commands = fc.option(fc.subarray(["npm test", "git status *", "*", " ls "]), { nil: undefined });
    if (hasBash) return commands.map((all) => (all === undefined ? made : { ...made, allowed_commands: all }));
    const { allowed_tools: _none, ...open } = made;
    return fc.integer({ min: 0, max: 5 }).map((n) => (n === 0 ? open : made));
  });
}

const meta = fc.constantFrom<JsonObject>(
  {},
  { danger_level: "dangerous", capture_output: false },
  { task_type: "deployment", estimated_steps: 3, owner: { team: "a" }, requires_human_approval: false },
);

/** Documents whose every state can be reached and left: what the random transitions leave out, `NEXT` and `STOP` add. */
export function randomDocument(options: DocumentOptions): fc.Arbitrary<JsonObject> {
  const subject = fc.record({
    working: fc.shuffledSubarray([...options.states], { minLength: 2, maxLength: Math.min(5, options.states.length) }),
    guards: fc.uniqueArray(fc.constantFrom(...GUARDS), { maxLength: 4 }),
  });
  return subject.chain(({ working, guards }) => {
    const targets = [...working, ...FINALS];
    const known: Known = { working, targets, guards, workflows: options.workflows };
    return fc
      .record({
        states: fc.tuple(...working.map(() => state(known, options))),
        operators: fc.tuple(...guards.map(() => randomOperator)),
        context: fc.option(randomContext, { nil: undefined }),
        interrupts: fc.dictionary(
          fc.constantFrom("changed", "check it"),
          fc.record({
            trigger: fc.record({ file_pattern: fc.constantFrom(...options.files) }),
            target: fc.constantFrom(...working),
          }),
          { minKeys: options.everyField ? 0 : 1, maxKeys: 2, noNullPrototype: true },
        ),
        meta: fc.option(meta, { nil: undefined }),
        properties: fc.boolean(),
        outcomes: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
      })
      .map(({ states, operators, context, interrupts, meta: facts, properties, outcomes }): JsonObject => {
        const bodies = states.map((body, index): readonly [string, JsonObject] => {
          const on = isJsonObject(body.on) ? body.on : {};
          const next = working[index + 1] ?? "ended";
          const ways = { NEXT: next, ...(index === 0 ? { STOP: "failed", LEAVE: "gone" } : {}) };
          return [working[index] ?? "", { ...body, on: { ...on, ...ways } }];
        });
        const [completed, failed, cancelled] = outcomes;
        const finals: readonly (readonly [string, JsonObject])[] = [
          ["ended", { type: "final", ...(completed ? { outcome: "completed" } : {}) }],
          ["failed", { type: "final", ...(failed ? { outcome: "failed" } : {}) }],
          ["gone", { type: "final", outcome: cancelled ? "cancelled" : "failed" }],
        ];
        return {
          id: options.everyField ? "my workflow" : "random",
          initial: working[0] ?? "",
          ...(context === undefined ? {} : { context: sound(context) }),
          states: Object.fromEntries([...bodies, ...finals]),
          ...(guards.length === 0
            ? {}
            : {
                guards: Object.fromEntries(guards.map((name, index) => [name, soundGuard(operators[index])] as const)),
              }),
          ...(Object.keys(interrupts).length === 0 ? {} : { interrupts }),
          ...(facts === undefined ? {} : { meta: facts }),
          // Every path begins there.
          ...(properties ? { properties: [{ always: JSON.stringify(working[0]) }] } : {}),
        };
      });
  });
}

/** Without the keys that no file may have. */
function sound(context: JsonObject): JsonObject {
  const text = JSON.stringify(context, (key, value: unknown) =>
    key === "__proto__" || key === "constructor" ? undefined : value,
  );
  return JSON.parse(text);
}

/** `contains` with null is a mistake of a document. */
function soundGuard(
  operator: { readonly field: string; readonly op: string; readonly value?: Json } | undefined,
): JsonObject {
  if (operator === undefined) return { field: "a", op: "exists" };
  const { field, op, value } = operator;
  if (value === undefined) return { field, op };
  const safe = sound({ value }).value ?? 0;
  return { field, op, value: op === "contains" && safe === null ? "a" : safe };
}
