import type { Json, SluiceEvent } from "@sluice/core";
import { childRunId, visible } from "@sluice/core/runtime";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ListBuilder } from "../../packages/view/src/projection/append-only-list.ts";
import type { CallView, CommandView, RunView, TranscriptItem } from "../../packages/view/src/projection/run-view.ts";
import { hugeTexts, nastyText } from "../support/nasty-text.ts";
import { elementsIn, sectionIn, textIn } from "../support/page-parts.ts";
import { execution, runView } from "../support/random-views.ts";
import { pageOf, soundPage } from "../support/report-kit.ts";

/** What an attacker writes to take over the page. */
const attacks = [
  "</script><script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "</style><style>body{display:none}</style>",
  '"><svg onload=alert(1)>',
  "' autofocus onfocus='alert(1)",
  "[click](javascript:alert(1))",
  "[click](https://evil.example/?q=1)",
  "![x](https://evil.example/x.png)",
  "<https://evil.example/>",
  "https://evil.example/",
  "<!-- ",
  "-->",
  "<![CDATA[",
  "&lt;script&gt;&#60;b&#x3e;&amp;lt;",
  "</details></section></main>",
  "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
  "<base href=https://evil.example/>",
  "```html\n<script>\n```",
  "| a | <b> |\n| - | - |\n| <i> | </td> |",
  "> - 1. <x>",
  "\u202egnp.exe\u202c",
  "url(https://evil.example/)",
  "javascript:alert(1)",
  "$" + "{alert(1)}",
  "\u0000<\u0000script>",
];
const hostile: fc.Arbitrary<string> = fc
  .array(fc.oneof(fc.constantFrom(...attacks), nastyText(12)), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join(""));

function listOf<T>(items: readonly T[]) {
  const list = new ListBuilder<T>();
  for (const item of items) list.push(item);
  return list.view();
}

function call(text: string, more: Partial<CallView> = {}): CallView {
  return {
    kind: "call",
    attempt: 1,
    turn: 1,
    callId: text,
    tool: text,
    input: { [text]: text },
    state: "ok",
    output: text,
    ...more,
  };
}

function command(text: string, more: Partial<CommandView> = {}): CommandView {
  return {
    ...{ kind: "command", attempt: 1, number: 1, isPoll: false, words: [text, text], state: "ok", exitCode: 0 },
    ...{ why: text, stdout: text, stderr: text, files: [text], ms: 1 },
    ...more,
  };
}

/** A run in which everything that others wrote is this text. */
function viewWith(text: string): RunView {
  const place = { runId: "r1", executionId: "plan#1", attempt: 1, turn: 1 };
  const items: readonly TranscriptItem[] = [
    { kind: "text", text, ...place },
    { kind: "reasoning", text, ...place },
    { kind: "message", by: text, text, ...place },
    { kind: "boundary", rank: "attempt", text, tone: "plain" },
    { kind: "boundary", rank: "note", text, tone: "bad" },
    call(text),
    call(text, { state: "refused", why: text, output: { code: text, message: text } }),
    call(text, { tool: "Bash", input: { command: text, [`${text}x`]: [text] }, output: { output: text, exitCode: 1 } }),
    call(text, { tool: "Edit", input: { file_path: text, old_string: text, new_string: `${text}!` } }),
    call(text, { tool: "Write", input: { file_path: text, content: text } }),
    call(text, { tool: "Read", input: { file_path: text }, facts: { exitCode: text } }),
    command(text),
    command(text, { words: [text], state: "error" }),
    command(text, { isPoll: true, state: "not_yet", nextAt: 1e300 }),
    command(text, { isPoll: true, number: 2 }),
    { kind: "answer", of: "human", value: { [text]: [text] } },
    { kind: "answer", of: "timer", value: text },
    { kind: "answer", of: text, value: text },
  ];
  const own = execution(text, {
    items: listOf(items),
    fault: text,
    tools: [text],
    status: "failed",
    fork: { runId: "r1", fork: "fan-1", join: text },
    handles: { interrupt: text, files: [text], of: text },
    interrupted: { interrupt: text, files: [text], by: text },
  });
  const child = { kind: "pipeline", key: text, pipeline: text } as const;
  const branch = { kind: "branch", key: `${text}b`, state: text, terminal: text } as const;
  const childRun = childRunId("r1", "fan-2", text);
  const invoked = { runId: childRun, pipeline: text, key: text, initial: text, rows: [], interrupts: [] };
  const states = [
    { id: text, kind: text, label: `${text}l`, targets: [text, "x"] },
    { id: "end", kind: "final", label: text, outcome: text },
  ];
  return runView({
    pipeline: text,
    task: text,
    mode: text,
    cwd: text,
    models: [text],
    states,
    invoked: [{ ...invoked, states }],
    meta: { dangerLevel: text },
    endState: text,
    executions: [own, execution(text, { runId: childRun, invoked: childRun })],
    path: [
      { runId: "r1", from: text, choice: "to", to: [text, "end"], event: text },
      { runId: "r1", from: text, choice: "interrupt", to: [text], event: text },
      { runId: "r1", from: text, choice: "return", to: [text] },
      { runId: "r1", from: text, choice: "fanOut", to: [], join: text, event: text, children: [child, branch] },
    ],
    forks: [
      { runId: "r1", fork: "fan-1", from: "", siblings: [text, "y"], join: text, joined: true },
      { runId: "r1", fork: "fan-2", from: text, siblings: [text], join: text, joined: true, children: [child, branch] },
    ],
    caps: [{ limit: text, message: text, reached: true }],
    requests: [{ runId: "r1", requestId: text, kind: "askUser", digest: text, body: { question: text }, openedAt: 0 }],
    output: { [text]: text },
    status: "completed",
  });
}

