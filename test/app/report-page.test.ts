import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { textAt } from "../../packages/view/src/words/fields.ts";
import { elementsIn, sectionIn, textIn, valuesOf } from "../support/page-parts.ts";
import { execution, runView, states } from "../support/random-views.ts";
import { pageOf, reportOf, soundPage } from "../support/report-kit.ts";
import { eventually } from "../support/run-kit.ts";
import { ASKING, begin, FAILING, play, SMOOTH, TROUBLED } from "../support/run-scenes.ts";

test.each([
  ["smooth", SMOOTH, "approve"],
  ["approved", ASKING, "approve"],
  ["denied", ASKING, "deny"],
  ["troubled", TROUBLED, "approve"],
  ["failing", FAILING, "approve"],
] as const)("every stage and every call of a %s run is there once", async (_name, script, answer) => {
  const { live, runId } = await play(script, answer);
  const { page, view } = await reportOf(live.host, runId);
  const root = soundPage(page);
  expect(valuesOf(root, "data-stage")).toEqual(view.executions.map(({ key }) => key));
  const calls = view.executions.flatMap(({ key, items }) =>
    [...items].flatMap((item) => (item.kind === "call" ? [`${key} ${item.attempt} ${item.callId}`] : [])),
  );
  expect(valuesOf(root, "data-call")).toEqual(calls);
  const text = textIn(sectionIn(root, "stages"));
  for (const { items } of view.executions)
    for (const item of items) if (item.kind === "reasoning") expect(text).toContain(item.text);
  expect(textIn(sectionIn(root, "result"))).toContain(view.error?.code ?? "fine");
});

test("a report's head says what ran, how it ended and what it used; its end has the journal's head", async () => {
  const { live, runId, result } = await play(ASKING);
  const { page, view } = await reportOf(live.host, runId);
  const root = soundPage(page);
  const [head] = elementsIn(root).filter(({ tag }) => tag === "header");
  const said = head === undefined ? "" : textIn(head);
  for (const words of ["ship", "completed", "ship it", runId, "scripted", "ann"]) expect(said).toContain(words);
  expect(said).toContain(result.usage.inputTokens.toLocaleString("en-US"));
  const [journal] = await live.host.journal(runId);
  expect(textIn(sectionIn(root, "record"))).toContain(journal?.claimed.head);
  expect(view.status).toBe("completed");
});

test("grants and denials say who, why and for which digest", async () => {
  const granted = await play(ASKING);
  const approved = await reportOf(granted.live.host, granted.runId);
  const denied = await play(ASKING, "deny");
  const refused = await reportOf(denied.live.host, denied.runId);
  for (const [{ page, events }, word, why] of [
    [approved, "approved", ""],
    [refused, "denied", "not now"],
  ] as const) {
    const rows = elementsIn(sectionIn(soundPage(page), "decisions")).filter(({ tag }) => tag === "tr");
    const digests = events.filter(({ type }) => type === "grant.requested").map(({ data }) => textAt(data, "digest"));
    expect(digests).toHaveLength(3);
    for (const digest of digests) {
      const row = rows.map(textIn).find((text) => text.includes(digest)) ?? "";
      for (const words of [word, "ann", why, "change("]) expect(row).toContain(words);
    }
  }
});

test("a call says who approved it, and why it was refused, before it is unfolded", async () => {
  for (const [answer, shown] of [
    ["approve", "approved by ann"],
    ["deny", "denied by ann: not now"],
  ] as const) {
    const { live, runId } = await play(ASKING, answer);
    const { page } = await reportOf(live.host, runId);
    const heads = elementsIn(sectionIn(soundPage(page), "stages")).filter(({ tag }) => tag === "summary");
    expect(heads.map(textIn).filter((text) => text.includes(shown))).toHaveLength(3);
  }
});

test("the path tells loops, siblings, the join and what was not reached, in words and in the picture", async () => {
  const troubled = await play(TROUBLED);
  const again = textIn(sectionIn(soundPage((await reportOf(troubled.live.host, troubled.runId)).page), "path"));
  expect(again).toContain("review → execute");
  expect(again).toContain("execute → test ∥ lint in parallel, then review");
  expect(again).toContain("entered 2×");
  expect(again).toContain("review → run completed");
  const failing = await play(FAILING);
  const short = sectionIn(soundPage((await reportOf(failing.live.host, failing.runId)).page), "path");
  expect(textIn(short)).toContain("review: not reached");
  const boxes = elementsIn(short).flatMap(({ attributes }) => attributes.get("class") ?? []);
  expect(boxes.filter((name) => name.startsWith("box ")).toSorted()).toEqual(
    ["box end fail", "box failed"].concat(Array.from({ length: 4 }, () => "box unreached")),
  );
});

test("the timeline has a lane for each stage, with its turns, its tools and what waited for people", async () => {
  const { live, runId } = await play(ASKING);
  const { page, view } = await reportOf(live.host, runId);
  const timeline = sectionIn(soundPage(page), "timeline");
  const lanes = elementsIn(timeline).filter(({ attributes }) =>
    /^lane( sibling)?$/.test(attributes.get("class") ?? ""),
  );
  expect(lanes).toHaveLength(view.executions.length);
  for (const [at, one] of view.executions.entries()) {
    const lane = lanes[at];
    if (lane === undefined) throw new Error("no lane");
    const bars = elementsIn(lane).filter(({ tag }) => tag === "rect");
    expect(bars.filter(({ attributes }) => attributes.get("class") === "model")).toHaveLength(one.turns);
    const tools = [...one.items].filter((item) => item.kind === "call" && item.ms !== undefined);
    expect(bars.filter(({ attributes }) => attributes.get("class") === "tool")).toHaveLength(tools.length);
    for (const { attributes } of bars) {
      const [x, width] = [Number(attributes.get("x")), Number(attributes.get("width"))];
      expect(x >= 0 && width > 0 && x + width <= 1_001).toBe(true);
    }
  }
  expect(textIn(timeline)).toContain("waiting for a person: change");
});

