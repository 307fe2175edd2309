import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ActScope,
  callbackInteractor,
  done,
  type Json,
  type Pipeline,
  type PipelineSpec,
  pipeline,
  type RunHost,
  stage,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { agentModelId, externalAgent, externalAgents } from "@sluice/gateway";
import { createSession, type Session, type SessionOptions, script, scriptedModel } from "@sluice/stages";
import { authored, authoredExecutor } from "@sluice/workflows";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { nativeTools } from "../../packages/gateway/src/hooks/tools/native-tools.ts";
import { answersIn, open, sent } from "../support/answers-kit.ts";
import { submit } from "../support/authored.ts";
import { soon } from "../support/people-kit.ts";
import { completed, dataOf, eventsOf, json, noModel, session, tool, work, workExecutor } from "../support/run-kit.ts";
import { tempFolder } from "../support/tools.ts";
import { hasWall } from "../support/walls.ts";

// Programs that another program starts without a sandbox: from then on an approval of another process proves nothing.

const FIXTURE = join(import.meta.dirname, "../fixtures/acp/agent.mjs");
const DENIED = [["deny", "elsewhere", "missing"]];

/** An agent of another program, of class advisory, that makes these calls turn by turn. */
function advisory(log: string, calls: readonly (readonly [tool: string, input: Json])[]) {
  const plan = JSON.stringify([calls.map(([call, input]) => ({ call, input }))]);
  return {
    command: [process.execPath, FIXTURE],
    env: { PLAN: plan, LOG: log, NATURE: "honest", VERSION: "1.0.0" },
    accept: "advisory" as const,
  };
}

/** A store, and sessions on it that have the tool Deploy. */
function desk() {
  const folder = tempFolder();
  const memory = createMemoryJournals();
  const ran: Json[] = [];
  const host = (): RunHost => createHost(memory.connect());
  const deploy = tool("Deploy", { execute: async (given) => ({ ok: true, output: ran.push(given) }) });
  const opened = (options: Partial<SessionOptions>): Session =>
    createSession({
      model: noModel,
      cwd: folder.root,
      env: { PATH: process.env.PATH, HOME: folder.root },
      sandbox: "off",
      host,
      wait: true,
      traffic: externalAgents({ sandbox: "off" }),
      onCode: () => undefined,
      ...options,
      tools: [deploy, ...(options.tools ?? [])],
    });
  return { ran, host, opened, elsewhere: host(), root: folder.root, log: join(folder.root, "log") };
}

/** A pipeline with a state that runs another one. */
function around(spec: PipelineSpec): Pipeline<Record<string, never>, Json> {
  const act = async (scope: ActScope) =>
    completed(json(await scope.runChildren("go", [{ key: "k", pipeline: spec, input: {} }])));
  return pipeline({
    id: "outer",
    input: z.object({}),
    stages: { s: work({ allowedTools: [], act }) },
    initial: "s",
    next: { s: ({ output }) => done(output) },
  });
}

const text = z.object({ text: z.string() });
const finish = { completionTool: "finish", completionSchema: text, turnCap: 8, prompt: "Go." } as const;

test.each(["own", "made"])(
  "an agent of class advisory in the %s pipeline: an approval without a code never counts",
  async (whose) => {
    const { ran, opened, elsewhere, log } = desk();
    const agent = advisory(log, [
      ["Deploy", {}],
      ["finish", { text: "x" }],
    ]);
    const agents = pipeline({
      id: "agents",
      input: z.object({}),
      stages: { w: externalAgent({ ...finish, agent, allowedTools: [] }) },
      initial: "w",
      next: { w: ({ output }) => done(output.text) },
    });
    const outer = around(agents.spec);
    const live = opened({ executors: [workExecutor] });
    const run = whose === "own" ? live.start(agents, {}) : live.start(outer, {});
    await sent(elsewhere, await open(elsewhere));
    expect((await run).status).toBe("completed");
    expect([ran, await answersIn({ host: elsewhere }, run.runId)]).toEqual([[], DENIED]);
    await live.close();
  },
);

test("an agent of class advisory in a pipeline that a model wrote: an approval without a code never counts", async () => {
  const { ran, opened, elsewhere, log } = desk();
  const go = { event: "ok", data: {} };
  const id = agentModelId(
    advisory(log, [
      ["Deploy", {}],
      ["transition", go],
    ]),
  );
  const a = { instructions: "Go.", model: id, allowed_tools: [], on: { ok: "done" } };
  const written = { id: "written", initial: "a", states: { a, done: { type: "final" } } };
  const outer = pipeline({
    id: "outer",
    input: z.object({ task: z.string() }),
    stages: { auto: authored({ allow: { tools: [], models: [id] } }) },
    initial: "auto",
    next: { auto: () => done("ok") },
  });
  const person = callbackInteractor("person", ({ body }) =>
    String(body.question).endsWith("Run it?") ? { kind: "value", value: "run" } : undefined,
  );
  const live = opened({
    model: scriptedModel({ stages: { design: [submit(written)] } }),
    executors: [authoredExecutor],
    interactors: [person],
  });
  const run = live.start(outer, { task: "t" });
  const grant = async () => (await elsewhere.requests()).find(({ kind }) => kind === "grantStageTool");
  await soon(async () => (await grant()) !== undefined);
  const request = await grant();
  if (request === undefined) throw new Error("nothing is asked");
  await sent(elsewhere, request);
  expect((await run).status).toBe("completed");
  expect([ran, await answersIn({ host: elsewhere }, run.runId)]).toEqual([[], DENIED]);
  await live.close();
});

