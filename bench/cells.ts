import { cpuPerUnit, growthExponent, median, type Slice } from "./measure.ts";
import type { Rounds } from "./process.ts";

/** A measured value, with its budget if it has one. */
export interface Finding {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** The budget. */
  readonly atMost?: number;
}

/** A row group of the table: workloads that alternate, and the evaluation of their slices. */
export interface Cell {
  readonly name: string;
  readonly about: string;
  readonly workloads: readonly string[];
  readonly rounds: number;
  judge(rounds: Rounds): readonly Finding[];
}

/** The calls of a transcript that are compared with another SDK. */
export const PEER_CALLS: readonly number[] = [20, 200, 1000, 3000];

export const cells: readonly Cell[] = [
  // An item of a long list, with the list of one item; both without what the same run costs with an empty list. Of the medians, not
  // of each round: the difference of two slices varies by more than half.
  {
    name: "for-each",
    about: "lists of five hundred items and of one, three-part answers",
    workloads: ["lists-of-0", "lists-of-1", "lists-of-500"],
    rounds: 15,
    judge: (rounds) => {
      const none = medianCost(rounds, "lists-of-0");
      const perItem = (name: string): number => (medianCost(rounds, name) - none) / fact(rounds, name, "items");
      const [one, many] = [perItem("lists-of-1"), perItem("lists-of-500")];
      return [
        { what: "the item of a list of one", value: one, unit: "µs/item" },
        { what: "of a list of five hundred", value: many, unit: "µs/item" },
        { what: "of 500 / of one", value: many / one, unit: "x", atMost: 1.1 },
      ];
    },
  },
  {
    name: "stage",
    about: "one-turn stages in one run, in memory",
    workloads: ["bare", "stages"],
    rounds: 9,
    judge: (rounds) => overBare(rounds, "bare", "stages", "stage", 6),
  },
  {
    name: "pipeline",
    about: "runs of three one-turn stages, in memory",
    workloads: ["bare", "pipelines"],
    rounds: 9,
    judge: (rounds) => overBare(rounds, "bare", "pipelines", "stage"),
  },
  {
    name: "short-run",
    about: "runs of three one-turn stages, with stages of one long run; three-part answers",
    workloads: ["whole-stages", "whole-pipelines"],
    rounds: 9,
    judge: (rounds) => compared(rounds, "whole-stages", "whole-pipelines", "stage", 1.5),
  },
  {
    name: "chain",
    about: "a run of a thousand different states, with a thousand visits of three; three-part answers",
    workloads: ["loop", "chain", "loop-reading", "chain-reading"],
    rounds: 7,
    judge: (rounds) => [
      ...compared(rounds, "loop", "chain", "stage", 1.3),
      // Each prompt gets a frozen plain object of all earlier outputs: half a million entries in a run.
      ...compared(rounds, "loop-reading", "chain-reading", "stage", 1.8),
    ],
  },
  {
    name: "peers",
    about: "a one-turn stage of a long run, with the AI SDK's calls for the same; three-part answers",
    workloads: ["whole-stages", "generate-text", "stream-text"],
    rounds: 9,
    judge: (rounds) => [
      ...compared(rounds, "generate-text", "whole-stages", "stage", 1),
      { what: "stream-text", value: medianCost(rounds, "stream-text"), unit: "µs/stage" },
      {
        what: "whole-stages / stream-text",
        value: ratioOf(rounds, "stream-text", "whole-stages"),
        unit: "x",
        atMost: 0.166,
      },
    ],
  },
  {
    name: "peer-calls",
    about: "tool calls in one transcript, with the AI SDK's loop for the same; three-part answers",
    workloads: PEER_CALLS.flatMap((calls) => [`generate-text-calls-${calls}`, `whole-calls-${calls}`]),
    rounds: 5,
    judge: (rounds) =>
      PEER_CALLS.flatMap((calls) =>
        compared(rounds, `generate-text-calls-${calls}`, `whole-calls-${calls}`, "transcript", 1),
      ),
  },
  {
    name: "telemetry",
    about: "the same stages as spans, with no SDK registered",
    workloads: ["stages", "traced-stages"],
    rounds: 7,
    judge: (rounds) => [
      { what: "without telemetry", value: medianCost(rounds, "stages"), unit: "µs/stage" },
      { what: "with it", value: medianCost(rounds, "traced-stages"), unit: "µs/stage" },
      { what: "with / without", value: ratioOf(rounds, "stages", "traced-stages"), unit: "x" },
    ],
  },
  {
    name: "sqlite",
    about: "one-turn stages in one run, journal on disk",
    workloads: ["bare", "stages", "sqlite", "raw-commits", "stages-with-raw-commits"],
    rounds: 9,
    judge: (rounds) => {
      const [bare, memory, sqlite, raw] = ["bare", "stages", "sqlite", "raw-commits"].map((name) =>
        medianCost(rounds, name),
      );
      if (bare === undefined || memory === undefined || sqlite === undefined || raw === undefined) return [];
      return [
        { what: "bare loop", value: bare, unit: "µs/stage" },
        { what: "in memory", value: memory, unit: "µs/stage" },
        { what: "on disk", value: sqlite, unit: "µs/stage" },
        { what: "raw commits of the same rows", value: raw, unit: "µs/stage" },
        { what: "commits", value: fact(rounds, "sqlite", "commits"), unit: "a stage" },
        { what: "on disk / (6 bare + 1.5 raw commits)", value: sqlite / (6 * bare + 1.5 * raw), unit: "x", atMost: 1 },
        { what: "(on disk - in memory) / raw commits", value: (sqlite - memory) / raw, unit: "x" },
        {
          what: "on disk / in memory with raw commits between",
          value: ratioOf(rounds, "stages-with-raw-commits", "sqlite"),
          unit: "x",
        },
      ];
    },
  },
  {
    name: "calls",
    about: "tool calls in one transcript",
    workloads: ["bare-calls", "calls-200", "calls-1000", "calls-3000"],
    rounds: 7,
    judge: (rounds) => {
      const sizes = [200, 1000, 3000].map((calls) => {
        const size = fact(rounds, `calls-${calls}`, "calls");
        return { size, slices: rounds.get(`calls-${calls}`) ?? [] };
      });
      const [small, , large] = sizes;
      if (small === undefined || large === undefined) return [];
      const growth = large.slices.map((slice, round) =>
        growthExponent(
          { size: small.size, cost: costOf(small.slices[round]) },
          { size: large.size, cost: costOf(slice) },
        ),
      );
      return [
        ...sizes.map(({ size, slices }) => ({
          what: `of ${size} calls`,
          value: median(slices.map(cpuPerUnit)) / size,
          unit: "µs/call",
        })),
        { what: "growth of the whole", value: median(growth), unit: "exponent", atMost: 1.05 },
        ...overBare(rounds, "bare-calls", "calls-200", "200 calls", 12),
      ];
    },
  },
  {
    name: "fan-out",
    about: "a thousand one-turn siblings and their join, eight in parallel, 10 ms per call",
    workloads: ["bare-fan-out", "fan-out"],
    rounds: 9,
    judge: (rounds) => overBare(rounds, "bare-fan-out", "fan-out", "sibling", 6),
  },
  {
    name: "fan-out-virtual",
    about: "the same on a virtual clock, 10 ms per call",
    workloads: ["fan-out-virtual"],
    rounds: 1,
    judge: (rounds) => {
      const ideal = fact(rounds, "fan-out-virtual", "idealMs");
      const makespan = fact(rounds, "fan-out-virtual", "makespanMs");
      return [
        { what: "maximum in parallel", value: fact(rounds, "fan-out-virtual", "most"), unit: "siblings", atMost: 8 },
        { what: "makespan", value: makespan, unit: "virtual ms" },
        {
          what: "difference from the ideal makespan",
          value: Math.abs(makespan - ideal),
          unit: "virtual ms",
          atMost: 0,
        },
      ];
    },
  },
  {
    name: "long-run",
    about: "ten thousand stages in one run",
    workloads: ["long-run"],
    rounds: 15,
    judge: (rounds) => {
      const ratio = least(rounds, "long-run", "lateMs") / least(rounds, "long-run", "earlyMs");
      return [
        { what: "the second thousand", value: fact(rounds, "long-run", "earlyMs"), unit: "ms" },
        { what: "the tenth", value: fact(rounds, "long-run", "lateMs"), unit: "ms" },
        { what: "tenth / second", value: ratio, unit: "x", atMost: 1.2 },
        { what: "the end, with the outcome of every stage", value: fact(rounds, "long-run", "endMs"), unit: "ms" },
      ];
    },
  },
  {
    name: "listeners",
    about: "listeners that a run leaves on signals",
    workloads: ["listeners"],
    rounds: 1,
    judge: (rounds) => [
      { what: "signals created", value: fact(rounds, "listeners", "signals"), unit: "" },
      { what: "signals handed out", value: fact(rounds, "listeners", "handedOut"), unit: "" },
      { what: "listeners left on signals", value: fact(rounds, "listeners", "left"), unit: "", atMost: 0 },
      { what: "listeners left on the process", value: fact(rounds, "listeners", "processLeft"), unit: "", atMost: 0 },
    ],
  },
  {
    name: "heap",
    about: "heap that finished runs retain, in one session",
    workloads: ["heap"],
    rounds: 7,
    judge: (rounds) => {
      const perRun = (rounds.get("heap") ?? []).map(({ facts, units }) => (facts.bytesLeft ?? Number.NaN) / units);
      return [{ what: "heap retained", value: median(perRun), unit: "bytes/run", atMost: 200 }];
    },
  },
  {
    name: "in-flight",
    about: "a thousand runs of three stages that all wait for a model",
    workloads: ["in-flight"],
    rounds: 9,
    judge: (rounds) => {
      const perRun = (rounds.get("in-flight") ?? []).map(({ facts, units }) => (facts.bytesHeld ?? Number.NaN) / units);
      return [{ what: "heap held", value: median(perRun) / 1024, unit: "KB/run", atMost: 24 }];
    },
  },
  {
    name: "transition",
    about: "routing by a table of two guarded rows per state",
    workloads: ["bare-transitions", "transitions"],
    rounds: 7,
    judge: (rounds) => overBare(rounds, "bare-transitions", "transitions", "transition", 40),
  },
  {
    name: "workflow-files",
    about:
      "a hop over a hundred guarded branches, one over a hundred conditions in CEL, and loading a file of 200 states",
    workloads: ["plain-event-hops", "guarded-hops", "plain-table-hops", "cel-hops", "long-file"],
    rounds: 7,
    judge: (rounds) => {
      const [guarded = Number.NaN, cel = Number.NaN] = ["guarded-hops", "cel-hops"].map((name) =>
        medianCost(rounds, name),
      );
      return [
        { what: "a hop of an event with one branch", value: medianCost(rounds, "plain-event-hops"), unit: "µs/hop" },
        { what: "of a hundred guarded branches", value: guarded, unit: "µs/hop", atMost: 50 },
        { what: "a hop of a table with one row", value: medianCost(rounds, "plain-table-hops"), unit: "µs/hop" },
        { what: "of a hundred conditions in CEL", value: cel, unit: "µs/hop", atMost: 50 },
        { what: "rows in its trace", value: fact(rounds, "cel-hops", "traced"), unit: "rows", atMost: 20 },
        {
          what: "loading a file of 200 states",
          value: medianCost(rounds, "long-file") / 1000,
          unit: "ms",
          atMost: 100,
        },
      ];
    },
  },
  {
    name: "disk",
    about: "disk space of a stage, in runs of a thousand and of ten thousand records",
    workloads: ["disk-of-1000", "disk-of-10000"],
    rounds: 1,
    judge: (rounds) => {
      const texts = fact(rounds, "disk-of-10000", "texts");
      const [few = Number.NaN, many = Number.NaN] = ["disk-of-1000", "disk-of-10000"].map((name) =>
        fact(rounds, name, "bytes"),
      );
      return [
        { what: "the texts of its records", value: texts, unit: "bytes/stage" },
        { what: "the store, after a thousand records", value: few, unit: "bytes/stage" },
        { what: "the store, after ten thousand", value: many, unit: "bytes/stage" },
        { what: "the store / the texts of its records", value: many / texts, unit: "x", atMost: 1.8 },
        { what: "after ten thousand / after a thousand", value: many / few, unit: "x", atMost: 1.1 },
      ];
    },
  },
  {
    name: "resume",
    about: "a run resumed after three thousand steps, with the chain check",
    workloads: ["resume"],
    rounds: 5,
    judge: (rounds) => {
      const slices = rounds.get("resume") ?? [];
      const ratio = slices.map(({ facts }) => (facts.resumeCpuMs ?? Number.NaN) / (facts.workCpuMs ?? Number.NaN));
      return [
        { what: "the steps, executed", value: fact(rounds, "resume", "workCpuMs"), unit: "ms" },
        { what: "the steps, recovered", value: fact(rounds, "resume", "resumeCpuMs"), unit: "ms" },
        { what: "recovered / executed", value: median(ratio), unit: "x", atMost: 0.5 },
        { what: "until new work starts", value: least(rounds, "resume", "newWorkMs"), unit: "ms", atMost: 100 },
      ];
    },
  },
  {
    name: "verify",
    about: "the chain of ten thousand records, in a journal and in an export",
    workloads: ["bare-hashes", "verify-journal", "verify-export"],
    rounds: 7,
    judge: (rounds) => {
      const inAll = (name: string): number => median((rounds.get(name) ?? []).map(({ cpuMs }) => cpuMs));
      return [
        ...overBare(rounds, "bare-hashes", "verify-journal", "record", 3),
        { what: "a journal of ten thousand", value: inAll("verify-journal"), unit: "ms" },
        { what: "an export of ten thousand", value: inAll("verify-export"), unit: "ms" },
        { what: "an export / bare hashes", value: inAll("verify-export") / inAll("bare-hashes"), unit: "x", atMost: 8 },
      ];
    },
  },
  {
    name: "list",
    about:
      "the thirty newest runs of a store with a thousand, with a hundred thousand, and with ten thousand records each",
    workloads: ["list-of-1000", "list-of-100000", "list-of-long"],
    rounds: 5,
    judge: (rounds) => {
      const names = ["list-of-1000", "list-of-100000", "list-of-long"];
      const [few = Number.NaN, many = Number.NaN, long = Number.NaN] = names.map((name) => medianCost(rounds, name));
      return [
        { what: "of a thousand", value: few, unit: "µs/list" },
        { what: "of a hundred thousand", value: many, unit: "µs/list" },
        { what: "of runs with ten thousand records", value: long, unit: "µs/list" },
        { what: "of long runs / of short ones", value: long / few, unit: "x", atMost: 2 },
        { what: "of a hundred thousand / of a thousand", value: many / few, unit: "x", atMost: 2 },
      ];
    },
  },
  {
    name: "waiting",
    about: "two thousand runs of one process that each wait for an answer, journal on disk",
    workloads: ["waiting"],
    rounds: 5,
    judge: (rounds) => [
      { what: "runs that wait", value: fact(rounds, "waiting", "runs"), unit: "" },
      { what: "while idle", value: fact(rounds, "waiting", "percent"), unit: "% of a core", atMost: 5 },
      { what: "an answer to one of them", value: fact(rounds, "waiting", "answerMs"), unit: "ms of CPU" },
    ],
  },
  {
    name: "sleeping",
    about: "a worker (sluice serve) over a thousand and over a hundred thousand sleeping runs, fifty of which it wakes",
    workloads: ["sleeping-1000", "sleeping-100000"],
    rounds: 5,
    judge: (rounds) => [
      ...["sleeping-1000", "sleeping-100000"].flatMap((name) => [
        { what: `${name}, while idle`, value: fact(rounds, name, "idlePercent"), unit: "% of a core", atMost: 3 },
        { what: `${name}, a wake`, value: fact(rounds, name, "wakeCpuMs"), unit: "ms of CPU" },
        { what: `${name}, late`, value: least(rounds, name, "lateMs"), unit: "ms" },
        { what: `${name}, the latest`, value: least(rounds, name, "latestMs"), unit: "ms", atMost: 250 },
        { what: `${name}, resident`, value: fact(rounds, name, "residentMb"), unit: "MB", atMost: 150 },
      ]),
      {
        what: "a wake, 100,000 / 1,000",
        value: median(ratiosOf(rounds, "wakeCpuMs")),
        unit: "x",
        atMost: 1.3,
      },
    ],
  },
  {
    name: "syncs",
    about: "the commits of one-turn stages, with a sync each, with two of four deferred, and with none",
    workloads: ["raw-commits", "raw-commits-riding", "raw-commits-unsynced"],
    rounds: 9,
    judge: (rounds) =>
      ["raw-commits", "raw-commits-riding", "raw-commits-unsynced"].flatMap((name) => [
        { what: `${name}, time`, value: fact(rounds, name, "wallUs"), unit: "µs/stage" },
        { what: `${name}, CPU`, value: medianCost(rounds, name), unit: "µs/stage" },
      ]),
  },
  {
    name: "wall",
    about: "sandboxed commands, with all their processes",
    workloads: ["walled-commands"],
    rounds: 5,
    judge: (rounds) => {
      const cpuOf = (way: string): number => fact(rounds, "walled-commands", `${way}CpuMs`);
      const over = (way: string): Finding => ({
        what: `a ${way} one over a bare one`,
        value: cpuOf(way) - cpuOf("bare"),
        unit: "ms of CPU",
        atMost: 4,
      });
      return [
        { what: "a bare command", value: cpuOf("bare"), unit: "ms of CPU" },
        over("reading"),
        over("writing"),
        { what: "bubblewrap alone over a bare one", value: cpuOf("alone") - cpuOf("bare"), unit: "ms of CPU" },
        { what: "a bare command, time", value: least(rounds, "walled-commands", "bareMs"), unit: "ms" },
        { what: "a reading one, time", value: least(rounds, "walled-commands", "readingMs"), unit: "ms" },
        { what: "the sandbox test, time", value: least(rounds, "walled-commands", "proofMs"), unit: "ms" },
      ];
    },
  },
  {
    name: "judging",
    about: "analysis of the most expensive command lines of 16 KB",
    workloads: ["judged-lines"],
    rounds: 5,
    judge: (rounds) => [
      { what: "the worst line", value: least(rounds, "judged-lines", "worst"), unit: "ms of CPU", atMost: 50 },
      { what: "a typical line", value: least(rounds, "judged-lines", "usual"), unit: "ms of CPU" },
    ],
  },
  {
    name: "start",
    about: "processes that start and end, in CPU time",
    workloads: ["version", "headless"],
    rounds: 7,
    judge: (rounds) => [
      { what: "sluice --version over a bare node", value: fact(rounds, "version", "extraMs"), unit: "ms", atMost: 80 },
      { what: "sluice --help over a bare node", value: fact(rounds, "version", "helpMs"), unit: "ms", atMost: 80 },
      { what: "packages it loads", value: fact(rounds, "version", "packages"), unit: "" },
      { what: "packages sluice run --help loads", value: fact(rounds, "headless", "helpPackages"), unit: "" },
      { what: "the demo over a bare node", value: fact(rounds, "headless", "demoMs"), unit: "ms", atMost: 315 },
      { what: "zod, ajv, ink, ai, providers it loads", value: fact(rounds, "headless", "unused"), unit: "", atMost: 0 },
    ],
  },
  {
    name: "first-run",
    about: "start to the end of three stages with one schema of Zod, in CPU time of the process; three-part answers",
    workloads: ["first-runs"],
    rounds: 15,
    judge: (rounds) => {
      const slices = rounds.get("first-runs") ?? [];
      const shareOf = (other: string): number =>
        median(slices.map(({ facts }) => (facts.sluiceMs ?? Number.NaN) / (facts[other] ?? Number.NaN)));
      return [
        { what: "a bare loop", value: fact(rounds, "first-runs", "bareMs"), unit: "ms" },
        { what: "a pipeline", value: fact(rounds, "first-runs", "sluiceMs"), unit: "ms" },
        { what: "generateText", value: fact(rounds, "first-runs", "generateTextMs"), unit: "ms" },
        { what: "the pipeline over the bare loop", value: shareOf("bareMs"), unit: "x", atMost: 1.4 },
        { what: "the pipeline over generateText", value: shareOf("generateTextMs"), unit: "x", atMost: 1 },
        {
          what: "importing core and stages",
          value: fact(rounds, "first-runs", "importMs"),
          unit: "ms over a bare node",
        },
        { what: "files of ours that it loads", value: fact(rounds, "first-runs", "files"), unit: "", atMost: 12 },
        { what: "whether it loads Zod", value: fact(rounds, "first-runs", "zod"), unit: "", atMost: 0 },
      ];
    },
  },
  {
    name: "gateway",
    about: "calls of an agent behind the gateway: a state with 100 branches, 10,000 records before, journal on disk",
    workloads: ["stage-reads", "gateway-reads", "gateway-native"],
    rounds: 9,
    judge: (rounds) => [
      ...compared(rounds, "stage-reads", "gateway-reads", "call", 1.3),
      { what: "of a gateway tool, p50", value: fact(rounds, "gateway-reads", "answeredP50"), unit: "ms" },
      { what: "of a gateway tool, p95", value: least(rounds, "gateway-reads", "answeredP95"), unit: "ms" },
      { what: "decision, p50", value: fact(rounds, "gateway-native", "decidedP50"), unit: "ms" },
      { what: "decision, p95", value: least(rounds, "gateway-native", "decidedP95"), unit: "ms", atMost: 2 },
      { what: "sync of one small write, p95", value: least(rounds, "gateway-native", "syncP95"), unit: "ms" },
    ],
  },
  {
    name: "terminal",
    about: "the app on a terminal: 5,000 lines of transcript, 100 updates a second, a key every 250 ms",
    workloads: ["streaming-app", "first-paint"],
    rounds: 5,
    judge: (rounds) => [
      { what: "updates", value: fact(rounds, "streaming-app", "updates"), unit: "a second" },
      {
        what: "CPU while lines are printed",
        value: fact(rounds, "streaming-app", "cpuPercent"),
        unit: "% of a core",
        atMost: 30,
      },
      {
        what: "CPU while the transcript is read",
        value: fact(rounds, "streaming-app", "readingPercent"),
        unit: "% of a core",
        atMost: 30,
      },
      { what: "output to the terminal", value: fact(rounds, "streaming-app", "kilobytes"), unit: "KB a second" },
      { what: "key to screen", value: least(rounds, "streaming-app", "keyMs"), unit: "ms" },
      { what: "key to screen, p95", value: least(rounds, "streaming-app", "keyP95Ms"), unit: "ms", atMost: 80 },
      { what: "a bare node, to its first output", value: least(rounds, "first-paint", "bareMs"), unit: "ms" },
      {
        what: "first paint from a cold start",
        value: least(rounds, "first-paint", "paintMs"),
        unit: "ms",
        atMost: 700,
      },
    ],
  },
];

