import type { Json, JsonObject } from "@sluice/core";
import fc from "fast-check";
import { choices, condition, namedBy, outcome, read, siblingsOf, value } from "./random-machines.ts";
import type {
  Act,
  ApprovalNode,
  Expr,
  ForkNode,
  GuardNode,
  InterruptNode,
  InvokeNode,
  Machine,
  Outcome,
  RouteFunctionNode,
  RouteNode,
  RowNode,
  StateNode,
  StateRoutesNode,
} from "./reference-machine.ts";

// Machines as workflow files make them: states that complete by events, finals, approvals, interrupts, forks and invokes; and what
// may happen to them.

const IDS = ["plan", "b", "c2", "to-do", "Last", "fix"] as const;
/** Of a machine that another invokes, so that they can be distinguished. */
const SUITE_IDS = ["unit", "lint2", "report"] as const;
const FINALS = ["finished", "failed", "gone"] as const;
/** Events that rows name; `*` is for those that none names. */
const EVENTS = ["GO", "BACK", "toString", "*"] as const;
/** What an agent may ask for. */
const SAID = [...EVENTS, "END", "GO ", "go", "", "__proto__", "constructor", "hasOwnProperty", "$return"] as const;
const PATHS = ["db/a.sql", "db/b.js", "notes.md", "src/x.ts"] as const;
const GLOBS = ["db/**", "**/*.sql", "notes.md"] as const;

const protoData: JsonObject = JSON.parse('{"__proto__": {"k": 9}, "k": 1}');
const data: fc.Arbitrary<JsonObject> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<JsonObject>({}) },
  {
    weight: 8,
    arbitrary: fc.dictionary(fc.constantFrom("k", "l", "n", "rationale", "toString", "prototype"), fc.nat(3), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom<JsonObject>(
      { rationale: "it works" },
      { rationale: "long ".repeat(500), k: 1 },
      { deep: { list: [1, { k: null }] } },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<JsonObject>(
      protoData,
      { constructor: 1 },
      { _own: 1, k: 3 },
      { _interrupt_return: "plan" },
      { _fork: {} },
    ),
  },
);

/** What a row of a state may ask for: of a completion by events, the event and its data; of others, what the route of a result may. */
function guard(ids: readonly string[], of: RowNode["on"]): fc.Arbitrary<GuardNode> {
  const own: Expr[] = [
    read("ctx", "context", "n"),
    read("ctx", "context", "rationale"),
    read("result", "output", "data", "n"),
  ];
  const ofEvent = fc
    .tuple(fc.constantFrom(...own), fc.nat(2), fc.constantFrom("same" as const, "below" as const))
    .map(([left, n, op]): Expr => ({ op, left, right: value(n) }));
  const asked = typeof of === "object" ? fc.oneof(ofEvent, condition(ids, "completed")) : condition(ids, "failed");
  const returns = fc
    .oneof(
      { weight: 6, arbitrary: asked },
      { weight: 1, arbitrary: fc.constantFrom<Json>("true", 1, null, {}).map(value) },
    )
    .map((what): GuardNode => ({ guard: "returns", value: what }));
  return fc.oneof(
    { weight: 8, arbitrary: returns },
    { weight: 1, arbitrary: fc.constant<GuardNode>({ guard: "throws" }) },
    { weight: 1, arbitrary: returns.map((promised): GuardNode => ({ guard: "later", promised })) },
  );
}

/** One in `of` more. */
function rarely<T>(made: fc.Arbitrary<T>, of: number): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: of, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: made });
}

const approval: fc.Arbitrary<ApprovalNode> = fc
  .tuple(
    fc.option(fc.constant("Is that right?"), { nil: undefined }),
    fc.array(fc.constantFrom("yes" as const, "yes" as const, "no" as const, "nobody" as const), {
      minLength: 1,
      maxLength: 3,
    }),
  )
  // Who is shown no message cannot tell which row asks.
  .map(([message, says]) => (message === undefined ? { says: ["no"] } : { says, message }));

