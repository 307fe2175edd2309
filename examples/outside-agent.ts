// An agent of another program works through a pipeline: the program opens a run for it and serves the run's tools over MCP. Here
// the agent is the official MCP client with a fixed list of calls, one of which is denied.
//   node examples/outside-agent.ts
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { done, pipeline, stage, to } from "@sluice/core";
import { newGatewayToken, openGatewayRun, startGatewayServer } from "@sluice/gateway";
import { createSession } from "@sluice/stages";
import { z } from "zod";

const plan = stage({
  prompt: "Read what you need and plan the change. Change nothing.",
  allowedTools: ["Read", "Grep", "Glob"],
  completionTool: "submit_plan",
  completionSchema: z.object({ steps: z.array(z.string()).min(1) }),
  turnCap: 20,
});
const edit = stage({
  reads: { plan },
  prompt: "Make this change: {{ctx.upstream.plan.steps}}",
  allowedTools: ["Read", "Edit"],
  completionTool: "submit_change",
  completionSchema: z.object({ summary: z.string() }),
  turnCap: 20,
});
const planFirst = pipeline({
  id: "plan-first",
  input: z.object({ task: z.string() }),
  stages: { plan, edit },
  initial: "plan",
  next: { plan: () => to("edit"), edit: ({ output }) => done(output) },
});

const folder = mkdtempSync(join(tmpdir(), "sluice-outside-agent-"));
writeFileSync(join(folder, "options.txt"), "verbose = false\n");

const run = openGatewayRun({
  pipeline: planFirst,
  agent: { name: "example", class: "advisory" },
  wait: false, // deny what needs approval: no one is here
  session: (added) => createSession({ cwd: folder, ...added }),
  begin: (session, task = "rename the option") => session.start(planFirst, { task }),
});
const token = newGatewayToken();
const server = await startGatewayServer({ run, token, version: "1.0.0" });

const agent = new Client({ name: "example-agent", version: "1.0.0" });
const headers = { Authorization: `Bearer ${token}` };
await agent.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }));
const call = async (name: string, args: Record<string, unknown> = {}): Promise<void> => {
  const { isError } = await agent.callTool({ name, arguments: args });
  console.log(isError === true ? "refused" : "ok     ", name, args.event ?? "");
};

const change = { file_path: "options.txt", old_string: "verbose", new_string: "debug" };
await call("get_state");
await call("Read", { file_path: "options.txt" });
await call("Edit", change); // not while planning
await call("transition", { event: "submit_plan", data: { steps: ["rename verbose to debug"] } });
await call("Read", { file_path: "options.txt" });
await call("Edit", change);
await call("transition", { event: "submit_change", data: { summary: "renamed" } });

const result = await run.ended;
console.log(result.status, readFileSync(join(folder, "options.txt"), "utf8").trim());

await agent.close();
await server.close();
await run.close();
rmSync(folder, { recursive: true });
