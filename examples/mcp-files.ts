// A stage with two tools of an MCP server. The call of another tool of that server is denied, since no interactor can grant it.
//   node examples/mcp-files.ts
import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { done, pipeline, stage } from "@sluice/core";
import { createSession, scriptedModel } from "@sluice/stages";
import { z } from "zod";

const workspace = realpathSync(mkdtempSync(join(tmpdir(), "sluice-")));
const [notes, copy] = [join(workspace, "notes.txt"), join(workspace, "copy.txt")];
writeFileSync(notes, "The gate is closed at night.\n");

const archive = stage({
  prompt: "Copy the file that the task names.",
  allowedTools: ["mcp__files__read_text_file", "mcp__files__write_file"],
  completionTool: "submit_copy",
  completionSchema: z.object({ copied: z.string() }),
  turnCap: 6,
});
const archives = pipeline({
  id: "archives",
  input: z.object({ task: z.string() }),
  stages: { archive },
  initial: "archive",
  next: { archive: ({ output }) => done(output.copied) },
});

const call = (tool: string, input: Record<string, string>) => ({ calls: [{ tool, input }] });
const script = scriptedModel({
  stages: {
    archive: [
      call("mcp__files__read_text_file", { path: notes }),
      call("mcp__files__move_file", { source: notes, destination: copy }),
      call("mcp__files__write_file", { path: copy, content: "The gate is closed at night.\n" }),
      call("submit_copy", { copied: "copy.txt" }),
    ],
  },
});
// Without an installed server, use `npx -y @modelcontextprotocol/server-filesystem <folder>`.
const installed = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-filesystem/package.json");
const session = createSession({
  model: process.env.SLUICE_MODEL ?? script,
  cwd: workspace,
  mcpServers: {
    files: {
      command: process.execPath,
      args: [join(dirname(installed), "dist/index.js"), workspace],
      reads: ["read_*"],
    },
  },
  onFault: ({ by, message }) => console.error(`${by}: ${message}`),
});
const result = await session.run(archives, { task: `Copy ${notes} to ${copy}` });
console.log(result.status, "denied:", result.denied.map(({ tool, cause }) => `${tool} (${cause})`).join());
console.log("copy.txt:", readFileSync(copy, "utf8").trim());
await session.close();
