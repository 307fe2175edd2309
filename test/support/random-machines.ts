import type { Json } from "@sluice/core";
import fc from "fast-check";
import type {
  Expectation,
  Expr,
  GuardNode,
  Machine,
  NoChoice,
  Outcome,
  PatchNode,
  RouteFunctionNode,
  RouteNode,
  RowNode,
  SiblingNode,
  StateNode,
  StateRoutesNode,
  Unrecordable,
} from "./reference-machine.ts";

const IDS = ["plan", "b", "c2", "to-do", "Last"] as const;
const UNKNOWN = "nowhere";

export const value = (json: Json): Expr => ({ op: "value", value: json });
export const read = (...path: string[]): Expr => ({ op: "read", path });

/** What routes compute from: numbers and words from everywhere that a context has. */
const reading = (ids: readonly string[]): fc.Arbitrary<Expr> =>
  fc.oneof(
    fc.constant(read("ctx", "visit")),
    fc.constant(read("result", "output", "n")),
    fc.constantFrom(...ids).map((id) => read("ctx", "upstream", id, "n")),
    fc.constantFrom("k", "l").map((key) => read("ctx", "context", key)),
    fc.constant(read("ctx", "input", "x")),
  );
export const condition = (ids: readonly string[], status: "completed" | "failed" | "skipped"): fc.Arbitrary<Expr> =>
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.tuple(reading(ids), fc.nat(3)).map(([left, n]): Expr => ({ op: "below", left, right: value(n) })),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(reading(ids), fc.nat(2)).map(([left, n]): Expr => ({ op: "same", left, right: value(n) })),
    },
    // How the branches of a failed fan-out ended is a matter of time, so only other routes read it.
    {
      weight: status === "completed" ? 2 : 0,
      arbitrary: fc
        .tuple(fc.constantFrom(...ids), fc.constantFrom("completed", "skipped", "failed"))
        .map(([id, how]): Expr => ({ op: "same", left: read("ctx", "fork", id, "status"), right: value(how) })),
    },
    {
      weight: status === "failed" ? 3 : 0,
      arbitrary: fc
        .constantFrom("fan_out", "tool")
        .map((code): Expr => ({ op: "same", left: read("result", "code"), right: value(code) })),
    },
    { weight: 1, arbitrary: fc.boolean().map(value) },
  );

export const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  { weight: 60, arbitrary: fc.nat(3).map((n): Outcome => ({ status: "completed", output: { n } })) },
  {
    weight: 1,
    arbitrary: fc.constant<Outcome>({
      status: "completed",
      output: { n: 1, toString: "x", deep: [{ of: null }, [], ""] },
    }),
  },
  {
    weight: 9,
    arbitrary: fc.constantFrom<Outcome>(
      { status: "failed", code: "tool", message: "the tool broke" },
      { status: "failed", code: "model", message: "no model" },
      { status: "failed", code: "timeout", message: "" },
    ),
  },
  { weight: 4, arbitrary: fc.constant<Outcome>({ status: "skipped" }) },
  { weight: 1, arbitrary: fc.constant<Outcome>({ status: "cancelled", reason: "it gave up" }) },
);
const stateNodes: fc.Arbitrary<readonly StateNode[]> = fc.integer({ min: 2, max: IDS.length }).chain((count) =>
  fc.tuple(
    ...IDS.slice(0, count).map((id) =>
      fc.record({
        id: fc.constant(id),
        needsX: fc.integer({ min: 0, max: 3 }).map((of) => of === 0),
        outcomes: fc.array(outcome, { minLength: 1, maxLength: 4 }),
      }),
    ),
  ),
);

