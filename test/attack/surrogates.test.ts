import { callbackInteractor, final, type Json, pipeline, stage } from "@sluice/core";
import { human } from "@sluice/stages";
import { operatorGuard } from "@sluice/workflows";
import { expect, test } from "vitest";
import { z } from "zod";
import { completed, noModel, session, work } from "../support/run-kit.ts";
import { calling } from "../support/stopped-runs.ts";

// A model may write half of a character, which no digest and no canonical JSON takes: it must neither stop a run nor choose its route.

test.each<Json>([{ x: "\ud800" }, { "\ud800": 1 }, { rationale: "\udc00" }])(
  "an event with %j is approved like any other",
  async (data) => {
    const shown: Json[] = [];
    const person = callbackInteractor("p", ({ body }) => {
      shown.push(body);
      return { kind: "approve" };
    });
    const live = session({ model: calling([["transition", { event: "GO", data }]]), interactors: [person] });
    const made = pipeline({
      id: "one",
      input: z.object({}),
      initial: "a",
      stages: { a: stage({ prompt: "Go.", allowedTools: [], turnCap: 5 }), ok: final("completed") },
      transitions: [{ from: "a", on: { event: "GO" }, to: "ok", approval: {} }],
    });
    const result = await live.start(made, {});
    expect(result).toMatchObject({ status: "completed" });
    expect(JSON.stringify([shown, result.stages])).toMatch(/\ufffd/);
  },
);

test("a question with half of a character is asked", async () => {
  const person = callbackInteractor("p", ({ body }) => {
    expect(body.question).toBe("Publish Draft \ufffd?");
    return { kind: "value", value: true };
  });
  const draft = work<Json>({ act: () => Promise.resolve(completed({ title: "Draft \ud800" })) });
  const made = pipeline({
    id: "one",
    input: z.object({}),
    initial: "draft",
    stages: {
      draft,
      ask: human({ question: "Publish {{ctx.upstream.draft.title}}?", answer: z.boolean(), reads: { draft } }),
      ok: final("completed"),
    },
    transitions: [
      { from: "draft", on: "success", to: "ask" },
      { from: "ask", on: "success", to: "ok" },
    ],
  });
  expect(await session({ model: noModel, interactors: [person] }).start(made, {})).toMatchObject({
    status: "completed",
  });
});

test.each([["a text"], ["half of a character: \ud800"]])("findings that are %j lead to the review", async (text) => {
  const made = pipeline({
    id: "one",
    input: { type: "object" },
    initial: "a",
    stages: {
      a: work<Json>({ act: () => Promise.resolve(completed({ findings: [{ text }] })) }),
      review: work<Json>({}),
      deploy: work<Json>({}),
      ok: final("completed"),
    },
    transitions: [
      {
        from: "a",
        on: "success",
        when: operatorGuard("has_findings", { field: "output.findings", op: "neq", value: [] }, "result"),
        to: "review",
      },
      { from: "a", on: "success", to: "deploy" },
      { from: "review", on: "success", to: "ok" },
      { from: "deploy", on: "success", to: "ok" },
    ],
  });
  const { stages } = await session({ model: noModel }).start(made, {});
  expect(stages.map(({ executionId }) => executionId)).toEqual(["a#1", "review#1"]);
});
