import { legalEvents } from "@sluice/core/machine";
import { expect } from "vitest";
import { dataOf } from "../../support/run-kit.ts";
import {
  calls,
  documentOf,
  fact,
  oneState,
  ours,
  pipelineOf,
  play,
  read,
  send,
  systemOf,
  write,
} from "../../support/statewright.ts";
import { loadDocument, ruleLines } from "../../support/workflows.ts";

// Which tools a state has, and the limits of what they may do.

const limited = { code: "tool_call_denied", cause: "limit" };
const lines = (count: number, word = "line"): string =>
  Array.from({ length: count }, (_, at) => `${word} ${at + 1}\n`).join("");

fact(52, "a tool that the state lists runs, and one that it does not list is refused", async () => {
  const turn = calls(["Read", { file_path: "a.txt" }], ["Write", { file_path: "b.txt", content: "x" }]);
  const document = oneState({ allowed_tools: ["Read"] });
  const { results, result } = await play(document, { a: [turn, send("DONE")] }, { files: { "a.txt": "some text" } });
  expect(results[0]).toMatchObject([expect.stringContaining("some text"), { code: "tool_call_denied", tool: "Write" }]);
  expect(result.denied).toHaveLength(1);
});

ours(53, "a state without a list of tools is as open as the session's mode, and loading says so", async () => {
  const loaded = await loadDocument(oneState({ allowed_tools: undefined }));
  expect(ruleLines(loaded)).toEqual(["no-envelope states.a (warning)"]);
  const turns = { a: [write("b.txt", "x"), send("DONE")] };
  const open = await play(loaded, turns, { mode: "yolo" });
  expect([open.result.denied, open.folder.text("b.txt")]).toEqual([[], "x"]);
  expect((await play(loaded, turns, { mode: "ask" })).result.denied).toMatchObject([{ tool: "Write" }]);
});

ours(54, "a final state ends the run, so that no agent has tools in it", async () => {
  const { result, heard, walked } = await play(oneState({}), { a: [send("DONE"), write("b.txt", "x")] });
  expect([result.status, heard.length, walked]).toEqual(["completed", 1, ["a#1"]]);
});

fact(55, "a state that the workflow does not have has neither tools nor events", async () => {
  const { spec } = pipelineOf(await loadDocument(oneState({})));
  expect([spec.states.get("gone"), legalEvents(spec, "gone")]).toEqual([undefined, []]);
});

fact(56, "a refusal names the tool, the tools that are allowed and the way out of the state", async () => {
  const document = oneState({ allowed_tools: ["Read", "Grep"] });
  const { results, heard } = await play(document, { a: [write("b.txt", "x"), send("DONE")] });
  expect(results[0]).toMatchObject([
    {
      tool: "Write",
      allowedTools: ["Read", "Grep"],
      completionTool: "transition",
      events: [expect.stringContaining("DONE"), expect.stringContaining("FAIL")],
    },
  ]);
  // The state itself stands in every model call.
  expect(systemOf(heard[1])).toContain("Phase: a");
});

ours(57, "a tool that only the next state lists is refused, and moves nothing", async () => {
  const states = {
    a: { allowed_tools: ["Read"], on: { READY: "b", FAIL: "failed" } },
    b: { allowed_tools: ["Read", "Write"], on: { DONE: "done", FAIL: "failed" } },
  };
  const { walked, folder, events } = await play(
    documentOf(states),
    { a: [write("b.txt", "x"), send("FAIL")] },
    { files: { "b.txt": "old" } },
  );
  expect([walked, folder.text("b.txt")]).toEqual([["a#1"], "old"]);
  expect(dataOf(events, "route.decided")).toHaveLength(1);
});

fact(58, "after as many tool calls as max_iterations, and not before, only the transition is left", async () => {
  const document = oneState({ allowed_tools: ["Read"], max_iterations: 5 });
  const turns = [1, 2, 3, 4, 5].map((at) => read(`${at}.txt`));
  const files = Object.fromEntries([1, 2, 3, 4, 5].map((at) => [`${at}.txt`, "x"]));
  const { heard, result } = await play(document, { a: [...turns, send("DONE")] }, { files });
  expect(heard.map(({ tools }) => tools.includes("Read"))).toEqual([true, true, true, true, true, false]);
  expect([heard.at(-1)?.tools, result.status]).toEqual([["transition"], "completed"]);
  // Calls of one turn count one by one.
  const six = [1, 2, 3, 4, 5, 6].map((at) => ["Read", { file_path: `${at}.txt` }] as const);
  const { results } = await play(document, { a: [calls(...six), send("DONE")] }, { files });
  expect(results[0]?.map((output) => typeof output)).toEqual([...Array.from({ length: 5 }, () => "string"), "object"]);
  expect(results[0]?.[5]).toMatchObject({ ...limited, reason: expect.stringContaining("5 tool calls") });
});