/** The inputs that choices of these states give; `strict` gives only what fits. */
function inputs(states: readonly StateNode[], strict: boolean): (id: string) => fc.Arbitrary<Expr | undefined> {
  const ids = states.map((state) => state.id);
  const withX = fc.oneof(
    fc.nat(3).map((x): Expr => value({ x, pick: x })),
    ...(strict ? [] : [reading(ids).map((x): Expr => ({ op: "object", fields: [["x", x]] }))]),
  );
  const any = fc.oneof(
    fc.constant(undefined),
    withX,
    fc.constantFrom<Json>(null, "text", { x: "1" }, []).map(value),
    ...(strict ? [] : [fc.constant(read("ctx", "upstream")), fc.constant(read("ctx", "context"))]),
  );
  return (id) => {
    if (!states.some((state) => state.id === id && state.needsX)) return any;
    return strict ? withX : fc.oneof({ weight: 15, arbitrary: withX }, { weight: 1, arbitrary: any });
  };
}

/** A fan-out that can be followed, over what a shuffle of the states gives. */
function fanOuts(states: readonly StateNode[], inputOf: ReturnType<typeof inputs>): fc.Arbitrary<RouteNode> {
  return fc
    .shuffledSubarray(
      states.map(({ id }) => id),
      { minLength: 2 },
    )
    .chain(([join = "", ...siblings]) =>
      fc.record({
        do: fc.constant("fanOut" as const),
        siblings: fc.tuple(
          ...siblings.map((id) =>
            inputOf(id).map((input): SiblingNode => ({ state: id, ...(input === undefined ? {} : { input }) })),
          ),
        ),
        join: fc.constant(join),
        onFailure: fc.constantFrom("cancel" as const, "settle" as const),
        input: inputOf(join),
      }),
    )
    .map(({ input, ...rest }): RouteNode => ({ ...rest, ...(input === undefined ? {} : { input }) }));
}

/** Choices that no run can follow. */
function broken(states: readonly StateNode[]): fc.Arbitrary<RouteNode> {
  const ids = states.map(({ id }) => id);
  const id = fc.constantFrom(...ids);
  const unrecordable = fc.constantFrom<Unrecordable>("map", "date", "bigint", "nan", "function", "cycle");
  const noChoice = fc.constantFrom<NoChoice>(
    ...(["undefined", "null", "number", "text", "list", "unknown kind", "no reason", "no state"] as const),
    ...(["no siblings", "odd sibling", "odd policy", "odd context", "odd stages", "odd execution"] as const),
  );
  const x = value({ x: 1 });
  return fc.oneof(
    fc.constant<RouteNode>({ do: "to", state: UNKNOWN }),
    fc
      .tuple(unrecordable, fc.constantFrom("output" as const, "input" as const, "context" as const), id)
      .map(([what, as, state]): RouteNode => ({ do: "unrecordable", value: what, as, state })),
    noChoice.map((what): RouteNode => ({ do: "noChoice", value: what, states: [ids[0] ?? "", ids[1] ?? ""] })),
    fc.constant<RouteNode>({ do: "throw", message: "the route threw" }),
    fc.tuple(id, fc.constantFrom("__proto__", "constructor", "_own")).map(
      ([state, key]): RouteNode => ({
        do: "to",
        state,
        input: x,
        context: [
          ["k", value(1)],
          [key, value(1)],
        ],
      }),
    ),
    fc.constantFrom<RouteNode>(
      { do: "fanOut", siblings: [], join: ids[0] ?? "" },
      { do: "fanOut", siblings: ids.map((state) => ({ state, input: x })), join: ids[0] ?? "", input: x },
      { do: "fanOut", siblings: [0, 0].map(() => ({ state: ids[1] ?? "", input: x })), join: ids[0] ?? "", input: x },
      {
        do: "fanOut",
        siblings: [{ state: ids[1] ?? "", input: x, context: [["k", value(2)]] }],
        join: ids[0] ?? "",
        input: x,
      },
      { do: "fanOut", siblings: [{ state: UNKNOWN }], join: ids[0] ?? "", input: x },
      { do: "fanOut", siblings: [{ state: ids[1] ?? "", input: x }], join: UNKNOWN },
      { do: "stages", stages: [ids[1] ?? ""], execution: "parallel", join: ids[0] ?? "" },
      { do: "stages", stages: ids, execution: "sequential" },
      { do: "stages", stages: ids, execution: "parallel" },
      { do: "stages", stages: [UNKNOWN], execution: "sequential" },
    ),
  );
}

