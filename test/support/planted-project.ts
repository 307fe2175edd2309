import { join } from "node:path";
import type { Desk } from "./command.ts";
import type { Plants } from "./planted.ts";

const MCP = join(import.meta.dirname, "../fixtures/secrets/mcp.mjs");

/** A project whose code, settings and files hold secrets. `remote` is the address of an MCP server over HTTP. */
export function plantProject({ folder, write }: Pick<Desk, "folder" | "write">, planted: Plants, remote: string): void {
  const texts = join(folder, "../planted.json");
  write("../planted.json", JSON.stringify(planted.texts));
  write("sluice.config.ts", configOf(planted, texts, remote));
  write(".env", `# settings\nSERVICE_URL=${planted.at("env-file")}\n`);
  const { known, looks } = planted.one("private-key");
  write("key.pem", `-----BEGIN PRIVATE KEY-----\n${looks.slice(3)}\n${known}\n-----END PRIVATE KEY-----\n`);
  write("notes.txt", `first\nthe needle is ${planted.at("grep-result")}\n`);
  write(`src/${planted.one("glob-path").known}-${planted.one("glob-path").looks}.ts`, "export const a = 1;\n");
  write("edited.txt", `a ${planted.at("edit-old")} b\n`);
  // What commands print lies where the model cannot name it but by the file.
  for (const name of ["stdout", "stderr", "exit"]) write(`${name}.txt`, `${planted.at(`bash-${name}`)}\n`);
  const half = "line of a long output\n".repeat(8_000);
  write(
    "big.txt",
    `${planted.at("blob-head")}\n${half}${planted.at("blob-middle")}\n${half}${planted.at("blob-tail")}\n`,
  );
  const encoded = planted.one("encoded").known;
  const basic = Buffer.from(`user:${encoded}`).toString("base64");
  write(
    "encoded.txt",
    `Basic ${basic}\n${Buffer.from(encoded).toString("hex")}\n${Buffer.from(`xy${encoded}`).toString("base64url")}\n`,
  );
}

function configOf({ one }: Plants, texts: string, remote: string): string {
  return `import { done, fail, pipeline, stage, to, defineTool } from "@sluice/core";
import { defineConfig } from "@sluice/cli";
import { readFileSync } from "node:fs";
import { z } from "zod";
const planted = JSON.parse(readFileSync(${JSON.stringify(texts)}, "utf8"));
const finish = { completionTool: "finish", completionSchema: z.object({ text: z.string() }) };
const work = stage({
  ...finish,
  setup: () => ({ found: planted["setup"], password: "tulip-setup-window" }),
  prompt: ({ setup }) => \`Work with \${JSON.stringify(setup)} and \${planted["prompt"]}.\`,
  allowedTools: ["Read", "Grep", "Glob", "Edit", "Write", "Bash", "Broken", "Vetoed", "Speaks", "AskUser", "mcp__*", \`Bash(deploy \${planted["tool-pattern"]} *)\`],
  turnCap: 12,
  retryPolicy: { maxAttempts: 2 },
  assert: (_result, ctx) => (ctx.attempt === 1 ? { retry: planted["retry-feedback"] } : "ok"),
});
const last = stage({ ...finish, prompt: "End.", allowedTools: [], turnCap: 2, inputSchema: z.object({ hint: z.string(), token: z.string() }) });
const planned = pipeline({
  id: "planned",
  input: z.object({ task: z.string(), note: z.string().optional(), password: z.string().optional() }),
  stages: { work, last },
  initial: "work",
  next: {
    work: () => to("last", { hint: planted["route-input"], token: "tulip-route-window" }, { context: { seen: planted["context"], secret: "tulip-context-window" } }),
    last: ({ output }) => done({ said: output.text, [planted["output-key"]]: planted["output"], api_key: "tulip-output-window" }),
  },
});
const only = stage({ ...finish, prompt: "Work.", allowedTools: [], turnCap: 3, exit: () => { throw new Error(planted["exit-hook"]); } });
const failing = pipeline({
  id: "failing",
  input: z.object({ task: z.string() }),
  stages: { only },
  initial: "only",
  next: { only: { completed: () => done(null), failed: ({ message }) => fail(\`\${message}; \${planted["fail-reason"]}\`) } },
});
const late = stage({ ...finish, prompt: "Work.", allowedTools: [], turnCap: 3, precondition: () => new Promise(() => {}), setup: () => {
  setTimeout(() => { throw new Error(planted["crash"]); }, 1);
} });
const crashing = pipeline({ id: "crashing", input: z.object({ task: z.string() }), stages: { late }, initial: "late", next: { late: () => done(null) } });
const throwing = (name, effect, execute) => defineTool({ name, description: "A tool.", input: z.looseObject({}), effect, subjects: () => [], execute });
export default defineConfig({
  pipelines: { planned, failing, crashing },
  secrets: ["DEPLOY_PHRASE"],
  allow: [\`Bash(deploy \${planted["allow-pattern"]} *)\`],
  tools: [
    throwing("Broken", "read", () => { throw new Error(planted["tool-throws"], { cause: new Error(planted["tool-cause"]) }); }),
    throwing("Speaks", "read", async () => ({ ok: true, output: { text: planted["tool-output"], cookie: "tulip-result-window", [planted["result-key"]]: 1 }, facts: { seen: planted["tool-facts"], token: "tulip-facts-window" } })),
    throwing("Vetoed", "write", async () => ({ ok: true, output: "no" })),
    throwing("Outside", "write", async () => ({ ok: true, output: "no" })),
  ],
  onCall: ({ tool }) => { if (tool === "Vetoed") throw new Error(planted["hook-throws"]); },
  mcpServers: {
    near: {
      command: ${JSON.stringify(process.execPath)},
      args: [${JSON.stringify(MCP)}, ${JSON.stringify(texts)}, "--api-key", ${JSON.stringify(one("mcp-argument").known)}],
      env: { SERVICE_API_KEY: ${JSON.stringify(one("mcp-env").known)} },
      restarts: 1,
      optional: true,
    },
    gone: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(MCP)}, ${JSON.stringify(texts)}, "--gone"], optional: true },
    far: {
      url: ${JSON.stringify(`${remote}?access=${one("mcp-query").known}`)},
      headers: { Authorization: ${JSON.stringify(`Bearer ${one("mcp-header").known}`)}, "x-note": ${JSON.stringify(one("mcp-other-header").known)} },
      optional: true,
    },
  },
});
`;
}