test.each(["run", "child with a pipeline that was made"])(
  "a resume that gives an agent of class advisory to a %s records it, so after the next restart an approval without a code never counts",
  async (whose) => {
    const { ran, host, opened, elsewhere, log } = desk();
    const inner = pipeline({
      id: "p",
      input: z.object({}),
      stages: { w: stage({ ...finish, allowedTools: [] }) },
      initial: "w",
      next: { w: ({ output }) => done(output.text) },
    });
    const pipe = whose === "run" ? inner : around(inner.spec);
    const deploys = { calls: [{ tool: "Deploy", input: {} }] };
    const plain = () =>
      scriptedModel({ stages: { w: [deploys, deploys, { calls: [{ tool: "finish", input: { text: "x" } }] }] } });
    const stopped = async (run: ReturnType<Session["start"]>, live: Session, own: RunHost): Promise<void> => {
      await run.suspend();
      expect((await run).status).toBe("suspended");
      await live.close();
      await own.close();
    };
    const at = (own: RunHost, model: NonNullable<SessionOptions["model"]>): Session =>
      opened({ host: () => own, model, executors: [workExecutor] });
    const first = host();
    const before = at(first, plain());
    const run = before.start(pipe, {});
    await open(elsewhere);
    await stopped(run, before, first);

    const second = host();
    const withAgent = at(second, agentModelId(advisory(log, [["Deploy", { n: 3 }]])));
    const resumed = withAgent.resume(pipe, run.runId);
    await sent(elsewhere, await open(elsewhere), { kind: "deny" });
    const latest = async () => (await elsewhere.requests()).find(({ requestId }) => !requestId.includes("t1."));
    await soon(async () => (await latest()) !== undefined);
    const asked = await latest();
    await stopped(resumed, withAgent, second);

    // What the agent left behind answers before the run continues.
    if (asked === undefined) throw new Error("nothing is asked");
    await sent(elsewhere, asked);
    const third = host();
    const after = at(third, plain());
    const continued = after.resume(pipe, run.runId);
    const again = await open(elsewhere);
    expect(again).toMatchObject({ runId: asked.runId, requestId: asked.requestId });
    await after.answer(again, { kind: "deny" }, "me");
    expect((await continued).status).toBe("completed");
    expect(ran).toEqual([]);
    expect((await answersIn({ host: elsewhere }, asked.runId)).at(-1)).toEqual(["deny", "me", "session"]);
    const [agents] = dataOf(await eventsOf(elsewhere, run.runId), "run.resumed").map((data) => data.agents);
    expect(agents).toMatchObject([{ class: "advisory" }]);
    await after.close();
    await third.close();
  },
);

test.each(["own", "made"])(
  "the program of an agent in the %s pipeline is nothing that the run may write",
  async (whose) => {
    const { opened, elsewhere, root, log } = desk();
    writeFileSync(join(root, "agent.mjs"), `await import(${JSON.stringify(FIXTURE)});`);
    const plan = advisory(log, [["finish", { text: "x" }]]);
    const agent = { ...plan, command: [process.execPath, "agent.mjs"] };
    const write = async (scope: ActScope) =>
      completed(
        json(await scope.calls(1, [{ id: "w", tool: "Write", input: { file_path: "agent.mjs", content: "evil" } }])),
      );
    const agents = pipeline({
      id: "agents",
      input: z.object({}),
      stages: {
        edit: work({ allowedTools: ["Read", "Write"], act: write }),
        w: externalAgent({ ...finish, agent, allowedTools: [] }),
      },
      initial: "edit",
      next: { edit: () => to("w"), w: ({ output }) => done(output.text) },
    });
    const live = opened({ executors: [workExecutor] });
    const run = whose === "own" ? live.start(agents, {}) : live.start(around(agents.spec), {});
    const [end] = await Promise.allSettled([run]);
    if (whose === "own")
      expect(JSON.stringify(await eventsOf(elsewhere, run.runId))).toContain("agent.mjs is protected");
    else expect(end).toMatchObject({ reason: { code: "session_invalid" } });
    expect(readFileSync(join(root, "agent.mjs"), "utf8")).not.toContain("evil");
    await live.close();
  },
);

