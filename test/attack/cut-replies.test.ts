import { done, parseJson, pipeline, stage } from "@sluice/core";
import { createSecretFilter, messageOf } from "@sluice/core/runtime";
import { expect, test } from "vitest";
import { z } from "zod";
import { readMcpServers } from "../../packages/stages/src/tools/mcp/config.ts";
import { offeredOf } from "../../packages/stages/src/tools/mcp/offered.ts";
import { session } from "../support/run-kit.ts";
import { modelFrom } from "../support/stream-model.ts";

// What a provider or a server says that is cut, right behind a known secret or inside of one.

/** Its last letter may begin it again. */
const KEY = "Zq81abcdefghij0123456789klmnoZ";

/** Everything that a run shows and records of a provider whose answer is this error. */
async function recordOf(message: string): Promise<string> {
  const model = modelFrom(() => {
    throw new Error(message);
  });
  const work = stage({
    prompt: "x",
    completionTool: "submit",
    completionSchema: z.object({ text: z.string() }),
    turnCap: 1,
    allowedTools: [],
  });
  const made = pipeline({
    id: "cut",
    input: z.object({}),
    stages: { work },
    initial: "work",
    next: { work: () => done(null) },
  });
  const live = session({ model, env: { OPENAI_API_KEY: KEY } });
  const run = live.start(made, {});
  const result = await run;
  return JSON.stringify([result, await live.host.journal(run.runId)]);
}

function expectNoPart(text: string): void {
  for (let at = 0; at + 6 <= KEY.length; at += 1) expect(text).not.toContain(KEY.slice(at, at + 6));
}

test.each([0, 1, 12, KEY.length - 1, KEY.length])(
  "an error that is cut %i characters behind the beginning of a key shows no part of it",
  async (length) => {
    const message = `invalid key:${" ".repeat(4_000 - 12 - length)}${KEY} rest`;
    const record = await recordOf(message);
    expect(record).toContain("invalid key:");
    expectNoPart(record);
  },
);

test.each([
  ["what is parsed", (text: string) => text],
  ["a part of it", (text: string) => `{"error": ${text}}`],
])("the fault of a parser, which quotes the beginning of %s, shows no part of a key", async (_what, bodyOf) => {
  const body = bodyOf(`${KEY} is not a valid key`);
  const record = await recordOf(`JSON parsing failed: Text: ${body}.\nError message: ${faultOf(body)}`);
  expect(record).toContain("[redacted:OPENAI_API_KEY]");
  expectNoPart(record);
});

test("nor does what a host or a tool reports of a text that is not JSON", () => {
  for (const body of [KEY, `{"a": ${KEY}}`, `{"a":"${KEY}" "b"}`, `${KEY.slice(0, 9)}`, `'${KEY}`, `\u{1f600}${KEY}`]) {
    const read = parseJson(body);
    expect(read.ok ? "JSON" : read.fault).not.toContain("Zq81");
    expect(messageOf(new Error(`a wrapped one: ${faultOf(body)}`))).not.toContain("Zq81");
  }
});

function faultOf(text: string): string {
  try {
    return `${text} is JSON: ${JSON.stringify(JSON.parse(text))}`;
  } catch (thrown) {
    return String(thrown);
  }
}

test("the fault of a server's tool that is not offered shows no part of a key in its name", () => {
  const settings = readMcpServers({ s: { command: "server" } })[0] ?? expect.fail();
  const secrets = createSecretFilter(new Map([[KEY, "KEY"]]));
  const { faults } = offeredOf(
    settings,
    [{ name: `${"x".repeat(80)}${KEY}`, inputSchema: { type: "object" } }],
    secrets,
  );
  expect(faults).toHaveLength(1);
  expectNoPart(String(faults));
});