function lists(
  states: readonly StateNode[],
  inputOf: ReturnType<typeof inputs>,
  strict: boolean,
): fc.Arbitrary<RouteNode> {
  const item = fc.record({ x: fc.nat(2), pick: fc.nat(3), id: fc.constantFrom("k1", "k2", "k3", "k4", "k5", "k6") });
  return fc
    .record({
      ids: fc.shuffledSubarray(
        states.map(({ id }) => id),
        { minLength: 2, maxLength: 2 },
      ),
      items: fc.oneof(
        { weight: 4, arbitrary: fc.uniqueArray(item, { maxLength: 5, selector: ({ id }) => id }) },
        // Keys may come twice, which a table would not be defined with.
        { weight: strict ? 0 : 1, arbitrary: fc.array(item, { minLength: 2, maxLength: 12 }) },
      ),
      keyed: fc.boolean(),
      onFailure: fc.constantFrom("cancel" as const, "settle" as const),
      maxParallel: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    })
    .chain(({ ids: [state = "", join = ""], items, keyed, onFailure, maxParallel }) =>
      inputOf(join).map(
        (input): RouteNode => ({
          do: "forEach",
          state,
          items: value(items),
          ...(keyed ? { key: "id" } : {}),
          join,
          onFailure,
          ...(maxParallel === undefined ? {} : { maxParallel }),
          ...(input === undefined ? {} : { input }),
        }),
      ),
    );
}

/**
 * Choices that can be followed. Those of a table's row are made when the pipeline is defined, and of values alone. Only a completed
 * state's route returns all that it reads, since another's may hold what time decides.
 */
export function choices(
  states: readonly StateNode[],
  of: "completed" | "failed" | "skipped" | "row",
): fc.Arbitrary<RouteNode> {
  const strict = of === "row";
  const ids = states.map(({ id }) => id);
  const inputOf = inputs(states, strict);
  const computed = strict ? fc.nat(3).map(value) : reading(ids);
  const patch: fc.Arbitrary<PatchNode> = fc.array(
    fc.tuple(fc.constantFrom("k", "l", "toString", "prototype", "a key"), computed),
    { maxLength: 2 },
  );
  const plain = states.filter(({ needsX }) => !needsX).map(({ id }) => id);
  const move = fc.constantFrom(...ids).chain((state) =>
    fc.tuple(inputOf(state), fc.option(patch, { nil: undefined, freq: 2 })).map(
      ([input, context]): RouteNode => ({
        do: "to",
        state,
        ...(input === undefined ? {} : { input }),
        ...(context === undefined ? {} : { context }),
      }),
    ),
  );
  return fc.oneof(
    { weight: 14, arbitrary: move },
    { weight: 8, arbitrary: fanOuts(states, inputOf) },
    { weight: 5, arbitrary: lists(states, inputOf, strict) },
    {
      weight: plain.length > 0 ? 2 : 0,
      arbitrary: fc.shuffledSubarray(plain.length > 0 ? plain : ids).map(([join = "", ...stages]): RouteNode => {
        if (stages.length > 1) return { do: "stages", stages, execution: "parallel", join };
        return { do: "stages", stages: join === "" ? [] : [join], execution: "sequential" };
      }),
    },
    {
      weight: 2,
      arbitrary: fc
        .option(of === "completed" ? fc.oneof(computed, fc.constant(read("ctx"))) : computed, { nil: undefined })
        .map((output): RouteNode => ({ do: "done", ...(output === undefined ? {} : { output }) })),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom<RouteNode>({ do: "fail", reason: "no way" }, { do: "cancel", reason: "not needed" }),
    },
  );
}

