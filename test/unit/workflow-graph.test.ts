import { type AnyPipeline, cancel, done, fail, fanOut, final, invoke, pipeline, route, stage, to } from "@sluice/core";
import { asciiGraph, graphOf, loadWorkflow, mermaidGraph, svgGraph } from "@sluice/workflows";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { loadDocument } from "../support/workflows.ts";

const FULL = new URL("../fixtures/workflows/statewright/deploy-full.json", import.meta.url).pathname;
type Spec = AnyPipeline["spec"];

async function specIn(document: object): Promise<Spec> {
  const { pipeline: loaded, diagnostics } = await loadDocument(document);
  if (loaded === undefined) throw new Error(JSON.stringify(diagnostics));
  return loaded.spec;
}
async function fullExample(): Promise<Spec> {
  const { pipeline: loaded } = await loadWorkflow(FULL);
  if (loaded === undefined) throw new Error("the example did not load");
  return loaded.spec;
}
/** The edges by labels: `a -- EVENT --> b`; dotted if dashed, doubled if a person approves. */
function edgesOf(spec: Spec): readonly string[] {
  const { nodes, edges } = graphOf(spec);
  const named = new Map(nodes.map(({ id, label }) => [id, label]));
  return edges.map(({ from, to: target, label, dashed, approval }) => {
    const line = dashed ? ".." : approval ? "==" : "--";
    return `${named.get(from)} ${line} ${label} ${line}> ${named.get(target)}`;
  });
}

test("the reference example as Mermaid, with conditions, the approval and the ends", async () => {
  expect(mermaidGraph(await fullExample()).split("\n")).toEqual([
    "flowchart TD",
    '  n0["planning<br/>Read, Grep, Glob"]:::initial',
    '  n1["testing<br/>Read, Bash(pytest #42;), Bash(npm test #42;), Bash(cargo test #42;)"]',
    '  n2["fixing<br/>Read, Edit"]',
    '  n3["deploying<br/>Bash(kubectl #42;), Bash(helm #42;)"]',
    '  n4(["complete"]):::completed',
    '  n5(["failed"]):::failed',
    '  n0 -->|"READY"| n1',
    '  n0 -->|"FAIL"| n5',
    '  n0 -->|"safe_next"| n1',
    '  n1 -->|"EVALUATE#91;0#93; #91;deploy_ready (test_result equals #34;pass#34;)#93;"| n3',
    '  n1 -->|"EVALUATE#91;1#93; #91;tests_failed (test_result equals #34;fail#34;)#93;"| n2',
    '  n1 -->|"EVALUATE#91;2#93;"| n5',
    '  n2 -->|"DONE"| n1',
    '  n2 -->|"FAIL"| n5',
    '  n3 ==>|"DONE (approval)"| n4',
    '  n3 -->|"FAIL"| n5',
    "  classDef initial stroke-width:3px",
    "  classDef completed stroke:#2e7d32",
    "  classDef failed stroke:#c62828",
    "  classDef cancelled stroke:#6d6d6d",
    "",
  ]);
});

test("the reference example as plain text, in rows by the distance from the start", async () => {
  expect(asciiGraph(await fullExample())).toBe(`\
+-----------------------+
| > planning            |
| Read, Grep, Glob      |
+-----------------------+
| READY --> testing     |
| FAIL --> failed       |
| safe_next --> testing |
+-----------------------+
        v
+----------------------------------------------------------------------+
| testing                                                              |
| Read, Bash(pytest *), Bash(npm test *), Bash(cargo test *)           |
+----------------------------------------------------------------------+
| EVALUATE[0] [deploy_ready (test_result equals "pass")] --> deploying |
| EVALUATE[1] [tests_failed (test_result equals "fail")] --> fixing    |
| EVALUATE[2] --> failed                                               |
+----------------------------------------------------------------------+
        v
+------------------+   +-------------------------------+
| fixing           |   | deploying                     |
| Read, Edit       |   | Bash(kubectl *), Bash(helm *) |
+------------------+   +-------------------------------+
| DONE --> testing |   | DONE (approval) --> complete  |
| FAIL --> failed  |   | FAIL --> failed               |
+------------------+   +-------------------------------+
        v
+----------------+   +---------------------+
| (end) complete |   | (failed end) failed |
+----------------+   +---------------------+
`);
});

