import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  callbackInteractor,
  done,
  field,
  final,
  type Json,
  type JsonObject,
  parseJson,
  pipeline,
  type SluiceEvent,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { type ExternalAgent, externalAgent, externalAgents } from "@sluice/gateway";
import { createSession, type SessionOptions, transcriptEntries } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { tempFolder } from "../support/tools.ts";

const AGENT = join(import.meta.dirname, "../fixtures/acp/agent.mjs");

type Step = JsonObject;
const call = (name: string, input: JsonObject = {}): Step => ({ call: name, input });
const ends = call("finish", { text: "all done" });

/** A workspace, and an agent that works off these prompts in a stage that may read and edit. */
function desk(prompts: readonly (readonly Step[])[], nature = "honest", agent: Partial<ExternalAgent> = {}) {
  const folder = tempFolder();
  folder.put("a.txt", "one\n");
  const log = `${folder.root}.log`;
  const work = externalAgent({
    agent: {
      command: [process.execPath, AGENT],
      accept: "advisory",
      env: { PLAN: JSON.stringify(prompts), LOG: log, NATURE: nature },
      ...agent,
    },
    prompt: "Change a.txt.",
    allowedTools: ["Read", "Edit(a.txt)"],
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap: 8,
  });
  const made = pipeline({
    id: "outside",
    input: z.object({ task: z.string() }),
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output.text) },
  });
  const host = createHost(createMemoryJournals().connect());
  const run = async (options: Partial<SessionOptions> = {}) => {
    const faults: string[] = [];
    const traffic = externalAgents({ onFault: (fault) => faults.push(fault) });
    const env = {
      PATH: process.env.PATH,
      HOME: folder.root,
      SECRET_TOKEN: "do-not-pass-this",
      LLM_KEY: "key-for-the-agent",
    };
    const session = createSession({ cwd: folder.root, host, sandbox: "off", env, traffic, ...options });
    const handle = session.start(made, { task: "x" });
    const result = await handle;
    const events: SluiceEvent[] = [];
    for await (const event of handle.events) events.push(event);
    const records = await host.records(handle.runId);
    await session.close();
    return { result, events, faults, transcript: transcriptEntries(handle.runId, records) };
  };
  /** What the agent saw, by kind. */
  const seen = (kind: string): readonly Json[] => {
    const lines = existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [];
    return lines.flatMap((line) => {
      const json = parseJson(line);
      return json.ok && field(json.value, kind) !== undefined ? [json.value] : [];
    });
  };
  return { folder, run, seen, made, host };
}

describe("a stage of an agent over ACP", () => {
  test("has the tools of the stage and no others, which pass the gate, and completes by its tool", async () => {
    const here = desk([
      [
        { say: "I look first." },
        call("Read", { file_path: "a.txt" }),
        call("Edit", { file_path: "a.txt", old_string: "one", new_string: "two" }),
        call("Write", { file_path: "b.txt", content: "no" }),
        ends,
      ],
    ]);
    const { result, events, transcript } = await here.run();
    expect(result).toMatchObject({ status: "completed", output: "all done" });
    expect(here.folder.text("a.txt")).toBe("two\n");
    expect(existsSync(join(here.folder.root, "b.txt"))).toBe(false);
    expect(here.seen("tools")).toEqual([{ tools: ["Edit", "Read", "finish"], server: "sluice" }]);
    const results = here.seen("call").map((one) => [field(one, "call"), field(one, "isError")]);
    expect(results.slice(0, 3)).toEqual([
      ["Read", false],
      ["Edit", false],
      ["Write", true],
    ]);
    const [prompt] = here.seen("prompt");
    expect(JSON.stringify(prompt)).toContain("Change a.txt.");
    expect(JSON.stringify(prompt)).toContain("MCP server sluice");
    expect(transcript.find(({ kind }) => kind === "text")).toMatchObject({ text: "I look first." });
    const decided = events.filter(({ type }) => type === "call.decided").map(({ data }) => [data.tool, data.verdict]);
    expect(decided).toEqual([
      ["Read", "approved"],
      ["Edit", "approved"],
      ["Write", "refused"],
    ]);
    expect(events[0]?.data.agent).toMatchObject({ class: "advisory" });
  });
});