function routeFunctions(
  states: readonly StateNode[],
  status: "completed" | "failed" | "skipped",
): fc.Arbitrary<RouteFunctionNode> {
  const ids = states.map(({ id }) => id);
  const leaf = fc.oneof({ weight: 32, arbitrary: choices(states, status) }, { weight: 1, arbitrary: broken(states) });
  const branch = fc
    .tuple(condition(ids, status), leaf, leaf)
    .map(([when, yes, no]): RouteNode => ({ do: "if", when, yes, no }));
  const body = fc.oneof(
    { weight: 2, arbitrary: leaf },
    { weight: 4, arbitrary: branch },
    { weight: 1, arbitrary: branch.map((promised): RouteNode => ({ do: "later", promised })) },
  );
  return fc.tuple(body, fc.nat(11)).map(([node, declared]): RouteFunctionNode => {
    if (declared > 6) return { body: node };
    const targets = [...new Set(namedBy(node))].filter((id) => id !== UNKNOWN);
    // Now and then a declaration forgets one.
    const kept = declared === 0 ? targets.slice(1) : targets;
    return { targets: kept.length === 0 ? ids : kept, body: node };
  });
}

/** The states that a node's choices name. */
export function namedBy(node: RouteNode): readonly string[] {
  switch (node.do) {
    case "fork": {
      const { branches, onComplete, onFail } = node;
      // A terminal is where other rows lead.
      return [...branches.map(({ initial }) => initial), onComplete, ...(onFail === undefined ? [] : [onFail])];
    }
    case "invoke":
      return [node.onComplete, ...(node.onFail === undefined ? [] : [node.onFail])];
    case "to":
      return [node.state];
    case "fanOut":
      return [...node.siblings.map(({ state }) => state), node.join];
    case "forEach":
      return [node.state, node.join];
    case "stages":
      return [...node.stages, ...(node.join === undefined ? [] : [node.join])];
    case "later":
      return namedBy(node.promised);
    case "if":
      return [...namedBy(node.yes), ...namedBy(node.no)];
    default:
      return [];
  }
}

function functions(states: readonly StateNode[]): fc.Arbitrary<Machine["routes"]> {
  const routes = fc.record({
    completed: routeFunctions(states, "completed"),
    failed: fc.option(routeFunctions(states, "failed"), { nil: undefined, freq: 4 }),
    skipped: fc.option(routeFunctions(states, "skipped"), { nil: undefined, freq: 3 }),
  });
  return fc
    .tuple(...states.map(({ id }, index) => fc.tuple(fc.constant(id), routes, fc.nat(24), fc.constant(index))))
    .map((all) => {
      const next = all.flatMap(([id, { completed, failed, skipped }, absent, index]): [string, StateRoutesNode][] => {
        // The initial state has a route that may lead anywhere, so that no state is unreachable.
        const first = index === 0 ? { body: completed.body } : completed;
        const own = {
          completed: first,
          ...(failed === undefined ? {} : { failed }),
          ...(skipped === undefined ? {} : { skipped }),
        };
        return absent === 0 && index > 0 ? [] : [[id, own]];
      });
      return { kind: "functions", next: Object.fromEntries(next) };
    });
}

function guards(ids: readonly string[]): fc.Arbitrary<GuardNode> {
  const returns = fc
    .oneof(
      { weight: 6, arbitrary: condition(ids, "failed") },
      { weight: 1, arbitrary: fc.constantFrom<Json>("true", 1, null, {}).map(value) },
    )
    .map((what): GuardNode => ({ guard: "returns", value: what }));
  return fc.oneof(
    { weight: 8, arbitrary: returns },
    { weight: 1, arbitrary: fc.constant<GuardNode>({ guard: "throws" }) },
    { weight: 1, arbitrary: returns.map((promised): GuardNode => ({ guard: "later", promised })) },
  );
}