function forks(states: readonly StateNode[]): fc.Arbitrary<ForkNode> {
  const plain = states.filter(({ needsX }) => !needsX).map(({ id }) => id);
  const working = states.filter(({ needsX, final }) => !needsX && final === undefined).map(({ id }) => id);
  const branch = fc.tuple(fc.constantFrom(...working), fc.constantFrom(...states.map(({ id }) => id)), fc.nat(3));
  return fc
    .record({
      do: fc.constant("fork" as const),
      branches: fc
        .uniqueArray(fc.tuple(fc.constantFrom("lint", "types", "b"), branch), {
          selector: ([key]) => key,
          minLength: 1,
          maxLength: 3,
        })
        .map((all) =>
          all
            .filter(([, [id]], index) => all.findIndex(([, [other]]) => other === id) === index)
            .map(([key, [initial, terminal, x]]) => ({
              key,
              initial,
              terminal: terminal === initial ? (states.find(({ id }) => id !== initial)?.id ?? terminal) : terminal,
              ...(x === 0 ? {} : { input: value({ x, pick: x }) }),
            })),
        ),
      join: fc.constantFrom("all" as const, "any" as const),
      onComplete: fc.constantFrom(...plain),
      onFail: fc.option(fc.constantFrom(...plain), { nil: undefined }),
      input: fc.option(
        fc.nat(2).map((x) => value({ x })),
        { nil: undefined },
      ),
    })
    .map(({ onFail, input, ...fork }) => ({
      ...fork,
      ...(onFail === undefined ? {} : { onFail }),
      ...(input === undefined ? {} : { input }),
    }));
}

function invokes(states: readonly StateNode[], pipelines: readonly string[]): fc.Arbitrary<InvokeNode> {
  const plain = states.filter(({ needsX }) => !needsX).map(({ id }) => id);
  return fc
    .record({
      do: fc.constant("invoke" as const),
      pipeline: fc.constantFrom(...pipelines),
      key: fc.option(fc.constantFrom("sub", "plan"), { nil: undefined }),
      onComplete: fc.constantFrom(...plain),
      onFail: fc.option(fc.constantFrom(...plain), { nil: undefined }),
      input: fc.option(
        fc.nat(2).map((x) => value({ x, suite: "all" })),
        { nil: undefined },
      ),
    })
    .map(({ key, onFail, input, ...invoke }) => ({
      ...invoke,
      ...(key === undefined ? {} : { key }),
      ...(onFail === undefined ? {} : { onFail }),
      ...(input === undefined ? {} : { input }),
    }));
}

/** What a row may lead to. */
function targets(
  states: readonly StateNode[],
  pipelines: readonly string[],
  on: RowNode["on"],
): fc.Arbitrary<string | RouteNode> {
  const plain = states.filter(({ needsX }) => !needsX);
  const working = plain.filter(({ final }) => final === undefined).map(({ id }) => id);
  const finals = plain.filter(({ final }) => final !== undefined).map(({ id }) => id);
  // A pause leads to a state, which reads the answer.
  if (on === "pause") return fc.constantFrom(...working);
  const results = states.filter(({ final, events }) => final === undefined && events === undefined);
  return fc.oneof(
    { weight: 10, arbitrary: fc.constantFrom<string>(...working) },
    ...(finals.length === 0 ? [] : [{ weight: 2, arbitrary: fc.constantFrom<string>(...finals) }]),
    { weight: 4, arbitrary: fc.constant<RouteNode>({ do: "return" }) },
    { weight: 3, arbitrary: forks(states) },
    ...(pipelines.length === 0 ? [] : [{ weight: 3, arbitrary: invokes(states, pipelines) }]),
    ...(results.length < 2 ? [] : [{ weight: 4, arbitrary: choices(results, "row") }]),
  );
}