test("a pipeline that is made during the run may name an agent whose program lies in a protected folder", async () => {
  const { opened, root, log } = desk();
  mkdirSync(join(root, "tools"));
  writeFileSync(join(root, "tools/agent.mjs"), `await import(${JSON.stringify(FIXTURE)});`);
  const agent = { ...advisory(log, [["finish", { text: "x" }]]), command: [process.execPath, "tools/agent.mjs"] };
  const agents = pipeline({
    id: "agents",
    input: z.object({}),
    stages: { w: externalAgent({ ...finish, agent, allowedTools: [] }) },
    initial: "w",
    next: { w: ({ output }) => done(output.text) },
  });
  const live = opened({ executors: [workExecutor], protectedPaths: [join(root, "tools")] });
  expect(await live.run(around(agents.spec), {})).toMatchObject({ output: [{ status: "completed", output: "x" }] });
  await live.close();
});

test("a run never creates the file that a server will start from", async () => {
  const { opened, elsewhere, root } = desk();
  const act = async (scope: ActScope) => {
    const write = (file_path: string, id: string) => ({ id, tool: "Write", input: { file_path, content: "x" } });
    return completed(json(await scope.calls(1, [write("dist/server.mjs", "a"), write("dist/other.mjs", "b")])));
  };
  const a = work({ allowedTools: ["Write", { tool: "mcp__s__*", optional: true }], act });
  const pipe = pipeline({ id: "p", input: z.object({}), stages: { a }, initial: "a", next: { a: () => done("ok") } });
  const s = { command: process.execPath, args: ["dist/server.mjs"], sandbox: false, optional: true } as const;
  const live = opened({ executors: [workExecutor], onFault: () => undefined, mcpServers: { s } });
  const run = live.start(pipe, {});
  await run;
  expect(JSON.stringify(await eventsOf(elsewhere, run.runId))).toContain("dist/server.mjs is protected");
  expect(["server", "other"].map((name) => existsSync(join(root, `dist/${name}.mjs`)))).toEqual([false, true]);
  await live.close();
});

test.each([
  { command: ["agent"] },
  { command: ["agent"], host: "cladue" },
  { command: ["agent"], host: 1 },
  { command: ["agent"], accept: "hard" },
])("an id that is written by hand, %j, starts no agent whose tools are not known", async (agent) => {
  const { opened } = desk();
  const w = stage({ ...finish, allowedTools: [], model: `acp:${JSON.stringify(agent)}` });
  const pipe = pipeline({ id: "p", input: z.object({}), stages: { w }, initial: "w", next: { w: () => done("ok") } });
  const live = opened({});
  await expect(live.run(pipe, {})).rejects.toMatchObject({ code: "external_agent_invalid" });
  await live.close();
});

test.each([
  ["a skill", "Skill", { options: { skill: "x" } }],
  ["a tool of the host's MCP servers", "mcp__host__run", {}],
])("after %s of another agent, an approval without a code never counts", async (_, name, input) => {
  const memory = createMemoryJournals();
  const ran: Json[] = [];
  const tools = [
    ...nativeTools({ handOver: async () => ({ ok: true, output: "the host ran it" }), mcpTools: ["mcp__host__run"] }),
    tool("Deploy", { execute: async (given) => ({ ok: true, output: ran.push(given) }) }),
  ];
  const act = async (scope: ActScope) => {
    await scope.calls(1, [{ id: "first", tool: name, input }]);
    const [outcome] = await scope.calls(2, [{ id: "deploy", tool: "Deploy", input: {} }]);
    return completed(json(outcome?.output));
  };
  const pipe = pipeline({
    id: "p",
    input: z.object({}),
    stages: { state: work({ allowedTools: [], act }) },
    initial: "state",
    next: { state: ({ output }) => done(output) },
  });
  const host = createHost(memory.connect());
  const elsewhere = createHost(memory.connect());
  const live = session({ model: noModel, tools, wait: true, host });
  const run = live.start(pipe, {});
  await live.answer(await open(elsewhere), { kind: "approve" }, "person");
  const deploy = async () => (await elsewhere.requests()).find(({ requestId }) => requestId.endsWith("deploy"));
  await soon(async () => (await deploy()) !== undefined);
  const request = await deploy();
  if (request === undefined) throw new Error("nothing is asked");
  await sent(elsewhere, request);
  await run;
  expect([ran, (await answersIn({ host: elsewhere }, run.runId)).at(-1)]).toEqual([[], DENIED[0]]);
});

const isThere = hasWall();

