import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { done, type Json, pipeline, type StateExecutor, stage, systemClock, to } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { poll, script, transcriptEntries } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { scriptExecutor } from "../../packages/stages/src/kinds/commands/script-executor.ts";
import { secretForms } from "../../packages/stages/src/secrets/encodings.ts";
import { type CommandSessionOptions, commandSession, node, only } from "../support/commands.ts";
import { EVERYTHING } from "../support/mcp.ts";
import { reportOf } from "../support/report-kit.ts";
import { caller, completed, eventsOf, json, work, workExecutor } from "../support/run-kit.ts";
import { scratch } from "../support/sqlite-store.ts";
import { lastResults, talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

// A variable that a script declares as its secret reaches that script, and nothing else. No pattern knows its name or its value.

const NAME = "RELEASE_CODE";
const VALUE = "Zq81 c4stle/gate?9";
const env = { [NAME]: VALUE, COPY: `code=${VALUE}`, OTHER: "other" };
const FORMS = [...secretForms(new Map([[VALUE, NAME]])).keys()];

/** Every file below a folder, as text. */
function bytesOf(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map((file) => readFileSync(join(file.parentPath, file.name), "latin1")).join("\n");
}
function found(text: string): readonly string[] {
  return FORMS.filter((form) => text.includes(form));
}

/** Prints a value in every way that a program might. */
const LEAK = `
  const { ${NAME}: value = "" } = process.env;
  console.log(value, JSON.stringify({ value }), encodeURIComponent(value), Buffer.from(value).toString("base64"), Buffer.from(value).toString("hex"));
  console.log("padding ".repeat(4000) + value);
  console.error("x" + Buffer.from("user:" + value).toString("base64url"));
`;
const PRINT_ENV = "console.log(JSON.stringify(process.env))";

const Outcome = z.looseObject({ upstream: z.looseObject({ other: z.json(), servers: z.json() }) });

describe("a secret of a script", () => {
  test("is in no transcript, event, report, result or file, however the script prints it, and in no other process", async () => {
    const publish = script({ command: node(LEAK), secrets: [NAME] });
    const broken = script({ command: node(`${LEAK}; process.exitCode = 3`), secrets: [NAME] });
    const other = script({ command: node(PRINT_ENV) });
    const submit = { completionTool: "submit", completionSchema: z.object({ text: z.string() }) };
    const agent = stage({
      ...submit,
      prompt: "Report {{ctx.upstream.publish}} and {{ctx.upstream.other.stdout}}.",
      allowedTools: ["Bash", "Write", "Read(.sluice/output/**)"],
      turnCap: 4,
    });
    const servers = work({
      allowedTools: ["mcp__everything__get-env"],
      act: async (scope) => completed(await caller(scope)("mcp__everything__get-env")),
    });
    const releasing = pipeline({
      id: "releasing",
      input: { type: "object" },
      stages: { publish, other, agent, servers, broken },
      initial: "publish",
      next: {
        publish: () => to("other"),
        other: () => to("agent"),
        agent: () => to("servers"),
        servers: () => to("broken"),
        broken: {
          completed: () => done(null),
          failed: (failure, ctx) => done(json({ failure, upstream: ctx.upstream })),
        },
      },
    });
    const model = talker((heard) => {
      const [file_path = ""] = /\.sluice\/output\/\S+?\.txt/.exec(JSON.stringify(heard.messages)) ?? [];
      if (heard.turn === 0)
        return {
          calls: [
            { tool: "Bash", input: { command: "env" } },
            { tool: "Read", input: { file_path } },
          ],
        };
      return { calls: [{ tool: "submit", input: { text: `the value is ${VALUE}` } }] };
    });
    const store = scratch();
    const workspace = tempFolder();
    const host = sqliteHost(store);
    const session = commandSession({
      ...{ workspace, env, model, host, executors: [workExecutor] },
      passEnv: [NAME, "COPY"],
      mcpServers: { everything: { command: process.execPath, args: [EVERYTHING] } },
    });
    const live: Json[] = [];
    const run = session.start(releasing, { note: VALUE });
    run.onLive((chunk) => live.push(json(chunk)));
    const result = await run;
    expect(result).toMatchObject({ status: "completed", output: { failure: { detail: { exitCode: 3 } } } });

    const [shell, read] = lastResults(model.heard[1] ?? fail());
    expect(shell).toMatch(/^OTHER=other$/m);
    expect(read).toMatch(/\[redacted:RELEASE_CODE\]/);
    const events = await eventsOf(host, run.runId);
    const journals = await host.journal(run.runId);
    const { page } = await reportOf(host, run.runId);
    const transcripts = journals.flatMap((journal) => transcriptEntries(journal.runId, journal.records));
    for (const part of [result, events, journals, page, transcripts, live, model.heard]) {
      const text = typeof part === "string" ? part : JSON.stringify(part);
      expect(found(text)).toEqual([]);
    }
    const { upstream } = Outcome.parse("output" in result ? result.output : {});
    expect(JSON.stringify(upstream)).toContain("OTHER");
    expect(JSON.stringify([upstream.other, upstream.servers])).not.toMatch(/RELEASE_CODE|COPY/);
    await session.close();
    await host.close();
    expect(found(bytesOf(store))).toEqual([]);
    expect(found(bytesOf(workspace.root))).toEqual([]);
    expect(bytesOf(workspace.path(".sluice/output"))).toContain("[redacted:RELEASE_CODE]");
  });
});

describe("a secret that an invoked pipeline or a poll declares", () => {
  const declaring = (kind: "invoked" | "poll") => {
    const print = script({ command: node(PRINT_ENV) });
    const secrets = { command: node(LEAK), secrets: [NAME] };
    const common = { id: "outer", input: { type: "object" }, initial: "print" } as const;
    const printed = (output: { readonly stdout: string }) => done(output.stdout);
    if (kind === "invoked") {
      const inner = only(script(secrets));
      return pipeline({
        ...common,
        stages: { print },
        pipelines: { inner },
        next: { print: ({ output }) => printed(output) },
      });
    }
    const ask = poll({ ...secrets, every: "1m" });
    return pipeline({
      ...common,
      stages: { print, ask },
      next: { print: { completed: ({ output }) => printed(output), failed: () => to("ask") }, ask: () => done("") },
    });
  };

  test.each(["invoked", "poll"] as const)("reaches no other process, even before: %s", async (kind) => {
    const result = await commandSession({ env }).run(declaring(kind), {});
    expect(result).toMatchObject({ status: "completed", output: expect.stringContaining('"OTHER":"other"') });
    expect(JSON.stringify(result)).not.toMatch(/RELEASE_CODE|COPY|c4stle/);
  });
});

test("a command of a pipeline that was not known at the start of its run gets no secret", async () => {
  const none = { wall: () => undefined, walled: async () => undefined };
  const real = scriptExecutor({ clock: systemClock, env, ...none });
  const late = script({ command: node(LEAK), secrets: [NAME] });
  const act: StateExecutor["act"] = (init, scope) => real.act(init, { ...scope, state: late.spec });
  const run = only(script({ command: node(LEAK) }));
  const result = await commandSession({ env, executors: [{ ...real, act }] }).run(run, {});
  expect(result).toMatchObject({
    output: {
      code: "script",
      message: expect.stringMatching(/RELEASE_CODE is not a secret of this run/),
      detail: { cause: "input" },
    },
  });
});

describe("a run does not start", () => {
  const state = only(script({ command: ["true"], secrets: [NAME, "SIGNING"] }));
  const start = (options: CommandSessionOptions) => commandSession(options).run(state, {});

  test("without its secrets, and says which and how to set them", async () => {
    await expect(start({ env: {} })).rejects.toMatchObject({
      code: "secret_missing",
      message: expect.stringMatching(
        /state run needs the secret RELEASE_CODE, state run needs the secret SIGNING, which are not set.* export RELEASE_CODE=…/,
      ),
    });
    await expect(start({ env: { [NAME]: VALUE, SIGNING: " " } })).rejects.toMatchObject({ code: "secret_missing" });
  });

  test("with one that is too short to be masked", async () => {
    await expect(start({ env: { [NAME]: VALUE, SIGNING: "short" } })).rejects.toMatchObject({
      code: "secret_too_short",
      message: expect.not.stringContaining("short."),
    });
  });
});

test("an MCP server keeps a variable that is passed to it on purpose, run after run", async () => {
  const mcpServers = { everything: { command: process.execPath, args: [EVERYTHING] } };
  const passing = { env: { GH_TOKEN: "q8w7e6r5t4y3u2i1" }, passEnv: ["GH_TOKEN"] };
  const session = commandSession({ ...passing, mcpServers, executors: [workExecutor] });
  const ask = work({
    allowedTools: ["mcp__everything__get-env"],
    act: async (scope) => completed(await caller(scope)("mcp__everything__get-env")),
  });
  for (const run of [1, 2])
    expect([run, JSON.stringify(await session.run(only(ask), {}))]).toEqual([run, expect.stringContaining("GH_TOKEN")]);
});

test("an MCP server that an earlier run started loses the variable, and each with its value, before a run that has it as a secret", async () => {
  const mcpServers = { everything: { command: process.execPath, args: [EVERYTHING] } };
  const session = commandSession({ env, mcpServers, executors: [workExecutor] });
  const asking = (first?: ReturnType<typeof script>) => {
    const ask = work({
      allowedTools: ["mcp__everything__get-env"],
      act: async (scope) => completed(await caller(scope)("mcp__everything__get-env")),
    });
    return first === undefined
      ? only(ask)
      : pipeline({
          id: "p",
          input: z.object({}),
          stages: { first, ask },
          initial: "first",
          next: { first: { completed: () => to("ask") }, ask: ({ output }) => done(output) },
        });
  };
  expect(JSON.stringify(await session.run(asking(), {}))).toContain(VALUE);
  const after = await session.run(asking(script({ command: ["true"], secrets: [NAME] })), {});
  expect(after).toMatchObject({ status: "completed" });
  const said = JSON.stringify(after);
  expect(said).toContain("OTHER");
  for (const name of [NAME, "COPY"]) expect(said).not.toContain(name);
  expect(found(said)).toEqual([]);
});

function fail(): never {
  throw new Error("the model was not asked twice");
}