const stateNodes = (ids: readonly string[]): fc.Arbitrary<readonly StateNode[]> =>
  fc
    .tuple(fc.integer({ min: 2, max: ids.length }), fc.subarray([...FINALS]))
    .chain(([count, finals]) =>
      fc.tuple(
        fc.tuple(
          ...ids.slice(0, count).map((id) =>
            fc
              .record({
                needsX: fc.integer({ min: 0, max: 9 }).map((of) => of === 0 && id !== ids[0]),
                events: fc.integer({ min: 0, max: 9 }).map((of) => of < 7),
                outcomes: fc.array(outcome, { minLength: 1, maxLength: 4 }),
                acts: fc.array(fc.array(act, { maxLength: 5 }), { minLength: 1, maxLength: 3 }),
              })
              .map(({ needsX, events, outcomes, acts }): StateNode => {
                if (!events)
                  return { id, needsX, outcomes, acts: acts.map((all) => all.filter((one) => one.act === "touch")) };
                return { id, needsX, events: true, outcomes: outcomes.map(withoutOutput), acts };
              }),
          ),
        ),
        fc.constant(
          finals.map(
            (id): StateNode => ({
              id,
              needsX: false,
              final: id === "finished" ? "completed" : id === "failed" ? "failed" : "cancelled",
              outcomes: [{ status: "skipped" }],
            }),
          ),
        ),
      ),
    )
    .map(([working, finals]) => [...working, ...finals]);

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .tuple(fc.constantFrom(...SAID), data)
      .map(([event, given]): Act => ({ act: "event", event, data: given })),
  },
  { weight: 2, arbitrary: fc.constantFrom(...PATHS).map((path): Act => ({ act: "touch", path })) },
);

/** A state that completes by events ends otherwise when it has asked for none. */
function withoutOutput(of: Outcome): Outcome {
  return of.status === "completed" ? { status: "failed", code: "model", message: "it asked for no event" } : of;
}

function rows(states: readonly StateNode[], pipelines: readonly string[]): fc.Arbitrary<readonly RowNode[]> {
  const ids = states.map(({ id }) => id);
  const results = states.filter(({ final, events }) => final === undefined && events === undefined);
  const byEvents = states.filter(({ events }) => events === true);
  const from = fc.oneof(
    ...(byEvents.length === 0
      ? []
      : [
          {
            weight: 8,
            arbitrary: fc
              .tuple(fc.constantFrom("*", ...byEvents.map(({ id }) => id)), fc.constantFrom(...EVENTS))
              .map(([id, event]): Pick<RowNode, "from" | "on"> => ({ from: id, on: { event } })),
          },
        ]),
    ...(results.length === 0
      ? []
      : [
          {
            weight: 5,
            arbitrary: fc
              .constantFrom(...results.map(({ id }) => id))
              .map((id): Pick<RowNode, "from" | "on"> => ({ from: id, on: "success" })),
          },
        ]),
    {
      weight: 4,
      arbitrary: fc
        .tuple(
          fc.constantFrom("*", ...[...results, ...byEvents].map(({ id }) => id)),
          fc.constantFrom("failure" as const, "skipped" as const, "pause" as const),
        )
        .map(([id, on]): Pick<RowNode, "from" | "on"> => ({ from: id, on })),
    },
  );
  const row = from.chain(({ from: id, on }) =>
    fc
      .record({
        when: rarely(guard(ids, on), 2),
        to: targets(states, pipelines, on),
        approval: rarely(approval, 5),
      })
      .map(
        ({ when, to, approval: asks }): RowNode => ({
          from: id,
          on,
          to,
          ...(when === undefined ? {} : { when }),
          ...(asks === undefined ? {} : { approval: asks }),
        }),
      ),
  );
  return fc.array(row, { minLength: 6, maxLength: 24, size: "max" }).map((made) => [
    ...made,
    // Every state has a way to an end.
    ...byEvents.map(({ id }): RowNode => ({ from: id, on: { event: "END" }, to: END })),
    ...(results.length === 0 ? [] : [{ from: "*", on: "success" as const, to: END }]),
  ]);
}
const END: RouteNode = { do: "done", output: value("the end") };