function table(states: readonly StateNode[]): fc.Arbitrary<Machine["routes"]> {
  const ids = states.map(({ id }) => id);
  const plain = states.filter(({ needsX }) => !needsX).map(({ id }) => id);
  const target = fc.oneof(
    choices(states, "row"),
    ...(plain.length > 0 ? [fc.constantFrom<string | RouteNode>(...plain)] : []),
  );
  const when = fc.option(guards(ids), { nil: undefined });
  const row = fc
    .record({
      from: fc.constantFrom(...ids, "*"),
      on: fc.constantFrom("success" as const, "success" as const, "failure" as const, "skipped" as const),
      when,
      to: target,
    })
    .map(({ when: guard, ...rest }): RowNode => ({ ...rest, ...(guard === undefined ? {} : { when: guard }) }));
  return fc.tuple(fc.array(row, { minLength: 3, maxLength: 14 }), when).map(([rows, guard]) => ({
    kind: "table",
    // A table must have a way to a completed end.
    rows: [
      ...rows,
      {
        from: "*",
        on: "success",
        to: { do: "done", output: value("the end") },
        ...(guard === undefined ? {} : { when: guard }),
      },
    ],
  }));
}

/** A table must lead to each of its states. */
function reachable(machine: Machine): Machine {
  const { routes } = machine;
  if (routes.kind === "functions") return machine;
  const entered = new Set<string>([machine.initial]);
  const named = new Set<string>([machine.initial]);
  for (const id of entered) {
    for (const { from, to } of routes.rows) {
      if (from !== "*" && from !== id) continue;
      const targets = typeof to === "string" ? [to] : namedBy(to);
      for (const target of targets) named.add(target);
      const siblings = typeof to === "string" ? [] : siblingsOf(to);
      for (const target of targets) if (!siblings.includes(target)) entered.add(target);
    }
  }
  const states = machine.states.filter(({ id }) => named.has(id));
  const rows = routes.rows.filter(({ from }) => from === "*" || entered.has(from));
  return { ...machine, states, routes: { kind: "table", rows } };
}

export function siblingsOf(node: RouteNode): readonly string[] {
  if (node.do === "fanOut") return node.siblings.map(({ state }) => state);
  if (node.do === "forEach") return [node.state];
  return node.do === "stages" && node.execution === "parallel" ? node.stages : [];
}

/** Machines of all shapes, whose runs all end. */
export const randomMachine: fc.Arbitrary<Machine> = stateNodes
  .chain((states) =>
    fc.record({
      states: fc.constant(states),
      initial: fc.constant(IDS[0]),
      input: fc.record({ task: fc.constant("route"), x: fc.nat(2) }),
      context: fc.constantFrom<Machine["context"]>({}, { k: 1 }, { k: 0, deep: { a: [1] } }),
      limits: fc
        .record({
          maxVisits: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined, freq: 3 }),
          maxHops: fc.option(fc.integer({ min: 1, max: 16 }), { nil: undefined, freq: 2 }),
        })
        .map(({ maxVisits, maxHops }) => ({
          ...(maxVisits === undefined ? {} : { maxVisits }),
          ...(maxHops === undefined ? {} : { maxHops }),
        })),
      routes: fc.oneof({ weight: 3, arbitrary: functions(states) }, { weight: 2, arbitrary: table(states) }),
    }),
  )
  .map(reachable);

/** Counts what an expectation reaches. */
export function tally({ runs, end }: Expectation, into: Map<string, number>): void {
  const count = (what: string): void => void into.set(what, (into.get(what) ?? 0) + 1);
  count(`end ${end.status}${end.status === "completed" ? "" : ` ${end.code}`}`);
  const root = runs.get("");
  for (const event of root?.events ?? []) {
    switch (event.type) {
      case "route.decided":
        count(`${event.by} ${event.choice}`);
        if ((event.refused ?? []).length > 0) count("refused rows");
        break;
      case "limit.reached":
        count(event.limit);
        break;
      case "fanOut.joined": {
        const failed = event.outcomes.some(({ status }) => status !== "completed");
        count(event.raced !== undefined ? "fan-out failed" : failed ? "fan-out settled a failure" : "fan-out joined");
        break;
      }
      default:
        count(event.type);
    }
  }
  for (const { sight, row } of root?.asked ?? []) {
    if (sight.fork !== undefined) count("routes that read a fork");
    if (row !== undefined) count("conditions");
  }
  count(`runs of ${Math.min(9, Math.floor((root?.entered.length ?? 0) / 3) * 3)} or more states`);
}
