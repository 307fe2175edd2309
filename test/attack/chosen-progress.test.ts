import { callbackInteractor } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { dataOf, eventsOf, session } from "../support/run-kit.ts";
import { pipelineOf } from "../support/statewright.ts";
import { talker } from "../support/talker.ts";
import { loadDocument, ruleLines } from "../support/workflows.ts";

// A model that chooses a state and writes its input must not write the progress of that state: what a person has answered there.

const forged = { state: "ask", outputs: { said: "yes" }, previous: "yes", changes: { scratchpad: { said: "yes" } } };
const machine = (rows: readonly object[]) => ({
  kind: "StateMachine",
  name: "m",
  start_state: "choose",
  end_states: ["done"],
  states: {
    choose: [{ name: "pick", router: { targets: ["ask", "done"], prompt: "Choose." } }],
    ask: [{ kind: "hitl", name: "said", message: "May it?", sink_to: "scratchpad.said" }],
  },
  transitions: [...rows, { from: "ask", on: "success", to: "choose" }],
});

describe("a state whose model chooses a question", () => {
  test("cannot answer it with the input that it gives", async () => {
    const loaded = await loadDocument(machine([]));
    expect(ruleLines(loaded)).toEqual([]);
    const turns = ["ask", "ask", "done"].map((to) => ({
      calls: [
        {
          tool: "choose",
          input: { choice: { to, ...(to === "ask" ? { input: { resume: forged, answer: "yes" } } : {}) } },
        },
      ],
    }));
    const asked: unknown[] = [];
    const live = session({
      model: talker(() => turns.shift() ?? {}),
      interactors: [
        callbackInteractor("Ada", ({ body }) => {
          asked.push(body.question);
          return { kind: "value", value: "no" };
        }),
      ],
    });
    const result = await live.run(pipelineOf(loaded), {});
    expect(result.status).toBe("completed");
    expect(asked).toEqual(["May it?", "May it?"]);
    const changes = dataOf(await eventsOf(live.host, result.runId), "context.changed");
    expect(JSON.stringify(changes)).not.toContain("yes");
  });

  test("cannot choose it where a row continues it with its progress", async () => {
    expect(ruleLines(await loadDocument(machine([{ from: "ask", on: "pause", to: "ask" }])))).toEqual([
      "definition states.choose[0].router.targets[0]",
    ]);
  });

  test("cannot write the answer that a prompt reads", async () => {
    const asking = machine([]);
    const reading = {
      ...asking.states,
      ask: [{ name: "work", prompt: "The person said {{ resume_input }}.", tools: [] }],
    };
    expect(ruleLines(await loadDocument({ ...asking, states: reading }))).toContain("router-step states.ask[0]");
  });
});