test("branches are groups, interrupts and their returns are dashed", async () => {
  const spec = await specIn({
    id: "w",
    initial: "build",
    states: {
      build: {
        allowed_tools: ["Edit"],
        on: {
          BUILT: {
            fork: {
              branches: {
                lint: { initial: "lint_run", terminal: "lint_done" },
                types: { initial: "types_run", terminal: "types_done" },
              },
              on_complete: "done",
              on_fail: "failed",
            },
          },
        },
      },
      lint_run: { allowed_tools: ["Bash"], on: { OK: "lint_done" } },
      lint_done: { type: "final" },
      types_run: { allowed_tools: ["Bash"], on: { OK: "types_done" } },
      types_done: { type: "final" },
      audit: { allowed_tools: ["Read"], on: { OK: "$return" } },
      done: { type: "final" },
      failed: { type: "final" },
    },
    interrupts: { sql: { trigger: { file_pattern: "db/**" }, target: "audit" } },
  });
  expect(edgesOf(spec)).toEqual([
    "build -- BUILT --> all branches",
    "all branches .. lint ..> lint_run",
    "lint_done .. lint joined ..> done",
    "all branches .. types ..> types_run",
    "types_done .. types joined ..> done",
    "all branches .. failed ..> failed",
    "lint_run -- OK --> lint_done",
    "types_run -- OK --> types_done",
    "audit .. OK ..> the interrupted state",
    "the interrupted state .. sql: db/** changes ..> audit",
  ]);
  const { nodes, groups } = graphOf(spec);
  const members = groups.map(({ id, label }) => [
    label,
    nodes.filter(({ group }) => group === id).map((node) => node.label),
  ]);
  expect(members).toEqual([
    ["lint", ["lint_run", "lint_done"]],
    ["types", ["types_run", "types_done"]],
  ]);
  expect(mermaidGraph(spec)).toContain(
    '  subgraph g0["lint"]\n    n1["lint_run<br/>Bash"]\n    n2(["lint_done"]):::completed\n  end\n',
  );
  expect(asciiGraph(spec)).toContain("branch types: types_run, types_done");
  expect(svgGraph(spec)).toContain(">branch types</text>");
});

test("pipelines in TypeScript: rows for every state, fan-outs, invoked pipelines, ends, and functions", () => {
  const o = z.object({ ok: z.boolean() });
  const agent = () =>
    stage({ prompt: "A", completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [] });
  const own = { input: z.object({}), initial: "a" } as const;
  const child = pipeline({
    ...own,
    id: "child",
    stages: { a: agent() },
    transitions: [{ from: "a", on: "success", to: done(1) }],
  });
  const table = pipeline({
    ...own,
    id: "p",
    stages: { a: agent(), b: agent(), c: agent(), end: final("completed") },
    pipelines: { child },
    transitions: [
      { from: "a", on: "success", to: fanOut(["b"], { join: "c" }) },
      { from: "c", on: "success", to: invoke("child", { onComplete: "end" }) },
      { from: "*", on: "failure", to: fail("broken") },
      { from: "*", on: "skipped", to: cancel("not needed") },
      { from: "b", on: "success", to: done(1) },
    ],
  });
  expect(edgesOf(table.spec)).toEqual([
    "a -- success --> side by side",
    "side by side ..  ..> b",
    "b .. joined ..> c",
    "b -- success --> done",
    "c -- success --> pipeline child",
    "pipeline child -- completed --> end",
    "every state -- failure --> failed: broken",
    "every state -- skipped --> cancelled: not needed",
  ]);
  const functions = pipeline({
    ...own,
    id: "f",
    stages: { a: agent(), b: agent() },
    next: { a: route(["b"], () => to("b")), b: () => done(1) },
  });
  expect(edgesOf(functions.spec)).toEqual(["a --  --> b", "b .. its route decides ..> any state"]);
});

const HOSTILE = '"]; click n0 "javascript:x" %% `**` <script>alert(1)</script> -->|x| & \u202e\u0007 \u2028 end';