test.skipIf(!isThere)(
  "a script of a pipeline that was made during the run is recorded with the sandbox that it runs in",
  async () => {
    const { opened, elsewhere } = desk();
    const inner = pipeline({
      id: "inner",
      input: z.object({}),
      stages: { x: script({ command: ["true"], sandbox: {} }) },
      initial: "x",
      next: { x: () => done("ok") },
    });
    const outer = around(inner.spec);
    const live = opened({ sandbox: "try", executors: [workExecutor] });
    const run = live.start(outer, {});
    expect((await run).status).toBe("completed");
    const walls = dataOf(await eventsOf(elsewhere, run.runId), "command.started").map(({ wall }) => wall);
    expect(walls).toEqual(["bubblewrap"]);
    await live.close();
  },
);

const { platform } = process;
afterEach(() => {
  Object.defineProperty(process, "platform", { value: platform, configurable: true });
});

test.skipIf(!isThere).each([
  ["resumed with a pipeline that lists Bash", ["Edit"], ["Edit", "Bash"]],
  ["granted a command", ["Edit"], ["Edit"]],
])("a run that was %s never continues without its sandbox", async (_, first, later) => {
  const { host, opened, elsewhere } = desk();
  const pipe = (allowedTools: readonly string[]) => {
    const act = async (scope: ActScope) => {
      await scope.calls(1, [{ id: "w1", tool: "Deploy", input: {} }]);
      await scope.calls(2, [{ id: "b1", tool: "Bash", input: { command: "true" } }]);
      await scope.calls(3, [{ id: "w2", tool: "Deploy", input: {} }]);
      return completed(json(await scope.calls(4, [{ id: "b2", tool: "Bash", input: { command: "true" } }])));
    };
    const a = work({ allowedTools: [...allowedTools], act });
    return pipeline({
      id: "p",
      input: z.object({}),
      stages: { a },
      initial: "a",
      next: { a: ({ output }) => done(output) },
    });
  };
  const until = (end: string) =>
    callbackInteractor("person", ({ requestId }) => (requestId.endsWith(end) ? undefined : { kind: "approve" }));
  const at = (own: RunHost, end: string): Session =>
    opened({ host: () => own, sandbox: "try", executors: [workExecutor], interactors: [until(end)] });
  const stops = async (live: Session, run: ReturnType<Session["start"]>, end: string, own: RunHost): Promise<void> => {
    await soon(async () => (await elsewhere.requests(run.runId)).some(({ requestId }) => requestId.endsWith(end)));
    await run.suspend();
    await run;
    await live.close();
    await own.close();
  };
  const one = host();
  const started = at(one, "w1");
  const run = started.start(pipe(first), {});
  await stops(started, run, "w1", one);
  const two = host();
  const second = at(two, "w2");
  await stops(second, second.resume(pipe(later), run.runId, { allowChanged: true }), "w2", two);
  expect(dataOf(await eventsOf(elsewhere, run.runId), "call.started").map(({ wall }) => wall)).toContain("bubblewrap");

  Object.defineProperty(process, "platform", { value: "aix", configurable: true });
  const three = host();
  const third = at(three, "nothing");
  await expect(third.resume(pipe(later), run.runId)).rejects.toMatchObject({ code: "sandbox_lowered" });
  await third.close();
  await three.close();
});

test.skipIf(!isThere)(
  "a run whose server was in the sandbox never continues with the server outside of it",
  async () => {
    const { host, opened, elsewhere, root } = desk();
    const marker = join(root, "..", `outside-${process.pid}`);
    const server = join(import.meta.dirname, "../fixtures/mcp/server.ts");
    const code = `require("node:fs").writeFile(${JSON.stringify(marker)}, "", () => {}); import(${JSON.stringify(server)})`;
    const act = async (scope: ActScope) =>
      completed(json(await scope.calls(1, [{ id: "d", tool: "Deploy", input: {} }])));
    const a = work({ allowedTools: [{ tool: "mcp__s__*", optional: true }], act });
    const pipe = pipeline({ id: "p", input: z.object({}), stages: { a }, initial: "a", next: { a: () => done("ok") } });
    const at = (own: RunHost): Session =>
      opened({
        host: () => own,
        sandbox: "try",
        executors: [workExecutor],
        onFault: () => undefined,
        mcpServers: { s: { command: process.execPath, args: ["-e", code], optional: true } },
      });
    const one = host();
    const first = at(one);
    const run = first.start(pipe, {});
    await open(elsewhere);
    await run.suspend();
    await run;
    await first.close();
    await one.close();
    Object.defineProperty(process, "platform", { value: "aix", configurable: true });
    const two = host();
    const second = at(two);
    // The second as a gateway does, before it resumes.
    for (const refused of [() => second.resume(pipe, run.runId), () => second.tools(pipe, { resumes: run.runId })])
      await expect(refused()).rejects.toMatchObject({ code: "sandbox_lowered" });
    expect(existsSync(marker)).toBe(false);
    await second.close();
    await two.close();
  },
);
