import { done, field, type Json, pipeline, stage } from "@sluice/core";
import type { ResolvedModel } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { gatewayRun } from "../support/gateway.ts";
import { connect, gateway } from "../support/gateway-clients.ts";
import { session } from "../support/run-kit.ts";
import { ATTACKS, ENVELOPES, linePlace } from "../support/shell-lanes.ts";
import { finish, modelFrom, part } from "../support/stream-model.ts";

// Every line of the corpus, given to a stage by a model and to a gateway by an MCP client: the gate says the same.

const AT_ONCE = 100;

/** A stage that runs nothing: what its envelope allows is vetoed, so that each call's outcome is the gate's verdict. */
function judging(allowedTools: readonly string[], turnCap: number) {
  const work = stage({
    prompt: "Do the work.",
    allowedTools,
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap,
    onCall: () => ({ veto: "nothing runs here" }),
  });
  return pipeline({
    id: "judging",
    input: z.object({ task: z.string() }),
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output.text) },
  });
}

/** What the agent reads, without what differs from run to run. */
const verdictIn = (output: Json): string =>
  JSON.stringify([field(output, "code"), field(output, "cause"), field(output, "message"), field(output, "reason")]);

async function inStage(root: string, allowedTools: readonly string[], lines: readonly string[]) {
  const verdicts: string[] = [];
  const model: ResolvedModel = {
    id: "attacker",
    secrets: [],
    at: ({ turn }) =>
      modelFrom(async ({ prompt }) => {
        const last = prompt.findLast(({ role }) => role === "tool");
        const result = last?.role === "tool" ? last.content.find(({ type }) => type === "tool-result") : undefined;
        if (turn > 0 && result?.type === "tool-result")
          verdicts.push(verdictIn(JSON.parse(JSON.stringify("value" in result.output ? result.output.value : null))));
        const command = lines[turn];
        const [toolName, input] =
          command === undefined ? ["finish", { text: "done" }] : ["Bash", { command, description: `${turn}` }];
        return ReadableStream.from([
          part({ type: "stream-start", warnings: [] }),
          part({ type: "tool-call", toolCallId: `c${turn}`, toolName, input: JSON.stringify(input) }),
          finish("tool-calls"),
        ]);
      }),
  };
  const live = session({ cwd: root, env: {}, mode: "ask", sandbox: "off", model });
  expect((await live.run(judging(allowedTools, lines.length + 2), { task: "work" })).status).toBe("completed");
  return verdicts;
}

async function overMcp(root: string, allowedTools: readonly string[], lines: readonly string[]) {
  const run = gatewayRun({
    pipeline: judging(allowedTools, lines.length + 2),
    root,
    session: { mode: "ask" },
  });
  const client = await connect("client 2, 2026-07-28, HTTP", await gateway(run));
  const verdicts: string[] = [];
  for (const [turn, command] of lines.entries()) {
    const { isError, blocks } = await client.call("Bash", { command, description: `${turn}` });
    expect(isError, command).toBe(true);
    const result = blocks.find(({ by }) => by === "result");
    verdicts.push(verdictIn(JSON.parse(result?.text ?? "")));
  }
  await client.close();
  return verdicts;
}

test.each(Object.entries(ENVELOPES))(
  "lines for a stage that is %s: a gateway says of each what a stage says",
  async (name, allowedTools) => {
    const place = linePlace();
    onTestFinished(() => place.remove());
    const causes = new Set<string>();
    const lines = ATTACKS.filter(({ stage: of }) => of === name).map(({ line }) => place.fill(line));
    for (let at = 0; at < lines.length; at += AT_ONCE) {
      const some = lines.slice(at, at + AT_ONCE);
      const expected = await inStage(place.root, allowedTools, some);
      expect(expected).toHaveLength(some.length);
      for (const verdict of expected) causes.add(/^\["tool_call_denied","(\w+)"/.exec(verdict)?.[1] ?? verdict);
      expect(await overMcp(place.root, allowedTools, some)).toEqual(expected);
    }
    // The comparison would also hold if every line had the same answer.
    expect(causes.size).toBeGreaterThan(1);
  },
  600_000,
);
