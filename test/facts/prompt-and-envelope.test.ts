import { done, pipeline, to } from "@sluice/core";
import { describe, expect } from "vitest";
import { z } from "zod";
import { calls, decided, drive, fact, finish, saying, tools, worker } from "../support/facts.ts";
import type { Heard } from "../support/talker.ts";
import { talker } from "../support/talker.ts";

const system = (heard: Heard | undefined): string => String(heard?.messages[0]?.content);

describe("the prompt", () => {
  fact(12, "a template renders text as it is, and everything else as JSON", async () => {
    const pipe = pipeline({
      id: "p",
      input: z.object({ task: z.string() }),
      context: { text: "as is", number: 7, yes: true, list: [1, { a: null }] },
      stages: {
        one: worker({ prompt: "{{ctx.context.text}}|{{ctx.context.number}}|{{ctx.context.yes}}|{{ctx.context.list}}" }),
      },
      initial: "one",
      next: { one: () => done(1) },
    });
    const { heard } = await drive(pipe, saying());
    expect(system(heard[0])).toContain('as is|7|true|[1,{"a":null}]');
  });

  fact(13, "a template that names what cannot be there is refused with the definition, before any run", () => {
    const make = (prompt: string) =>
      pipeline({
        id: "p",
        input: z.object({ task: z.string() }),
        stages: { one: worker({ prompt }) },
        initial: "one",
        next: { one: () => done(1) },
      });
    expect(() => make("{{ctx.taks}}")).toThrow(expect.objectContaining({ code: "definition_invalid" }));
    expect(() => make("{{ctx.task}}")).not.toThrow();
  });

  fact(14, "the prompt is rendered at Init, after Setup, and again for each attempt", async () => {
    let setups = 0;
    const state = worker({
      setup: () => {
        setups += 1;
        return `setup ${setups}`;
      },
      prompt: (ctx) => `Attempt ${ctx.attempt} after ${String(ctx.setup)}.`,
      assert: (_result, { attempt }) => (attempt === 1 ? { retry: "again" } : "ok"),
    });
    const { heard } = await drive(state, saying());
    expect(heard.map((one) => system(one).split("\n")[0])).toEqual([
      "Attempt 1 after setup 1.",
      "Attempt 2 after setup 2.",
    ]);
  });

  fact(
    15,
    "a stage's transcript begins with its own prompt and task: nothing said in another stage is in it",
    async () => {
      const pipe = pipeline({
        id: "p",
        input: z.object({ task: z.string() }),
        stages: { plan: worker(), work: worker() },
        initial: "plan",
        next: { plan: () => to("work"), work: () => done(1) },
      });
      const model = talker(({ stage, turn }) =>
        stage === "plan" && turn === 0 ? { text: "a secret thought", ...calls("Look") } : finish("the plan"),
      );
      const { heard } = await drive(pipe, model);
      expect(heard.map(({ stage, messages }) => `${stage} ${messages.length}`)).toEqual(["plan 2", "plan 4", "work 2"]);
      expect(JSON.stringify(heard[2]?.messages)).not.toMatch(/secret thought|saw|the plan/);
    },
  );

  fact(16, "the system prompt is the stage's own, with the contract after it and nothing before", async () => {
    const { heard } = await drive(worker({ prompt: "Only this." }), saying());
    expect(system(heard[0])).toMatch(/^Only this\.\n\nRules of this stage:/);
    expect(heard[0]?.messages.map(({ role }) => role)).toEqual(["system", "user"]);
  });

  fact(17, "the context object never goes to the model: only what a prompt takes out of it", async () => {
    const pipe = pipeline({
      id: "p",
      input: z.object({ task: z.string() }),
      context: { marker: "context-only", used: "in-the-prompt" },
      stages: { one: worker({ setup: () => "setup-only", prompt: "{{ctx.context.used}}" }) },
      initial: "one",
      next: { one: () => done(1) },
    });
    const { heard } = await drive(pipe, saying(calls("Look")));
    const sent = JSON.stringify(heard);
    expect(sent).toContain("in-the-prompt");
    expect(sent).not.toMatch(/context-only|setup-only/);
  });

  decided(
    18,
    "a transcript is append-only: what was sent once is sent again unchanged, with the new turns after it",
    async () => {
      const { heard } = await drive(worker(), saying(calls("Look"), { text: "hm" }, calls(["Look", { path: "b" }])));
      expect(heard).toHaveLength(4);
      for (const [at, { messages }] of heard.slice(1).entries()) {
        const before = heard[at]?.messages ?? [];
        expect(messages.slice(0, before.length)).toEqual(before);
        expect(messages.length).toBeGreaterThan(before.length);
      }
    },
  );
});

describe("the envelope", () => {
  fact(
    19,
    "a model is offered what its stage allows and the session has, and the completion tool, each once",
    async () => {
      const state = worker({ allowedTools: ["Look", "L*", "Read"] });
      const { heard } = await drive(state, saying());
      expect([...(heard[0]?.tools ?? [])].sort()).toEqual(["Look", "Read", "finish"]);
    },
  );

  fact(
    20,
    "a name in allowedTools that no tool has is reported before the run; an optional one widens nothing",
    async () => {
      await expect(drive(worker({ allowedTools: ["Look", "Loook"] }), saying())).rejects.toMatchObject({
        code: "session_invalid",
      });
      const optional = worker({ allowedTools: ["Look", { tool: "mcp__gone__*", optional: true }] });
      const { heard, results } = await drive(optional, saying(calls("mcp__gone__read")), { tools });
      expect(heard[0]?.tools).toEqual(["Look", "finish"]);
      expect(results(0)).toMatchObject([{ code: "unknown_tool" }]);
    },
  );

  fact(21, "an empty envelope leaves the completion tool alone", async () => {
    const { heard, results } = await drive(worker({ allowedTools: [] }), saying(calls("Look")));
    expect(heard[0]?.tools).toEqual(["finish"]);
    expect(results(0)).toMatchObject([{ code: "tool_call_denied", allowedTools: [], completionTool: "finish" }]);
  });
});