test("the longest time without work is drawn shorter, and says how long it was", () => {
  const hour = 3_600_000;
  const view = runView({
    status: "completed",
    executions: [execution("plan", { startedAt: 0, endedAt: 10 * hour })],
    endedAt: 10 * hour,
  });
  const event = (
    type: "turn.started" | "turn.finished" | "grant.requested" | "grant.answered",
    at: number,
    data: object,
  ) => ({
    id: `r1/${at}/0`,
    runId: "r1",
    executionId: "plan#1",
    attempt: 1,
    at,
    type,
    data: JSON.parse(JSON.stringify(data)),
  });
  const page = pageOf(view, [
    event("turn.started", 0, { turn: 1, try: 1, model: "m" }),
    event("grant.requested", 60_000, { requestId: "q", body: { tool: "Bash" } }),
    event("grant.answered", 9 * hour, { requestId: "q", answer: "approve", by: "ann" }),
    event("turn.started", 9 * hour + 1, { turn: 2, try: 1, model: "m" }),
    event("turn.finished", 10 * hour, { turn: 2 }),
  ]);
  const timeline = sectionIn(soundPage(page), "timeline");
  expect(textIn(timeline)).toContain("idle, drawn shorter than it was: 8 h 59 min");
  const person = elementsIn(timeline).find(
    ({ tag, attributes }) => tag === "rect" && attributes.get("class") === "person",
  );
  expect(Number(person?.attributes.get("width"))).toBeLessThan(50);
  const [, second] = elementsIn(timeline).filter(({ attributes }) => attributes.get("class") === "model");
  expect(Number(second?.attributes.get("width"))).toBeGreaterThan(800);
});

test("the page's policy allows its own style by hash and nothing else", async () => {
  const { live, runId } = await play(SMOOTH);
  const root = soundPage((await reportOf(live.host, runId)).page);
  const [style, ...others] = elementsIn(root).filter(({ tag }) => tag === "style");
  expect(others).toEqual([]);
  const hash = createHash("sha256")
    .update(style === undefined ? "" : textIn(style))
    .digest("base64");
  const policy = elementsIn(root).find(({ attributes }) => attributes.get("http-equiv") === "Content-Security-Policy");
  expect(policy?.attributes.get("content")).toBe(
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`,
  );
  expect(style === undefined ? "" : textIn(style)).not.toMatch(/@import|@font-face|https?:|url\((?!#)/);
});

test("a page can be read with a reader's help: headings in order, tables with heads, pictures with words", async () => {
  const { live, runId } = await play(TROUBLED);
  const all = elementsIn(soundPage((await reportOf(live.host, runId)).page));
  const levels = all.flatMap(({ tag }) => (/^h\d$/.test(tag) ? [Number(tag.slice(1))] : []));
  expect(levels[0]).toBe(1);
  for (const [at, level] of levels.entries()) expect(level - (levels[at - 1] ?? 0)).toBeLessThanOrEqual(1);
  for (const table of all.filter(({ tag }) => tag === "table")) {
    const inside = elementsIn(table);
    expect(inside.some(({ tag }) => tag === "caption")).toBe(true);
    const heads = inside.filter(({ tag }) => tag === "th");
    expect(heads.length).toBeGreaterThan(1);
    expect(heads.every(({ attributes }) => attributes.get("scope") === "col")).toBe(true);
  }
  for (const { attributes } of all.filter(({ tag }) => tag === "svg")) {
    const named = attributes.get("aria-label") ?? attributes.get("aria-labelledby");
    expect(attributes.get("aria-hidden") === "true" || (attributes.get("role") === "img" && named !== undefined)).toBe(
      true,
    );
  }
});

test("a run that waits is reported as far as it got, with what it asks", async () => {
  const { live, handle } = begin(ASKING);
  await eventually(async () => (await live.host.requests(handle.runId)).length > 0, "a request");
  const { page } = await reportOf(live.host, handle.runId);
  const root = soundPage(page);
  expect(textIn(sectionIn(root, "open"))).toContain('change(file: "a.ts")');
  expect(textIn(root)).toContain("waiting for an answer");
  await handle.cancel("enough");
});

test("a box of the picture has whole words only, and all of them in its title", () => {
  const waits = execution("plan", { status: "waiting", turns: 12 });
  const view = runView({ executions: [waits], states: states("plan"), initial: "plan" });
  const path = textIn(sectionIn(soundPage(pageOf(view, [])), "path"));
  expect(path).toContain("plan: waiting for an answer, 12 turns, first");
  expect(path).not.toContain("…");
});

test("a changed journal is reported before anything else", () => {
  const root = soundPage(pageOf(runView(), [], { faults: [{ runId: "r1", fault: "record 3 was changed" }] }));
  const text = textIn(root);
  expect(text.indexOf("record 3 was changed")).toBeGreaterThan(0);
  expect(text.indexOf("record 3 was changed")).toBeLessThan(text.indexOf("Result"));
  expect(elementsIn(root).filter(({ attributes }) => attributes.get("role") === "alert")).toHaveLength(1);
});

test("a run that has not begun makes a page too", () => {
  const root = soundPage(pageOf(runView({ states: states("plan", "review") })));
  expect(textIn(sectionIn(root, "path"))).toContain("No route was decided yet.");
  expect(textIn(sectionIn(root, "stages"))).toContain("No stage was entered.");
});