ours(61, "a final state cannot be left: nothing runs in it that could send an event", async () => {
  const walk = await play(oneState({ on: { DONE: "done" } }), { a: [send("DONE")], done: [send("DONE")] });
  expect(walk.heard.map(({ stage }) => stage)).toEqual(["a"]);
  const { spec } = pipelineOf(await loadDocument(oneState({})));
  expect([legalEvents(spec, "done"), legalEvents(spec, "failed")]).toEqual([[], []]);
});

fact(62, "an edit of 3 lines passes a limit of 10, and one of 20 lines is refused", async () => {
  const document = oneState({ allowed_tools: ["Read", "Edit", "Write"], max_edit_lines: 10 });
  const edit = (count: number) =>
    calls(["Edit", { file_path: "a.txt", old_string: "line 1\n", new_string: lines(count, "new") }]);
  const { results, folder } = await play(
    document,
    { a: [read("a.txt"), edit(20), edit(3), write("b.txt", lines(20)), send("DONE")] },
    { files: { "a.txt": lines(2) } },
  );
  expect(results[1]).toMatchObject([{ ...limited, reason: expect.stringContaining("10 lines") }]);
  expect(results[3]).toMatchObject([limited]);
  expect(folder.text("a.txt")).toBe(`${lines(3, "new")}line 2\n`);
  // What is removed counts as well.
  const removes = calls(["Edit", { file_path: "a.txt", old_string: lines(20), new_string: "" }]);
  const removed = await play(
    document,
    { a: [read("a.txt"), removes, send("DONE")] },
    { files: { "a.txt": lines(20) } },
  );
  expect(removed.results[1]).toMatchObject([limited]);
});

fact(63, "a fourth file is refused after three, and a file that was edited may be edited again", async () => {
  const document = oneState({ allowed_tools: ["Read", "Write"], max_files_per_state: 3 });
  const names = ["1.txt", "2.txt", "3.txt", "4.txt"];
  const { results, folder } = await play(document, {
    a: [...names.map((name) => write(name, "x\n")), write("./1.txt", "again\n"), send("DONE")],
  });
  expect(results[3]).toMatchObject([{ ...limited, reason: expect.stringContaining("3 files") }]);
  expect(results[2]).not.toMatchObject([limited]);
  expect(folder.text("1.txt")).toBe("again\n");
});

ours(64, "the third call in a row with the same arguments is not run, and the agent reads why", async () => {
  const { results } = await play(
    oneState({ allowed_tools: ["Read"] }),
    { a: [read("a.txt"), read("a.txt"), read("a.txt"), send("DONE")] },
    { files: { "a.txt": "text" } },
  );
  expect(results[2]).toMatchObject([{ code: "repeated_call", reason: expect.stringContaining("3 times") }]);
});

ours(65, "results beyond the byte budget are cut with a marker", async () => {
  const document = oneState({ allowed_tools: ["Read"], context_budget_bytes: 500 });
  const { results, result } = await play(
    document,
    { a: [read("a.txt"), read("b.txt"), send("DONE")] },
    { files: { "a.txt": "short\n", "b.txt": "x".repeat(5_000) } },
  );
  const [first, second] = results.map((found) => JSON.stringify(found));
  expect(first).toContain("short");
  expect(second?.length).toBeLessThan(700);
  expect(second).toMatch(/cut|left out|omitted/);
  expect(result.status).toBe("completed");
});

fact(67, "without limits a listed tool may do anything in the workspace", async () => {
  const document = oneState({ allowed_tools: ["Read", "Write", "Bash"] });
  const turn = calls(
    ["Write", { file_path: "a.txt", content: lines(500) }],
    ["Bash", { command: "cp a.txt b.txt && rm a.txt" }],
  );
  const { folder, result } = await play(document, { a: [turn, send("DONE")] });
  expect([folder.text("b.txt"), result.denied]).toEqual([lines(500), []]);
});

fact(
  71,
  "a state offers the tools that it lists, with transition and get_state; at the checkpoint only transition",
  async () => {
    const document = oneState({ allowed_tools: ["Read"], max_iterations: 1 });
    const turns = { a: [calls(["get_state", {}]), read("a.txt"), send("DONE")] };
    const { heard, results } = await play(document, turns, { files: { "a.txt": "x" } });
    const offered = heard.map(({ tools }) => tools.toSorted());
    expect(offered).toEqual([["Read", "get_state", "transition"], ["Read", "get_state", "transition"], ["transition"]]);
    expect(results[0]?.[0]).toMatchObject({ state: "a", limitsLeft: { toolCalls: 1 } });
  },
);