const interrupts = (states: readonly StateNode[]): fc.Arbitrary<readonly InterruptNode[]> => {
  const plain = states.filter(({ needsX, final }) => !needsX && final === undefined).map(({ id }) => id);
  return fc
    .subarray([...GLOBS])
    .chain((globs) =>
      fc.tuple(
        ...globs.map((files, index) =>
          fc.constantFrom(...plain).map((target): InterruptNode => ({ name: `check_${index}`, files, target })),
        ),
      ),
    );
};

/** Only states that something leads to are part of a machine. What is left out may have led to others. */
function reachable(machine: Machine): Machine {
  const { routes, interrupts: handled = [] } = machine;
  if (routes.kind === "functions") return machine;
  const named = new Set<string>();
  const entered = new Set<string>();
  /** A branch's walk does not go beyond its terminal. */
  const walked = new Set<string>();
  const enter = (id: string, until?: string): void => {
    const step = JSON.stringify([id, until]);
    named.add(id);
    if (id === until || walked.has(step)) return;
    walked.add(step);
    entered.add(id);
    const completesByEvents = machine.states.some((state) => state.id === id && state.events === true);
    for (const { from, on, to } of routes.rows) {
      if ((from !== "*" && from !== id) || (typeof on === "object" && !completesByEvents)) continue;
      const node: RouteNode = typeof to === "string" ? { do: "to", state: to } : to;
      for (const sibling of siblingsOf(node)) named.add(sibling);
      const branches = node.do === "fork" ? node.branches : [];
      for (const { initial, terminal } of branches) enter(initial, terminal);
      const initials = branches.map(({ initial }) => initial);
      const others = namedBy(node).slice(initials.length);
      for (const target of others) if (!siblingsOf(node).includes(target)) enter(target, until);
    }
  };
  for (const id of [machine.initial, ...handled.map(({ target }) => target)]) enter(id);
  const states = machine.states.filter(({ id }) => named.has(id));
  const asksForEvents = states.some(({ id, events }) => events === true && entered.has(id));
  const rows = routes.rows
    .filter(({ from, on }) => (from === "*" ? typeof on === "string" || asksForEvents : entered.has(from)))
    .map((row): RowNode => {
      const { to } = row;
      const isOpen =
        typeof to === "object" && to.do === "fork" && to.branches.some((one) => !entered.has(one.terminal));
      return isOpen ? { ...row, to: END } : row;
    });
  const kept: Machine = { ...machine, states, routes: { kind: "table", rows } };
  return JSON.stringify(kept) === JSON.stringify(machine) ? kept : reachable(kept);
}

/** Routes as functions, which may make the same choices at run time; without events, which only rows have. */
function functions(states: readonly StateNode[], pipelines: readonly string[]): fc.Arbitrary<Machine["routes"]> {
  const working = states.filter(({ final }) => final === undefined);
  const ids = states.map(({ id }) => id);
  const leaf = targets(states, pipelines, "success").map(
    (to): RouteNode => (typeof to === "string" ? { do: "to", state: to } : to),
  );
  const body = (status: "completed" | "failed"): fc.Arbitrary<RouteNode> =>
    fc.oneof(
      leaf,
      fc.tuple(condition(ids, status), leaf, leaf).map(([when, yes, no]): RouteNode => ({ do: "if", when, yes, no })),
    );
  const route = (status: "completed" | "failed", isBare: boolean): fc.Arbitrary<RouteFunctionNode> =>
    fc.tuple(body(status), fc.boolean()).map(([node, isDeclared]) => {
      const named = [...new Set([...namedBy(node), ...terminalsOf(node)])];
      return isBare || !isDeclared || named.length === 0 ? { body: node } : { targets: named, body: node };
    });
  const each = working.map(({ id }, index) =>
    fc
      // The first may lead anywhere, so that no state is unreachable.
      .record({ completed: route("completed", index === 0), failed: rarely(route("failed", false), 2) })
      .map(({ completed, failed }): [string, StateRoutesNode] => [
        id,
        { completed, ...(failed === undefined ? {} : { failed }) },
      ]),
  );
  return fc.tuple(...each).map((all) => ({ kind: "functions", next: Object.fromEntries(all) }));
}

