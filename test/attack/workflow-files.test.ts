import { expect, test } from "vitest";
import { loadDocument, ruleLines } from "../support/workflows.ts";

// Documents that would do more than they seem to.

const working = (state: object) => ({
  id: "w",
  initial: "working",
  states: {
    working: { on: { DONE: "complete", FAIL: "failed" }, ...state },
    complete: { type: "final" },
    failed: { type: "final" },
  },
});

test.each([[["*"]], [["B*"]], [["Bash", "B*"]], [["*sh", "Read"]]])(
  "allowed_commands do not seem to limit Bash where %j allows all of it",
  async (tools) => {
    const loaded = await loadDocument(working({ allowed_tools: tools, allowed_commands: ["npm test"] }));
    expect(loaded.pipeline).toBeUndefined();
    expect(ruleLines(loaded)).toContain("commands-without-tools states.working.allowed_commands");
  },
);

test("a blank command does not stand for every command", async () => {
  const loaded = await loadDocument(working({ allowed_tools: ["Bash"], allowed_commands: ["npm test", " "] }));
  expect(ruleLines(loaded)).toContain("tool-pattern states.working.allowed_commands[1]");
});
