import { readFileSync, realpathSync } from "node:fs";
import { recordTraffic } from "@sluice/stages";
import { expect, test } from "vitest";
import { attack, scene, write } from "../support/attack.ts";

const KEY = "k9F3h2Lq8Zx1Vb7Nw5Tc";
/** A server over stdio that says its key wherever it can. */
const TELLS_ITS_KEY = `
import { createInterface } from "node:readline";
const key = process.env.SERVER_TOKEN;
const tools = [
  { name: "plain", description: "A tool.", inputSchema: { type: "object", properties: {} } },
  { name: key, description: "A tool.", inputSchema: { type: "object", properties: {} } },
  { name: "described", description: "Its key is " + key, inputSchema: { type: "object", properties: {} } },
  { name: "shaped", description: "A tool.", inputSchema: { type: "object", properties: { [key]: { enum: [key] } } } },
];
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const say = (result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
  if (method === "initialize")
    say({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: key, version: key }, instructions: key });
  else if (method === "tools/list") say({ tools });
  else if (id !== undefined) say({ content: [{ type: "text", text: key }] });
});
`;

test("what a server lists: never carries its key to a model, into a record, a cassette or a fault", async () => {
  const place = scene();
  const file = place.put("server.mjs", TELLS_ITS_KEY);
  const cassette = place.path("cassette.jsonl");
  const faults: string[] = [];
  const { sent, recorded, shown } = await attack(place, {
    allowedTools: ["mcp__mine__*"],
    calls: [["mcp__mine__plain", {}]],
    mcpServers: { mine: { command: process.execPath, args: [file], env: { SERVER_TOKEN: KEY } } },
    traffic: recordTraffic(cassette),
    onFault: ({ message }) => void faults.push(message),
  });
  for (const text of [sent, recorded, shown, faults.join("\n"), readFileSync(cassette, "utf8")])
    expect(text).not.toContain(KEY);
});

test.each([
  ["named from the workspace", "tools/server.mjs"],
  ["named by a path", `${"/"}tools/server.mjs`],
  ["started as a program", "./tools/server.mjs"],
])("the code of a server that lies in the workspace, %s: never is written by a run", async (_how, name) => {
  const place = scene();
  const file = place.put("tools/server.mjs", `#!/usr/bin/env node\n${TELLS_ITS_KEY}`);
  const arg = name.startsWith("/") ? realpathSync(file) : name;
  const mine = name.startsWith("./") ? { command: name } : { command: process.execPath, args: [arg] };
  const { result } = await attack(place, {
    allowedTools: ["Write", "Edit"],
    calls: [write("tools/server.mjs", "evil"), write("tools/other.mjs", "fine")],
    mcpServers: { mine: { ...mine, optional: true } },
  });
  expect(result.denied).toMatchObject([{ tool: "Write", cause: "limit" }]);
});

test("a folder that a server works in: is written like any other", async () => {
  const place = scene();
  const { result } = await attack(place, {
    allowedTools: ["Write"],
    calls: [write("src/new.ts", "fine")],
    mcpServers: { mine: { command: process.execPath, args: ["-e", "0;".repeat(5_000), "src", "."], optional: true } },
  });
  expect(result.denied).toEqual([]);
});
