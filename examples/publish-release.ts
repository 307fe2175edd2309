// A model writes release notes, a person approves them, and a script publishes. Only the script holds the registry's token: no
// command of the model, no other process and no record of the run ever has it.
//   node examples/publish-release.ts
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callbackInteractor, done, fail, field, pipeline, stage } from "@sluice/core";
import { createSession, script, scriptedModel } from "@sluice/stages";
import { z } from "zod";

const TOKEN = process.env.REGISTRY_TOKEN ?? "example-token-5Jq8Zk2mT5vX";

const notes = stage({
  prompt: "Write the release notes of the version that the task names, from the history in CHANGES.md.",
  allowedTools: ["Read", "Write(NOTES.md)", "Bash"],
  completionTool: "submit_notes",
  completionSchema: z.object({ version: z.string().regex(/^\d+\.\d+\.\d+$/), text: z.string().max(2_000) }),
  turnCap: 10,
});
const publish = script({
  // Each element is one argument, and the notes arrive on standard input: nothing of a model is read as code.
  command: [process.execPath, "publish.mjs", "{{ctx.upstream.notes.version}}"],
  stdin: "{{ctx.upstream.notes.text}}",
  env: { REGISTRY: "{{ctx.run.input.registry}}" },
  secrets: ["REGISTRY_TOKEN"],
  timeoutMs: "30s",
  output: z.object({ published: z.string() }),
});
const release = pipeline({
  id: "release",
  input: z.object({ task: z.string(), registry: z.url() }),
  stages: { notes, publish },
  initial: "notes",
  transitions: [
    { from: "notes", on: "success", to: "publish", approval: { message: "Publish this release?" } },
    { from: "publish", on: "success", to: done("published") },
    { from: "publish", on: "failure", to: fail("the registry refused the release") },
  ],
});

/** The script, which the author of the pipeline writes. Like many tools, it prints too much. */
const PUBLISH = `
  import { text } from "node:stream/consumers";
  const { REGISTRY = "", REGISTRY_TOKEN = "" } = process.env;
  const headers = { authorization: "Bearer " + REGISTRY_TOKEN };
  console.error("POST", REGISTRY, headers);
  const body = JSON.stringify({ version: process.argv[2], notes: await text(process.stdin) });
  const response = await fetch(REGISTRY, { method: "POST", headers, body });
  if (!response.ok) throw new Error("the registry answered " + response.status);
  console.log(JSON.stringify({ published: process.argv[2] }));
`;

const published: unknown[] = [];
const registry = createServer((request, response) => {
  const isKnown = request.headers.authorization === `Bearer ${TOKEN}`;
  let body = "";
  request.setEncoding("utf8").on("data", (text: string) => {
    body += text;
  });
  request.on("end", () => {
    if (isKnown) published.push(JSON.parse(body));
    response.writeHead(isKnown ? 201 : 401).end();
  });
}).listen(0, "127.0.0.1");
await once(registry, "listening");
const address = registry.address();
const port = typeof address === "object" ? address?.port : undefined;

const workspace = mkdtempSync(join(tmpdir(), "sluice-"));
writeFileSync(join(workspace, "CHANGES.md"), "- The parser reads durations with several units.\n");
writeFileSync(join(workspace, "publish.mjs"), PUBLISH);

const model = scriptedModel({
  stages: {
    notes: [
      { calls: [{ tool: "Read", input: { file_path: "CHANGES.md" } }] },
      { calls: [{ tool: "Bash", input: { command: "env" } }] },
      { calls: [{ tool: "submit_notes", input: { version: "1.4.0", text: "Durations may have several units." } }] },
    ],
  },
});
// At a terminal, `sluice run` asks you. This person approves the release, and nothing else.
const person = callbackInteractor("ann", ({ kind, body }) => {
  if (kind !== "approveTransition") return undefined;
  console.log(field(body, "message"), "yes");
  return { kind: "approve" };
});
const session = createSession({
  model: process.env.SLUICE_MODEL ?? model,
  cwd: workspace,
  interactors: [person],
  env: { ...process.env, REGISTRY_TOKEN: TOKEN },
});
const run = session.start(release, { task: "Release 1.4.0.", registry: `http://127.0.0.1:${port}/releases` });
const events: string[] = [];
for await (const event of run.events) events.push(JSON.stringify(event));
const result = await run;
const journal = JSON.stringify(await session.host.journal(run.runId));
console.log(result.status, published);
console.log("records with the token:", events.filter((event) => event.includes(TOKEN)).length, journal.includes(TOKEN));
console.log("what the script printed:", /POST [^"]*authorization: [^"]*/.exec(journal)?.[0]);
await session.close();
registry.close();
