import { describe, expect, test } from "vitest";
import { asking, write } from "../support/authored.ts";

// States in which a model writes a pipeline.

describe("a pipeline that a model writes", () => {
  test("is shown to a person, runs as a child, and its output is in the state's", async () => {
    const { output, asked, live, runId } = await write([asking]);
    expect(output).toEqual({ pipeline: "asking", fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/), output: "yes" });
    expect(asked.map(({ body }) => body.question)).toEqual([
      `A model wrote the pipeline "asking". It starts in ask.
Tools without asking: none
Commands: none
At most: 50 transitions, 5 visits of a state
States:
- ask: asks a person: Ready for {{ctx.task}}?
    success -> done
Ends: done (completed)

Run it?`,
      "Ready for the release?",
    ]);
    const runs = (await live.host.tree(runId)).map((one) => one.runId.replace(runId, ""));
    expect(runs).toEqual(["", "/auto#1:a1:design/design", "/auto#1:a1:run/run"]);
  });
});
