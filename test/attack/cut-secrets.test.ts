import { done, pipeline, stage } from "@sluice/core";
import { createSession } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { pageText } from "../../packages/stages/src/models/reply/html-page.ts";
import { readAnswer } from "../../packages/stages/src/tools/mcp/content.ts";
import { readDefinition } from "../../packages/stages/src/tools/mcp/definition.ts";
import { caller, completed, work as kind, noModel, session as testSession } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

// An output that is cut in the middle of a secret, of which no part may remain.

const KEY = "c4stle-of-sand-and-glass";

test.each([14_980, 14_990, 14_999])(
  "a key that the cut of an output at character 15,000 would halve is masked whole: it begins at %i",
  async (at) => {
    const folder = tempFolder();
    folder.put("long.txt", `${"x".repeat(at)}${KEY}${"y".repeat(60_000)}`);
    const model = talker(({ turn }) =>
      turn === 0
        ? { calls: [{ tool: "Bash", input: { command: "cat long.txt" } }] }
        : { calls: [{ tool: "submit", input: { text: "done" } }] },
    );
    const work = stage({
      prompt: "Look.",
      completionTool: "submit",
      completionSchema: z.object({ text: z.string() }),
      turnCap: 3,
      allowedTools: ["Bash"],
    });
    const made = pipeline({
      id: "cut",
      input: z.object({ task: z.string() }),
      stages: { work },
      initial: "work",
      next: { work: () => done(null) },
    });
    const env = { PATH: process.env.PATH, SOME_API_KEY: KEY };
    const session = createSession({ model, cwd: folder.root, env, sandbox: "off" });
    expect(await session.run(made, { task: "x" })).toMatchObject({ status: "completed", denied: [] });
    const read = JSON.stringify(model.heard.at(-1)?.messages);
    expect(read).toContain("characters omitted");
    for (let length = 6; length <= KEY.length; length += 1) {
      expect(read).not.toContain(KEY.slice(0, length));
      expect(read).not.toContain(KEY.slice(-length));
    }
    await session.close();
  },
);

const LONG_KEY = Array.from({ length: 70 }, (_, at) => `k${at}Zq`).join("");
const PEM = [
  "-----BEGIN PRIVATE KEY-----",
  "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
  "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
  "-----END PRIVATE KEY-----",
];

/** What a model would read of calls in a workspace with these files. */
async function readOf(files: Readonly<Record<string, string>>, calls: readonly (readonly [string, object])[]) {
  const folder = tempFolder();
  for (const [name, text] of Object.entries(files)) folder.put(name, text);
  const env = { LONG_API_KEY: LONG_KEY, SIGNING: PEM.join("\n") };
  const live = testSession({ model: noModel, cwd: folder.root, env, secrets: ["SIGNING"] });
  const allowedTools = ["Read", "Grep", "Edit"];
  const looking = kind({
    allowedTools,
    act: async (scope) => {
      const call = caller(scope);
      const outputs: string[] = [];
      for (const [name, input] of calls)
        outputs.push(JSON.stringify(await call(name, JSON.parse(JSON.stringify(input)))));
      return completed(outputs);
    },
  });
  const made = pipeline({
    id: "cut",
    input: z.object({}),
    stages: { looking },
    initial: "looking",
    next: { looking: ({ output }) => done(output) },
  });
  const run = live.start(made, {});
  expect(await run).toMatchObject({ status: "completed", denied: [] });
  return JSON.stringify(await live.host.journal(run.runId));
}

function expectNoPart(text: string, secret: string, most = 8): void {
  for (let at = 0; at + most <= secret.length; at += 1) expect(text).not.toContain(secret.slice(at, at + most));
}

test.each([
  ["Read", 1_950, { file_path: "long.txt" }],
  ["Grep", 450, { pattern: "needle", output_mode: "content" }],
  ["Edit", 450, { file_path: "long.txt", old_string: "needle", new_string: "thread" }],
])("a key that %s would cut in a long line is masked whole", async (name, at, input) => {
  const line = `needle ${"x".repeat(at)}${LONG_KEY}${"y".repeat(3_000)}`;
  const calls: [string, object][] = name === "Edit" ? [["Read", { file_path: "long.txt" }]] : [];
  const read = await readOf({ "long.txt": line }, [...calls, [name, input]]);
  expectNoPart(read, LONG_KEY);
  expect(read).toContain("[redacted:LONG_API_KEY");
});

test("a declared secret of several lines is masked where its lines are numbered, searched or read in part", async () => {
  const read = await readOf({ "key.pem": `${PEM.join("\n")}\n` }, [
    ["Read", { file_path: "key.pem" }],
    ["Read", { file_path: "key.pem", offset: 3, limit: 1 }],
    ["Grep", { pattern: "^BKcw", output_mode: "content" }],
  ]);
  for (const line of PEM.slice(1, 3)) expectNoPart(read, line);
  expect(read).toContain("[redacted:SIGNING");
});

test.each([
  ["the title of an HTML page", (key: string) => pageText(`<title>${"a ".repeat(45)}${key}</title>`, undefined)],
  [
    "a link in an answer of an MCP server",
    (key: string) => {
      const link = { type: "resource_link", name: "x", uri: `https://host.example/?token=${key}` };
      return JSON.stringify(readAnswer("T", { content: [link] }));
    },
  ],
  [
    "the description of a tool of an MCP server",
    (key: string) => {
      const description = `${"word ".repeat(795)}${key}`;
      return readDefinition({ name: "t", description, inputSchema: { type: "object" } }).description;
    },
  ],
])("%s is cut before a key that would not be whole", (_what, shown) => {
  expectNoPart(shown(LONG_KEY), LONG_KEY);
});
