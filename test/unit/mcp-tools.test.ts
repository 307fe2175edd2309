import { type ActScope, done, type Json, pipeline, stage } from "@sluice/core";
import type { McpServers } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { BARE_ENV, type Call, callingPipeline, mcpSession, misbehaving, useServers } from "../support/mcp.ts";
import { noModel, session, tool } from "../support/run-kit.ts";

const act = "mcp__bad__act";
const offered = async (_call: Call, { offer }: ActScope) => offer.tools.filter(({ name }) => name.startsWith("mcp__"));

/** A pipeline whose patterns are compared with the tools of the session. */
function checked(allowedTools: readonly string[]) {
  const completionSchema = z.object({});
  const use = stage({ prompt: "Use it.", allowedTools, completionTool: "submit", completionSchema, turnCap: 1 });
  return pipeline({
    id: "checked",
    input: z.object({}),
    stages: { use },
    initial: "use",
    next: { use: () => done(null) },
  });
}

describe("names of servers", () => {
  test.each(["", "1st", "a b", "git__hub", "github_", "ünïcode", "a".repeat(65), "a.b"])(
    "%j is refused",
    async (name) => {
      const { live } = mcpSession({ [name]: misbehaving("fine").config });
      await expect(
        live.run(
          callingPipeline(async () => null),
          {},
        ),
      ).rejects.toMatchObject({
        class: "Validation",
        code: "mcp_servers_invalid",
      });
    },
  );
});

test.each([
  ["neither a command nor a url", {}],
  ["both of them", { command: "x", url: "http://localhost/" }],
  ["a key that is not known", { command: "x", timeout: 5 }],
  ["an address of another kind", { url: "file:///etc/passwd" }],
  ["an address with a password", { url: "http://me:secret@localhost/" }],
  ["a header that would be two", { url: "http://localhost/", headers: { a: "b\r\nc: d" } }],
  ["a variable that is none", { command: "x", env: { "A=B": "c" } }],
  ["a time that is none", { command: "x", callTimeoutMs: 0 }],
  ["no object", null],
])("settings with %s are refused before anything starts, and nothing of them is repeated", async (_what, config) => {
  // As a program without types may give them.
  const servers: McpServers = JSON.parse(JSON.stringify({ bad: config }));
  const { live } = mcpSession(servers);
  const failure: unknown = await live
    .run(
      callingPipeline(async () => null),
      {},
    )
    .catch((thrown: unknown) => thrown);
  expect(failure).toMatchObject({ code: "mcp_servers_invalid", message: expect.stringContaining("mcpServers.bad") });
  expect(String(failure)).not.toContain("secret");
});

describe("a tool is offered as it is, or not at all", () => {
  test("twins are both left out", async () => {
    const { output, faults } = await useServers({ bad: misbehaving("duplicates").config }, async (call, { offer }) => [
      offer.tools.flatMap(({ name }) => (name.startsWith("mcp__") ? [name] : [])),
      await call("mcp__bad__twin"),
    ]);
    expect(output).toMatchObject([["mcp__bad__single"], { code: "unknown_tool" }]);
    expect(faults).toHaveLength(2);
    expect(faults[0]).toBe('mcp:bad: its tool "twin" is excluded: the server has several tools of this name');
  });

  test("names with other characters, and those that are too long, are left out", async () => {
    const { output, faults } = await useServers({ bad: misbehaving("names").config }, offered);
    expect(output).toMatchObject([
      { name: "mcp__bad__ok_1" },
      { name: "mcp__bad___x" },
      { name: "mcp__bad____proto__" },
      { name: "mcp__bad__Read" },
    ]);
    expect(faults).toHaveLength(7);
    expect(faults.join("\n")).toContain('its tool "a b" is excluded');
    expect(faults.join("\n")).toContain("give the server a shorter name");
  });

  test("no tool of one server can be taken for another's, nor for one of the session's own", async () => {
    const own = tool("mcp__bad__act", { execute: async () => ({ ok: true, output: "my own" }) });
    const servers = { bad: misbehaving("fine").config, "bad_-": misbehaving("fine").config };
    const { output, faults } = await useServers(
      servers,
      async (call) => [await call(act), await call("mcp__bad_-__act")],
      {
        tools: [own],
      },
    );
    expect(output).toEqual(["my own", "called act"]);
    expect(faults).toEqual(["mcp: mcp__bad__act is ignored: the session defines a tool with this name"]);
  });

  test("descriptions are cut, and hold nothing that a reader would not see", async () => {
    const { output, faults } = await useServers({ bad: misbehaving("hidden").config }, offered);
    const [{ description, inputSchema }] = JSON.parse(JSON.stringify(output));
    expect(description).toMatch(/^Adds two numbers\. (?:x+ )+… \[cut\]$/);
    expect(description.length).toBeLessThan(4_100);
    expect(inputSchema.properties.a.description).toBe("The[31m first");
    expect(faults).toEqual([
      'mcp:bad: its tool "deceives" is excluded: its schema contains characters that hide or reverse text',
    ]);
  });

  test("schemas that are none are left out; none keeps us busy, and what can be checked is", async () => {
    const before = process.cpuUsage().user;
    const { output, faults } = await useServers({ bad: misbehaving("schemas").config }, async (call) => [
      await call("mcp__bad__many", { x: "no number" }),
      await call("mcp__bad__slow", { x: `${"a".repeat(60)}!` }),
      await call("mcp__bad__slow", { x: "a", n: "no number" }),
      await call("mcp__bad__slow", {}),
    ]);
    expect(output).toMatchObject([
      "called many",
      "called slow",
      { code: "invalid_tool_input", issues: [{ path: "$.n" }] },
      { code: "invalid_tool_input", issues: [{ path: "$.x", message: "is required" }] },
    ]);
    expect(faults.map((fault) => /its tool "(\w+)" is excluded/.exec(fault)?.[1])).toEqual([
      "loop",
      "deep",
      "broken",
      "list",
      "remote",
    ]);
    expect(process.cpuUsage().user - before).toBeLessThan(10_000_000);
  });
});