function terminalsOf(node: RouteNode): readonly string[] {
  if (node.do === "if") return [...terminalsOf(node.yes), ...terminalsOf(node.no)];
  return node.do === "fork" ? node.branches.map(({ terminal }) => terminal) : [];
}

/** A state that completes with an output instead of an event. */
function withOutput({ events, acts = [], ...state }: StateNode): StateNode {
  if (events === undefined) return { ...state, acts };
  const outcomes = state.outcomes.map(
    (of): Outcome => (of.status === "failed" ? { status: "completed", output: { n: of.message.length % 4 } } : of),
  );
  return { ...state, outcomes, acts: acts.map((all) => all.filter((one) => one.act === "touch")) };
}

function workflows(pipelines: Readonly<Record<string, Machine>>, ids: readonly string[] = IDS): fc.Arbitrary<Machine> {
  return fc
    .tuple(stateNodes(ids), fc.nat(4))
    .map(([states, of]) => ({ isTable: of > 0, states: of > 0 ? states : states.map(withOutput) }))
    .chain(({ states, isTable }) =>
      fc.record({
        states: fc.constant(states),
        initial: fc.constant(ids[0] ?? ""),
        input: fc.record({ task: fc.constant("route"), x: fc.nat(2) }),
        context: fc.constantFrom<Machine["context"]>({}, { k: 1 }, { k: 0, n: 1, deep: { a: [1] } }),
        limits: fc
          .record({
            maxVisits: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined, freq: 3 }),
            maxHops: fc.option(fc.integer({ min: 1, max: 16 }), { nil: undefined, freq: 2 }),
          })
          .map(({ maxVisits, maxHops }) => ({
            ...(maxVisits === undefined ? {} : { maxVisits }),
            ...(maxHops === undefined ? {} : { maxHops }),
          })),
        routes: isTable
          ? rows(states, Object.keys(pipelines)).map((all): Machine["routes"] => ({ kind: "table", rows: all }))
          : functions(states, Object.keys(pipelines)),
        interrupts: interrupts(states),
        pipelines: fc.constant(pipelines),
      }),
    )
    .map(reachable);
}

/** Machines with all that a file can say, which may invoke each other. */
export const randomWorkflow: fc.Arbitrary<Machine> = fc.oneof(
  { weight: 3, arbitrary: workflows({}) },
  { weight: 1, arbitrary: workflows({}, SUITE_IDS).chain((suite) => workflows({ suite })) },
);

/** One thing that may happen; what it comes to depends on where the machine is. */
export interface Move {
  readonly what: "event" | "end" | "interrupt" | "cancel";
  /** A text, or one of the events of the state. */
  readonly event: string | number;
  readonly data: JsonObject;
  readonly outcome: Outcome;
  readonly path: string;
  readonly yes: boolean;
  /** How children end, one after the other, over and over. */
  readonly children: readonly Outcome[];
}
export const randomMoves: fc.Arbitrary<readonly Move[]> = fc.array(
  fc.record({
    what: fc.oneof(
      { weight: 12, arbitrary: fc.constant("event" as const) },
      { weight: 3, arbitrary: fc.constant("end" as const) },
      { weight: 4, arbitrary: fc.constant("interrupt" as const) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 5 }).map((n) => (n === 0 ? "cancel" : "event")) },
    ),
    event: fc.oneof({ weight: 3, arbitrary: fc.nat(6) }, { weight: 1, arbitrary: fc.constantFrom(...SAID) }),
    data,
    outcome: fc.oneof({ weight: 6, arbitrary: outcome }, { weight: 1, arbitrary: pausing() }),
    path: fc.constantFrom(...PATHS),
    yes: fc.integer({ min: 0, max: 3 }).map((n) => n > 0),
    children: fc.array(outcome, { minLength: 1, maxLength: 3 }),
  }),
  { minLength: 1, maxLength: 24, size: "max" },
);

function pausing(): fc.Arbitrary<Outcome> {
  return fc.nat(2).map((x): Outcome => ({ status: "paused", request: { answer: "later", x } }));
}
