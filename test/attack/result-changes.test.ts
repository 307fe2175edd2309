import { final, type Json, pipeline } from "@sluice/core";
import { expect, test } from "vitest";
import { caller, completed, eventsOf, noModel, session, tool, work } from "../support/run-kit.ts";

test("a tool that keeps the object it returned changes neither what was read of it nor what is recorded", async () => {
  const kept: Record<string, Json> = { said: "first" };
  const keeps = tool("Keeps", { execute: async () => ({ ok: true, output: kept }) });
  const key = "sk-0123456789abcdef0123456789abcdef";
  const live = session({ model: noModel, tools: [keeps], env: { API_KEY: key } });
  const read: Json[] = [];
  const calling = work<Json>({
    allowedTools: ["Keeps"],
    act: async (scope) => {
      const output = await caller(scope)("Keeps");
      kept.said = key;
      read.push(structuredClone(output));
      return completed(null);
    },
  });
  const one = pipeline({
    id: "one",
    input: { type: "object" },
    initial: "a",
    stages: { a: calling, ok: final("completed") },
    transitions: [{ from: "a", on: "success", to: "ok" }],
  });
  const { runId } = await live.start(one, {});
  expect(read).toEqual([{ said: "first" }]);
  expect(JSON.stringify(await eventsOf(live.host, runId))).not.toContain(key);
});