function eventsWith(text: string): readonly SluiceEvent[] {
  const event = (type: SluiceEvent["type"], at: number, data: { readonly [key: string]: Json }): SluiceEvent => ({
    id: `r1/${at}/0`,
    runId: "r1",
    executionId: `${text}#1`,
    attempt: 1,
    at,
    type,
    data,
  });
  return [
    event("run.started", 0, {
      input: { task: text, more: text },
      shape: { initial: text, states: [{ id: text, kind: text }] },
      rows: [
        { from: text, on: { event: text }, when: text, to: text, label: text },
        { from: "*", on: { event: text }, when: text, to: text, approval: true, label: text },
      ],
    }),
    event("turn.started", 1, { turn: 1, try: 1, model: text }),
    event("call.decided", 2, {
      callId: text,
      tool: text,
      args: text,
      argsDigest: text,
      verdict: "refused",
      cause: text,
      result: { reason: text },
    }),
    event("grant.requested", 3, {
      requestId: text,
      digest: text,
      body: { tool: text, argsSummary: text, why: text, proposalId: text },
    }),
    event("grant.answered", 4, { requestId: text, callId: text, answer: "deny", by: text, reason: text }),
    event("request.opened", 5, { requestId: `${text}?`, kind: "askUser", digest: text, body: { question: text } }),
    event("route.decided", 6, { from: text, choice: "to", to: text, reason: text, why: { by: text } }),
    event("route.decided", 6, {
      from: text,
      choice: "to",
      to: text,
      why: {
        by: "event",
        event: text,
        rationale: text,
        row: 1,
        rejectedRows: [{ row: 0, label: text, why: text }],
      },
    }),
    event("transition.rejected", 6, {
      turn: 1,
      event: text,
      reason: text,
      rows: [{ row: 0, label: text, when: text, why: text }],
    }),
    event("interrupt.started", 6, { interrupt: text, files: [text], to: text }),
    event("request.opened", 6, {
      requestId: `${text}!`,
      kind: "approveTransition",
      digest: text,
      body: { from: text, to: text, event: text, message: text, data: { rationale: text } },
    }),
    event("route.rejected", 7, { from: text, reason: text }),
    event("route.rejected", 7, { from: text, to: text, reason: text, turn: 1, callId: text }),
    event("route.decided", 7, {
      from: text,
      choice: "to",
      to: text,
      why: { by: "model", reason: text, considered: [{ to: text, refused: text }, { to: text }, text] },
    }),
    event("sleep.started", 7, { until: text, sleeps: text, attempt: text, exitCode: text }),
    event("sleep.started", 7, { until: 1e300, sleeps: 1, attempt: 1e300, exitCode: -1 }),
    event("sleep.ended", 7, { by: text }),
    event("message.received", 7, { turn: text, by: text, text, sentAt: text, kind: text }),
    event("request.opened", 7, {
      requestId: `${text}.`,
      kind: "humanState",
      digest: text,
      until: 1e300,
      body: { question: text, until: 1e300 },
    }),
    event("run.suspended", 7, { reason: "sleeping", wakeAt: 1e300 }),
    event("call.finished", 8, { callId: text, tool: text, outcome: text, ms: 3 }),
  ];
}