test("names that look like markup stay text in every drawing", async () => {
  // Files may not hide text; what else has names is below.
  const written = HOSTILE.replaceAll(/\p{Cf}/gu, "");
  const spec = await specIn({
    id: written,
    initial: written,
    states: { [written]: { allowed_tools: [], on: { 'E"|<b>': "done" } }, done: { type: "final" } },
  });
  const mermaid = mermaidGraph(spec);
  // Outside of quotes there is nothing that a name could have brought.
  for (const line of mermaid.split("\n").slice(1))
    expect(line.replaceAll(/"[\p{L}\p{N} .,:/()=_#;<>-]*"/gu, '""')).toMatch(
      /^[\w ,#:[\](){}|>=.-]*(?:""[\w ,#:[\](){}|>=.-]*)*$/u,
    );
  expect(mermaid.replaceAll("<br/>", "")).not.toMatch(/[<`%&\u202e]/u);
  const svg = svgGraph(spec);
  expect(svg).not.toMatch(/<script|javascript:[^&]*"[^&]/u);
  expect(svg.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  const tags = svg.match(/<\/?[a-z]+/giu) ?? [];
  expect([...new Set(tags.map((tag) => tag.replace(/[</]+/u, "")))].toSorted()).toEqual([
    "defs",
    "g",
    "marker",
    "path",
    "rect",
    "svg",
    "text",
    "title",
  ]);
  expect(asciiGraph(spec).replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
});

test("text that hides or reverses is not drawn as it is", () => {
  const { spec } = pipeline({
    id: "w",
    input: z.unknown(),
    stages: { a: stage({ prompt: "Work.", allowedTools: [], turnCap: 1 }), done: final("completed") },
    initial: "a",
    transitions: [{ from: "a", on: { event: "GO" }, to: "done", label: "G\u202eO" }],
  });
  for (const drawing of [asciiGraph(spec), mermaidGraph(spec), svgGraph(spec)]) {
    expect(drawing).not.toMatch(/\u202e/u);
    expect(drawing).toContain("done");
  }
});

test("the labels of edges cover neither each other nor a box, and keep the word of an approval", async () => {
  const guards = { ready: { field: "a_rather_long_field", op: "eq", value: "an even longer value" } };
  const spec = await specIn({
    id: "w",
    initial: "a",
    states: {
      a: {
        allowed_tools: [],
        on: { SHIP: { target: "done", guard: "ready", requires_approval: true }, GIVE_UP: "failed" },
      },
      done: { type: "final" },
      failed: { type: "final" },
    },
    guards,
  });
  const svg = svgGraph(spec);
  const texts = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)" font-size="11"[^>]*paint-order[^>]*>([^<]*)</g)];
  const places = texts.map(([, x, y, words = ""]) => ({ x: Number(x), y: Number(y), half: words.length * 3 }));
  expect(places).toHaveLength(2);
  const [one = { x: 0, y: 0, half: 0 }, other = one] = places;
  const apart = Math.abs(one.y - other.y) >= 12 || Math.abs(one.x - other.x) >= one.half + other.half;
  expect(apart).toBe(true);
  expect(svg).toContain("… (approval)</text>");
});

test("a state of steps shows the tools of all its steps", async () => {
  const agent = (name: string, tools: readonly string[]) => ({
    name,
    prompt: "Work.",
    tools,
    sink_to: `scratchpad.${name}`,
  });
  const states = { a: [agent("one", ["Read"]), agent("two", ["Read", "Grep"])], b: [agent("three", [])] };
  const transitions = [
    { from: "a", on: "success", to: "b" },
    { from: "b", on: "success", to: "done" },
  ];
  const spec = await specIn({
    kind: "StateMachine",
    name: "m",
    start_state: "a",
    end_states: ["done"],
    states,
    transitions,
  });
  expect(graphOf(spec).nodes.map(({ label, detail }) => [label, detail])).toEqual([
    ["a", "steps: Read, Grep"],
    ["b", "steps"],
    ["done", undefined],
  ]);
});

test("a drawing in plain text keeps to its columns, whatever the names are", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc
          .string({ unit: "grapheme", minLength: 1, maxLength: 90 })
          .filter((name) => name.trim() !== "" && name.isWellFormed() && !/[{}$*]|__proto__|\p{C}/u.test(name)),
        { minLength: 2, maxLength: 9 },
      ),
      fc.integer({ min: 40, max: 100 }),
      async (names, width) => {
        const states: Record<string, object> = { end: { type: "final", outcome: "completed" } };
        const ids = [...new Set(names)].filter((name) => !Object.hasOwn(states, name));
        fc.pre(ids.length > 0);
        for (const [index, name] of ids.entries())
          states[name] = { allowed_tools: ["Read"], on: { GO: ids[index + 1] ?? "end", [`E${index}`]: ids[0] } };
        const { pipeline: loaded } = await loadDocument({ id: "w", initial: ids[0], states });
        fc.pre(loaded !== undefined);
        if (loaded === undefined) return;
        const text = asciiGraph(loaded.spec, { width });
        for (const line of text.split("\n")) expect([...line].length).toBeLessThanOrEqual(width);
      },
    ),
    { numRuns: 100 },
  );
});