describe("what a tool does is for the user to say", () => {
  test("a server's word that a tool only reads is not believed", async () => {
    const { output } = await useServers({ bad: misbehaving("hint").config }, offered);
    expect(output).toMatchObject([{ name: "mcp__bad__look", effect: "write" }, { effect: "write" }]);
  });

  test("the settings' word is, and a pattern that matches nothing is reported", async () => {
    const config = misbehaving("hint", { reads: ["lo*", "list_*"] }).config;
    const { output, faults } = await useServers({ bad: config }, offered);
    expect(output).toMatchObject([
      { name: "mcp__bad__look", effect: "read" },
      { name: act, effect: "write" },
    ]);
    expect(faults).toEqual(['mcp:bad: "list_*" of reads matches none of its tools']);
  });
});

describe("the gate", () => {
  const calls = async (call: Call): Promise<readonly Json[]> => [await call(act), await call("mcp__bad__look")];

  test.each([
    [["mcp__bad__*"], ["called act", "called look"]],
    [["mcp__*"], ["called act", "called look"]],
    [["mcp__bad__look"], [{ code: "tool_call_denied", cause: "no_interactor" }, "called look"]],
    [
      ["mcp__bad__act(src/**)", "mcp__bad__look"],
      [{ code: "tool_call_denied" }, "called look"],
    ],
  ])("lets through what %j covers, and nothing else", async (allowedTools, expected) => {
    const bad = misbehaving("fine");
    const { output } = await useServers({ bad: bad.config }, calls, { allowedTools });
    expect(output).toMatchObject(expected);
    const made = expected.filter((outcome) => typeof outcome === "string").length;
    expect(bad.noted().filter((line) => line.startsWith("call"))).toHaveLength(made);
  });

  test("in mode ask no tool of a server passes without a person, whether it reads or writes", async () => {
    const bad = misbehaving("fine", { reads: ["look"] });
    const { live } = mcpSession({ bad: bad.config });
    const run = await live.run(callingPipeline(calls), {});
    expect(run).toMatchObject({ output: [{ cause: "no_interactor" }, { cause: "no_interactor" }] });
    expect(bad.noted().filter((line) => line.startsWith("call"))).toEqual([]);
  });

  test("a pattern that matches no tool of a server keeps the run from starting", async () => {
    const { live } = mcpSession({ bad: misbehaving("fine").config });
    const run = live.run(checked(["mcp__bad__akt"]), {});
    await expect(run).rejects.toMatchObject({
      code: "session_invalid",
      message: expect.stringContaining('did you mean "mcp__bad__act"'),
    });
  });
});

test("without servers nothing of this is loaded, and a pattern for one says what is missing", async () => {
  const live = session({ model: noModel, env: BARE_ENV, mcpServers: {} });
  await expect(live.run(checked(["mcp__bad__*"]), {})).rejects.toMatchObject({
    code: "session_invalid",
  });
});