test("whatever models, tools and people wrote, the page has only its own elements, and nothing unseen is in it", () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const page = pageOf(viewWith(text), eventsWith(text), { faults: [{ runId: text, fault: text }], verify: text });
      soundPage(page);
      expect(page.isWellFormed()).toBe(true);
      const shown = page.replaceAll("\t", "");
      expect(visible(shown) === shown).toBe(true);
    }),
    { numRuns: 150 },
  );
});

test.each(attacks)("%j is read as it was written", (text) => {
  const root = soundPage(pageOf(viewWith(text), eventsWith(text)));
  const written = visible(text) === text && !text.includes("\n") ? text : "";
  for (const id of ["stages", "result", "decisions", "limits", "routes"])
    expect(textIn(sectionIn(root, id))).toContain(written);
});

test("hidden characters look different from the same letters typed", () => {
  const root = soundPage(pageOf(viewWith("a\u202eb"), eventsWith("a·U+202Eb")));
  const marked = elementsIn(root).filter(({ attributes }) => attributes.get("class") === "unseen");
  expect(marked.length).toBeGreaterThan(10);
  expect(new Set(marked.map(textIn))).toEqual(new Set(["·U+202E"]));
  expect(textIn(sectionIn(root, "decisions"))).toContain("a·U+202Eb");
  expect(
    elementsIn(sectionIn(root, "decisions")).filter(({ attributes }) => attributes.get("class") === "unseen"),
  ).toEqual([]);
});

test("colours of what a command printed are dropped, an emoji stays whole", () => {
  const printed = "\u001b[31mred\u001b[0m 👩‍👩‍👧 ❤️ \u001b[2J";
  const view = runView({
    executions: [
      execution("a", { items: listOf([call("x", { tool: "Bash", input: { command: "c" }, output: printed })]) }),
    ],
  });
  const text = textIn(sectionIn(soundPage(pageOf(view)), "stages"));
  expect(text).toContain("red 👩‍👩‍👧 ❤️ ·U+001B[2J");
});

test.each(hugeTexts)(
  "a million and more of %s in each place make a page of at most 2 MB that says what it left out",
  (name, whole) => {
    const text = name === "words" ? whole : whole.slice(0, 1_500_000);
    const page = pageOf(viewWith(text), eventsWith(text));
    soundPage(page);
    expect(page.length).toBeLessThan(2_000_000);
    expect(page).toContain("left out");
  },
);

test("a run of 6,000 turns makes a page of a few MB, with the beginning and the end of it", () => {
  const items = Array.from({ length: 6_000 }, (_, at): readonly TranscriptItem[] => {
    const turn = at + 1;
    const place = { runId: "r1", executionId: "work#1", attempt: 1, turn };
    return [
      { kind: "text", text: `This is turn ${turn}.`, ...place },
      call(`t${turn}.c0`, { tool: "Read", turn, input: { file_path: "a.ts" }, output: "line\n".repeat(300) }),
    ];
  }).flat();
  const view = runView({
    status: "completed",
    executions: [execution("work", { turns: 6_000, items: listOf(items) })],
  });
  const page = pageOf(view);
  expect(page.length).toBeLessThan(5_000_000);
  const text = textIn(sectionIn(soundPage(page), "stages"));
  expect(text).toContain("This is turn 1.");
  expect(text).toContain("This is turn 6000.");
  expect(text).toMatch(/… [\d,]+ turns, [\d,]+ calls, [\d,]+ other entries of this stage, to keep the page small/);
});

test("a run of 2,000 stages makes a page of a few MB that counts those it left out", () => {
  const executions = Array.from({ length: 2_000 }, (_, at) =>
    execution("work", {
      visit: at + 1,
      startedAt: at,
      endedAt: at + 1,
      items: listOf([call("c", { output: "x".repeat(50_000) })]),
    }),
  );
  const page = pageOf(runView({ status: "completed", executions, endedAt: 2_000 }));
  expect(page.length).toBeLessThan(5_000_000);
  const root = soundPage(page);
  expect(textIn(sectionIn(root, "stages"))).toContain(
    "… 1,700 stages, to keep the page small; the journal has them left out …",
  );
  expect(textIn(sectionIn(root, "stages"))).toContain("work#2000");
});
