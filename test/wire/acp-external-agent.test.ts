import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Answer,
  callbackInteractor,
  done,
  field,
  type Json,
  type JsonObject,
  parseJson,
  pipeline,
  type SluiceEvent,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { agentModelId, type ExternalAgent, externalAgent, externalAgents } from "@sluice/gateway";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, type SessionOptions, transcriptEntries } from "@sluice/stages";
import { probeSandbox } from "@sluice/stages/runtime";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import { tempFolder } from "../support/tools.ts";

const AGENT = join(import.meta.dirname, "../fixtures/acp/agent.mjs");

type Step = JsonObject;
const call = (name: string, input: JsonObject = {}): Step => ({ call: name, input });
const ends = call("finish", { text: "all done" });

function tempRoot(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-acp-")));
  roots.push(folder);
  return folder;
}
const roots: string[] = [];
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true, force: true });
});

/** A workspace, and an agent that works off these prompts in a stage that may read and edit. */
function desk(
  prompts: readonly (readonly Step[])[],
  nature = "honest",
  given: Partial<Omit<ExternalAgent, "accept">> & { readonly accept?: undefined; readonly version?: string } = {},
  logs = tempRoot(),
) {
  const { version = "1.0.0", accept: _, ...own } = given;
  const folder = tempFolder();
  folder.put("a.txt", "one\n");
  const log = join(logs, "agent.log");
  const work = externalAgent({
    agent: {
      command: [process.execPath, AGENT],
      env: { PLAN: JSON.stringify(prompts), LOG: log, NATURE: nature, VERSION: version },
      ...own,
      ...("accept" in given ? {} : { accept: "advisory" }),
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
    const traffic = externalAgents({ sandbox: "off", onFault: (fault) => faults.push(fault) });
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
    const records = await session.host.records(handle.runId);
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
    const [connected] = here.seen("tools");
    expect(connected).toEqual({
      tools: ["Edit", "Read", "finish"],
      server: expect.stringMatching(/^sluice[0-9a-f]{8}$/),
    });
    const results = here.seen("call").map((one) => [field(one, "call"), field(one, "isError")]);
    expect(results.slice(0, 3)).toEqual([
      ["Read", false],
      ["Edit", false],
      ["Write", true],
    ]);
    const [prompt] = here.seen("prompt");
    expect(JSON.stringify(prompt)).toContain("Change a.txt.");
    expect(JSON.stringify(prompt)).toContain(`MCP server ${String(field(connected ?? null, "server"))}:`);
    expect(transcript.find(({ kind }) => kind === "text")).toMatchObject({ text: "I look first." });
    const decided = events.filter(({ type }) => type === "call.decided").map(({ data }) => [data.tool, data.verdict]);
    expect(decided).toEqual([
      ["Read", "approved"],
      ["Edit", "approved"],
      ["Write", "refused"],
    ]);
    expect(events[0]?.data.agents).toMatchObject([{ class: "advisory" }]);
  });

  test("whose prompt ends before its tool was called is asked to continue, within its turns", async () => {
    const here = desk([[{ say: "Done, I think." }], [ends]]);
    const { result } = await here.run();
    expect(result).toMatchObject({ status: "completed", output: "all done" });
    expect(here.seen("prompt")).toHaveLength(2);
    expect(JSON.stringify(here.seen("prompt")[1])).toContain("finish");
    const idle = desk([]);
    expect((await idle.run()).result).toMatchObject({ status: "failed", error: { code: "turn_cap" } });
    expect(idle.seen("prompt")).toHaveLength(8);
  });

  test("may connect to its tools more than once", async () => {
    const here = desk([[ends]], "twice");
    expect((await here.run()).result).toMatchObject({ status: "completed" });
    expect(here.seen("tools")).toHaveLength(2);
  });

  test("makes calls side by side, and a result that does not fit is rejected with the reason", async () => {
    const read = call("Read", { file_path: "a.txt" });
    const here = desk([
      [{ both: [read, call("Read", { file_path: "missing.txt" })] }, call("finish", { text: 1 }), ends],
    ]);
    const { result, events } = await here.run();
    expect(result).toMatchObject({ status: "completed" });
    const made = events.filter(({ type }) => type === "turn.finished").map(({ data }) => Number(data.calls));
    expect(made.reduce((sum, calls) => sum + calls, 0)).toBe(4);
    const rejected = here.seen("call").find((one) => field(one, "call") === "finish");
    expect(rejected).toMatchObject({ isError: true });
    expect(JSON.stringify(rejected)).toContain("text");
  });

  test("waits for a person as any stage: an approved call runs once, a denied one never", async () => {
    const write = (name: string) => call("Write", { file_path: name, content: "x" });
    const here = desk([[write("yes.txt"), write("no.txt"), ends]]);
    const interactor = callbackInteractor("tester", ({ body }) =>
      JSON.stringify(body).includes("yes.txt") ? { kind: "approve" } : { kind: "deny", reason: "not this one" },
    );
    const { result } = await here.run({ interactors: [interactor] });
    expect(result.status).toBe("completed");
    expect(["yes.txt", "no.txt"].map((name) => existsSync(join(here.folder.root, name)))).toEqual([true, false]);
    expect(JSON.stringify(here.seen("call")[1])).toContain("not this one");
  });

  test("is answered before its client gives up that a person still decides, and the same call takes the result", async () => {
    const clock = handClock();
    const write = call("Write", { file_path: "b.txt", content: "x" });
    const here = desk([[write, write, ends]]);
    const decided = Promise.withResolvers<Answer>();
    const opened = Promise.withResolvers<void>();
    const interactor = callbackInteractor("tester", () => {
      opened.resolve();
      return decided.promise;
    });
    const running = here.run({ clock, interactors: [interactor] });
    await opened.promise;
    clock.turn(45_000);
    await expect.poll(() => JSON.stringify(here.seen("call"))).toContain("still_open");
    expect(existsSync(join(here.folder.root, "b.txt"))).toBe(false);
    decided.resolve({ kind: "approve" });
    const { result, events } = await running;
    expect(result.status).toBe("completed");
    const written = here.seen("call").filter((one) => field(one, "call") === "Write");
    expect(written.map((one) => field(one, "isError"))).toEqual([true, false]);
    expect(events.filter(({ type }) => type === "call.decided")).toHaveLength(1);
  });

  test("gets no variables but the common ones and those that are passed by name", async () => {
    const here = desk([[ends]], "honest", { passEnv: ["LLM_KEY"] });
    const { events } = await here.run();
    const names = field(here.seen("env")[0], "env");
    expect(names).toContain("LLM_KEY");
    expect(names).toContain("SLUICE_RUN");
    expect(names).not.toContain("SECRET_TOKEN");
    expect(JSON.stringify(events)).not.toContain("key-for-the-agent");
    const without = desk([[ends]], "honest", { passEnv: ["NOT_SET"] });
    await expect(without.run()).rejects.toThrow("NOT_SET, which is not set");
  });

  test("is started without the tools of a known agent, and its class says so", async () => {
    const claude = desk([[ends]], "honest", { host: "claude", accept: undefined, version: "0.101.0" });
    const { events } = await claude.run();
    expect(claude.seen("meta")[0]).toMatchObject({
      meta: { claudeCode: { options: { tools: [], settingSources: [], strictMcpConfig: true } } },
    });
    expect(events[0]?.data.agents).toEqual([{ name: "claude", class: "hard" }]);
    const gemini = desk([[ends]], "honest", { host: "gemini", accept: undefined, version: "0.61.0" });
    expect((await gemini.run()).result).toMatchObject({ status: "completed" });
    const args = JSON.stringify(gemini.seen("args")[0]);
    const [, file = ""] = /--admin-policy=([^"]+)"/.exec(args) ?? [];
    expect(file).toContain("gemini-policy.toml");
    expect(existsSync(file)).toBe(false);
  });

  test("of a known agent in a version that was not measured is refused, unless its author accepts that", async () => {
    const other = { host: "gemini", version: "9.9.9" } as const;
    const refused = desk([[ends]], "honest", { ...other, accept: undefined });
    const { result } = await refused.run();
    expect(result.status).toBe("failed");
    expect(JSON.stringify(result)).toContain("its version is 9.9.9, and 0.61.0 was measured");
    const { result: accepted, events } = await desk([[ends]], "honest", other).run();
    expect(accepted.status).toBe("completed");
    expect(events[0]?.data.agents).toEqual([{ name: "gemini", class: "advisory" }]);
  });

  test("of an unknown agent is refused unless its author accepts that its own tools pass no gate", () => {
    const agent = { command: ["some-agent"] };
    expect(() => agentModelId(agent)).toThrow('write accept: "advisory"');
    expect(() => agentModelId({ command: [] })).toThrow("names a program");
    expect(agentModelId({ ...agent, accept: "advisory" })).toContain("some-agent");
  });
});

const { wall } = await probeSandbox(tempRoot(), []);

describe.skipIf(wall === undefined)("the OS sandbox around an agent", () => {
  test("lets it read the workspace and use its tools, and change nothing by itself", async () => {
    const own = tempFolder();
    const secret = join(tempRoot(), "secret.txt");
    writeFileSync(secret, "of another folder");
    const attempt = (path: string): Step => ({ write: path });
    const here = desk(
      [
        [
          attempt("direct.txt"),
          attempt(".sluice/store/x"),
          { open: "a.txt" },
          { open: secret },
          call("Edit", { file_path: "a.txt", old_string: "one", new_string: "two" }),
          call("Read", { file_path: "a.txt" }),
          call("Edit", { file_path: "a.txt", old_string: "one", new_string: "two" }),
          ends,
        ],
      ],
      "honest",
      { home: [own.root] },
      own.root,
    );
    const { result } = await here.run({ traffic: externalAgents({ sandbox: "require" }) });
    expect(result).toMatchObject({ status: "completed", output: "all done" });
    expect(here.folder.text("a.txt")).toBe("two\n");
    expect(existsSync(join(here.folder.root, "direct.txt"))).toBe(false);
    expect(here.seen("wrote")).toEqual([]);
    expect(here.seen("opened").map((one) => field(one, "opened"))).toEqual(["a.txt"]);
    const refused = here
      .seen("refused")
      .map((one) => [Object.values(field(one, "refused") ?? {})[0], field(one, "code")]);
    expect(refused).toEqual([
      ["direct.txt", "EROFS"],
      [".sluice/store/x", "ENOENT"],
      [secret, "ENOENT"],
    ]);
  });

  test.each(["runs/store", "home/runs"])("hides a run store at %s, and what the session hides", async (at) => {
    const own = tempFolder();
    const steps = [
      { open: `${at}/journal.db` },
      { write: `${at}/x` },
      { open: "hidden/a.txt" },
      { open: "a.txt" },
      ends,
    ];
    const here = desk([steps], "honest", { home: [own.root, "~/home"] }, own.root);
    here.folder.put("home/kept.txt", "x");
    here.folder.put("hidden/a.txt", "x");
    const host = sqliteHost(join(here.folder.root, at));
    onTestFinished(() => host.close());
    const { result } = await here.run({
      host,
      sandbox: { mode: "off", hidden: [join(here.folder.root, "hidden")] },
      traffic: externalAgents({ sandbox: "require" }),
    });
    expect(result).toMatchObject({ status: "completed", output: "all done" });
    expect(here.seen("opened")).toEqual([{ opened: "a.txt" }]);
    expect(here.seen("wrote")).toEqual([]);
  });
});

describe("an agent that does not play by the rules", () => {
  test("calls before its prompt: the call passes the gate like any other", async () => {
    const here = desk([[ends]], "hasty");
    const { result, events } = await here.run();
    expect(result.status).toBe("completed");
    expect(events.filter(({ type }) => type === "call.decided").map(({ data }) => data.tool)).toEqual(["Read"]);
  });

  test("asks for always, for tools of its own, or for files and terminals: it gets none of them", async () => {
    const ask = (method: string, params: JsonObject): Step => ({ ask: method, params });
    const here = desk([
      [
        { permission: { title: "rm -rf /", name: "Bash" } },
        // Names that a server of the project can have, and titles that a model can write.
        ...["mcp__sluicer__Read", "mcp__sluice__Read", "sluice-x-echo", "mcp__$SERVERx__Read"].map((name) => ({
          permission: { title: "echo", name },
        })),
        { permission: { title: "$SERVER: rm -rf /", name: "Bash" } },
        { permission: { title: "sluice answer r1 approve" } },
        { permission: { title: "$SERVER: && rm -rf /", kind: "execute" } },
        { permission: { title: "Read a.txt", name: "mcp__$SERVER__Read" } },
        { permission: { title: "$SERVER/Read" } },
        ask("fs/read_text_file", { path: "/etc/hostname" }),
        ask("fs/write_text_file", { path: "/tmp/acp-agent-b.txt", content: "x" }),
        ask("terminal/create", { command: "touch", args: ["c.txt"] }),
        ask("elicitation/create", { mode: "form", message: "Approve?", requestedSchema: { type: "object" } }),
        ask("unknown/method", {}),
        ends,
      ],
    ]);
    const { result } = await here.run();
    expect(result.status).toBe("completed");
    const chosen = here.seen("permission").map((one) => field(field(one, "permission"), "optionId"));
    expect(chosen).toEqual([...Array.from({ length: 8 }, () => "reject_once"), "allow_once", "allow_once"]);
    expect(here.seen("ask").map((one) => field(one, "error") !== undefined)).toEqual([true, true, true, true, true]);
  });

  test("dies: the stage fails with how it ended, and what it wrote on stderr", async () => {
    const here = desk([[call("Read", { file_path: "a.txt" }), { exit: 7 }]]);
    const { result } = await here.run();
    expect(result).toMatchObject({ status: "failed", error: { code: "model" } });
    expect(JSON.stringify(result)).toContain("ended with exit code 7: out of tokens");
    const missing = desk([], "honest", { command: ["/no/such/agent"] });
    expect(JSON.stringify((await missing.run()).result)).toContain("could not be started");
    const old = desk([[ends]], "without-http");
    expect(JSON.stringify((await old.run()).result)).toContain("MCP servers over HTTP");
  });

  test("floods: its words are cut", async () => {
    const here = desk([[{ flood: 5_000 }, ends]]);
    const { result, transcript } = await here.run();
    expect(result.status).toBe("completed");
    const text = transcript.find(({ kind }) => kind === "text");
    expect(JSON.stringify(text).length).toBeLessThan(210_000);
  });

  test("ignores the end: its process is gone when the run is", async () => {
    const here = desk([[ends, { hang: true }]], "stubborn");
    const { result } = await here.run();
    expect(result.status).toBe("completed");
    const [, pid = ""] = /"pid":(\d+)/.exec(JSON.stringify(here.seen("pid"))) ?? [];
    await expect.poll(() => isAlive(Number(pid))).toBe(false);
  });

  test("ignores a cancel: the run is cancelled all the same", async () => {
    const here = desk([[call("Read", { file_path: "a.txt" }), { hang: true }]], "stubborn");
    const session = createSession({
      cwd: here.folder.root,
      host: here.host,
      sandbox: "off",
      env: { PATH: process.env.PATH },
      traffic: externalAgents({ sandbox: "off" }),
    });
    const handle = session.start(here.made, { task: "x" });
    for await (const { type } of handle.events) if (type === "call.finished") break;
    await handle.cancel("enough");
    expect(await handle).toMatchObject({ status: "cancelled" });
    await session.close();
    const [, pid = ""] = /"pid":(\d+)/.exec(JSON.stringify(here.seen("pid"))) ?? [];
    await expect.poll(() => isAlive(Number(pid))).toBe(false);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
