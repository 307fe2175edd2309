import { existsSync, mkdirSync } from "node:fs";
import { done, pipeline, stage } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { EVERYTHING, FILESYSTEM, useServers } from "../support/mcp.ts";
import { startEverything } from "../support/mcp-http.ts";
import { eventsOf } from "../support/run-kit.ts";
import { tempFolder } from "../support/tools.ts";
import { latestResults } from "../support/wire-request.ts";
import { wiredSession } from "../support/wired-session.ts";

describe.each(["stdio", "streamable HTTP"])("the reference server over %s", (way) => {
  test("has its tools offered and called, its images described, its keys kept from it", async () => {
    const every =
      way === "stdio"
        ? { command: process.execPath, args: [EVERYTHING, "stdio"] }
        : { url: await startEverything(), headers: { authorization: "Bearer tok_12345678abcdefgh" } };
    const { output, faults, live } = await useServers({ every }, async (call, { offer }) => [
      offer.tools.flatMap(({ name }) => (name.startsWith("mcp__every__") ? [name] : [])).length,
      await call("mcp__every__echo", { message: "hello" }),
      await call("mcp__every__get-sum", { a: 2, b: 3 }),
      await call("mcp__every__get-sum", { a: "two", b: 3 }),
      await call("mcp__every__get-tiny-image"),
      await call("mcp__every__get-structured-content", { location: "Chicago" }),
      await call("mcp__every__get-resource-reference", { resourceType: "Text", resourceId: 1 }),
      await call("mcp__every__get-resource-links", { count: 1 }),
      await call("mcp__every__trigger-long-running-operation", { duration: 0.02, steps: 2 }),
      await call("mcp__every__gzip-file-as-resource", { name: "x.gz", data: "http://127.0.0.1:1/x" }),
    ]);
    expect(output).toEqual([
      expect.any(Number),
      "Echo: hello",
      "The sum of 2 and 3 is 5.",
      expect.objectContaining({ code: "invalid_tool_input" }),
      "Here's the image you requested:\n[image image/png, 4033 bytes: not shown]\nThe image above is the MCP logo.",
      expect.stringMatching(/^\{"temperature":\d+,"conditions":"[^"]+","humidity":\d+\}$/),
      expect.stringMatching(
        /^Returning resource[\s\S]*\n\[resource demo:\/\/resource\/dynamic\/text\/1, text\/plain\]\nResource 1/,
      ),
      expect.stringMatching(/\[link to the resource demo:\/\/\S+: /),
      expect.stringContaining("Long running operation completed"),
      expect.objectContaining({ code: "server_error" }),
    ]);
    expect(Array.isArray(output) ? output[0] : 0).toBeGreaterThan(10);
    expect(faults).toEqual([]);
    await live.close();
  });
});

test("the reference file server works in the workspace as a pipeline's tool, and a model reads its error as an error", async () => {
  const folder = tempFolder();
  folder.put("notes.txt", "The gate is closed at night.\n");
  mkdirSync(folder.path("out"));
  const use = stage({
    prompt: "Use the files.",
    allowedTools: ["mcp__files__read_text_file", "mcp__files__write_file"],
    completionTool: "finish",
    completionSchema: z.object({ summary: z.string() }),
    turnCap: 6,
  });
  const files = pipeline({
    id: "files",
    input: z.object({ task: z.string() }),
    stages: { use },
    initial: "use",
    next: { use: ({ output }) => done(output.summary) },
  });
  const path = folder.path("out/copy.txt");
  const replies = [
    { calls: [{ name: "mcp__files__read_text_file", input: { path: folder.path("notes.txt") } }] },
    { calls: [{ name: "mcp__files__write_file", input: { path, content: "copied\n" } }] },
    { calls: [{ name: "mcp__files__read_text_file", input: { path: "/etc/hostname" } }] },
    { calls: [{ name: "mcp__files__move_file", input: { source: path, destination: folder.path("gone") } }] },
    { calls: [{ name: "finish", input: { summary: "done" } }] },
  ];
  const server = { command: process.execPath, args: [FILESYSTEM, folder.root], reads: ["read_*", "list_*"] };
  const { live, requests } = await wiredSession("anthropic", replies, {
    cwd: folder.root,
    mcpServers: { files: server },
  });
  const run = await live.run(files, { task: "Copy the notes." });
  expect(run).toMatchObject({ status: "completed", output: "done", denied: [{ tool: "mcp__files__move_file" }] });
  expect(folder.text("out/copy.txt")).toBe("copied\n");
  expect(existsSync(folder.path("gone"))).toBe(false);

  const [first, ...rest] = requests();
  expect(first?.tools.toSorted()).toEqual(["finish", "mcp__files__read_text_file", "mcp__files__write_file"]);
  expect(rest.map(latestResults)).toMatchObject([
    ["The gate is closed at night.\n"],
    [expect.stringContaining("Successfully wrote")],
    [{ code: "server_error", message: expect.stringContaining("Access denied") }],
    [{ code: "tool_call_denied", cause: "no_interactor" }],
  ]);
  const finished = (await eventsOf(live.host, run.runId)).filter(({ type }) => type === "call.finished");
  expect(finished.map(({ data }) => data.outcome)).toEqual(["ok", "ok", "error"]);
});