/** Cost relative to the bare loop. */
function overBare(rounds: Rounds, beside: string, name: string, unit: string, atMost?: number): readonly Finding[] {
  return [
    { what: "bare loop", value: medianCost(rounds, beside), unit: `µs/${unit}` },
    { what: "ours", value: medianCost(rounds, name), unit: `µs/${unit}` },
    {
      what: "ours / bare",
      value: ratioOf(rounds, beside, name),
      unit: "x",
      ...(atMost === undefined ? {} : { atMost }),
    },
  ];
}

/** Cost of a workload relative to another, both by their names. */
function compared(rounds: Rounds, beside: string, name: string, unit: string, atMost: number): readonly Finding[] {
  return [
    { what: beside, value: medianCost(rounds, beside), unit: `µs/${unit}` },
    { what: name, value: medianCost(rounds, name), unit: `µs/${unit}` },
    { what: `${name} / ${beside}`, value: ratioOf(rounds, beside, name), unit: "x", atMost },
  ];
}

/** The median of the ratios of each round, whose slices ran under the same load. */
function ratioOf(rounds: Rounds, beside: string, name: string): number {
  const others = rounds.get(beside) ?? [];
  return median((rounds.get(name) ?? []).map((slice, round) => cpuPerUnit(slice) / costOf(others[round])));
}

function medianCost(rounds: Rounds, name: string): number {
  return median((rounds.get(name) ?? []).map(cpuPerUnit));
}

function costOf(slice: Slice | undefined): number {
  return slice === undefined ? Number.NaN : cpuPerUnit(slice);
}

function fact(rounds: Rounds, workload: string, name: string): number {
  return median((rounds.get(workload) ?? []).map(({ facts }) => facts[name] ?? Number.NaN));
}

/** What a fact is over a hundred thousand sleeping runs, with that over a thousand, in each round. */
function ratiosOf(rounds: Rounds, name: string): readonly number[] {
  const few = rounds.get("sleeping-1000") ?? [];
  return (rounds.get("sleeping-100000") ?? []).map(
    ({ facts }, round) => (facts[name] ?? Number.NaN) / (few[round]?.facts[name] ?? Number.NaN),
  );
}

/** The best round, for wall time: other load only adds to it. */
function least(rounds: Rounds, workload: string, name: string): number {
  return Math.min(...(rounds.get(workload) ?? []).map(({ facts }) => facts[name] ?? Number.NaN));
}
