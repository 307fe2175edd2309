import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ClientCapabilities } from "@agentclientprotocol/sdk";
import { type Answer, isJson, isJsonObject, type Json, type PersonRequest } from "@sluice/core";
import { expect, test } from "vitest";
import { clientInteractor } from "../../packages/gateway/src/acp/ask-client.ts";
import { bash, scene, write } from "../support/attack.ts";
import { session } from "../support/run-kit.ts";
import { calling, working } from "../support/stopped-runs.ts";

// An editor shows what `sluice acp` sends it. Text that only looks like a secret must not hide what an approval would run.

interface Sent {
  readonly toolCall: Json;
  readonly options: readonly string[];
  /** The text that is shown, without the bars and breaks of its rows. */
  readonly text: string;
}

/** An editor that chooses this option of every request. */
function editor(optionId: string, cwd = "/w", capabilities: ClientCapabilities = {}) {
  const sent: Sent[] = [];
  const client = {
    request: (_method: unknown, given: unknown) => {
      const params = isJson(given) && isJsonObject(given) ? given : {};
      const toolCall = params.toolCall ?? null;
      const options = Array.isArray(params.options) ? params.options : [];
      sent.push({
        toolCall,
        options: options.map((option: Json) => (isJsonObject(option) ? String(option.optionId) : "")),
        text: typeof params.message === "string" ? params.message : shownIn(toolCall),
      });
      return Promise.resolve({ outcome: { outcome: "selected", optionId }, action: "decline" });
    },
  };
  const interactor = clientInteractor({
    sessionId: "s",
    cwd,
    // The client of the protocol has one function with a type for each method.
    client: Object.assign(Object.create(null), client),
    capabilities: () => capabilities,
    name: "editor",
    gone: new AbortController().signal,
    flush: () => Promise.resolve(),
  });
  return { interactor, sent };
}

function shownIn(toolCall: Json): string {
  const content = isJsonObject(toolCall) && Array.isArray(toolCall.content) ? toolCall.content : [];
  const texts = content.map((one: Json) =>
    isJsonObject(one) && isJsonObject(one.content) ? String(one.content.text) : "",
  );
  return texts.join("\n").replaceAll(/\n *[│┆] /g, "");
}

const HIDDEN: readonly (readonly [how: string, command: string])[] = [
  ["a member of JSON", `echo '"token":"' ; touch PWNED ; echo '"'`],
  ["a flag", `true --token=$(touch\${IFS}PWNED)`],
  ["a private key", `: -----BEGIN PRIVATE KEY----- ; touch PWNED`],
  ["a header", `true Authorization: x;touch PWNED`],
  ["a URL", `true https://u:;touch PWNED;@h`],
  ["a query", `true 'a?token='x;:|touch\${IFS}PWNED`],
];

test.each(HIDDEN)("a command that looks like %s is shown whole in an editor", async (_how, command) => {
  const here = scene();
  const { interactor, sent } = editor("deny", here.root);
  const live = session({
    env: { PATH: process.env.PATH },
    cwd: here.root,
    sandbox: "off",
    model: calling([bash(command)]),
    interactors: [interactor],
  });
  await live.run(working({ id: "x", allowedTools: ["Read"] }), { task: "x" });
  await live.close();
  expect(sent).toHaveLength(1);
  expect(sent[0]?.text).toContain(command);
  expect(sent[0]?.toolCall).toMatchObject({ rawInput: { command } });
  expect(existsSync(join(here.root, "PWNED"))).toBe(false);
});

test("a file whose content looks like a secret is shown whole, in its diff too", async () => {
  const here = scene();
  const content = `const a = {"token":"'+require(\`child_process\`)+'"};`;
  const { interactor, sent } = editor("deny", here.root);
  const live = session({ cwd: here.root, model: calling([write("x.js", content)]), interactors: [interactor] });
  await live.run(working({ id: "x", allowedTools: ["Read"] }), { task: "x" });
  await live.close();
  expect(sent[0]?.text).toContain(content);
  expect(sent[0]?.toolCall).toMatchObject({ content: [{ type: "diff", newText: content }, { type: "content" }] });
});

function grant(input: Json): PersonRequest {
  const body = { executionId: "plan#1", tool: "Bash", input, why: "Bash is not in the envelope" };
  return { kind: "grantStageTool", runId: "r1", requestId: "x", digest: "d", openedAt: 0, body };
}

function question(text: string): PersonRequest {
  const body = { question: text, answer: { enum: ["run", "reject"] } };
  return { kind: "humanState", runId: "r1", requestId: "x", digest: "d", openedAt: 0, body };
}

async function asked(
  request: PersonRequest,
  optionId = "allow",
  capabilities: ClientCapabilities = {},
): Promise<{ sent: Sent; answer: Answer | undefined }> {
  const { interactor, sent } = editor(optionId, "/w", capabilities);
  const answer = await interactor.answer(request, new AbortController().signal);
  const [first] = sent;
  if (first === undefined) throw new Error("nothing was asked");
  return { sent: first, answer };
}

test("a call that an editor shows whole can be allowed once", async () => {
  const { sent, answer } = await asked(grant({ command: "ls" }));
  expect([sent.options, answer]).toEqual([["allow", "deny"], { kind: "approve" }]);
});

test("a call that is too long to be shown whole can only be denied", async () => {
  const { sent, answer } = await asked(grant({ command: `ls #${"x".repeat(100_000)}\nrm -rf src` }));
  expect(sent.options).toEqual(["deny"]);
  expect(sent.text).toContain("sluice show r1");
  expect(answer).toMatchObject({ kind: "deny" });
});

test("a question that is too long to be shown whole is not asked", async () => {
  for (const capabilities of [{}, { elicitation: { form: {} } }]) {
    const { interactor, sent } = editor("choice-0", "/w", capabilities);
    const answer = await interactor.answer(question(`${"x".repeat(100_000)} Run it?`), new AbortController().signal);
    expect(sent).toEqual([]);
    expect(answer).toMatchObject({ kind: "deny", reason: expect.stringContaining("too long to be shown whole") });
  }
});

const BREAKING = "ls\n````\n<!--\n```\nrm -rf src\n-->";
test.each<readonly [what: string, request: PersonRequest, capabilities: ClientCapabilities]>([
  ["a call", grant({ command: BREAKING }), {}],
  ["a question", question(BREAKING), {}],
  ["a question in a form", question(BREAKING), { elicitation: { form: {} } }],
])("no text of %s leaves the block of code in which an editor shows it", async (_what, request, capabilities) => {
  const { sent } = await asked(request, "deny", capabilities);
  const [fence = "", ...rows] = sent.text.split("\n");
  expect(fence).toMatch(/^`{5,}text/);
  expect(rows.at(-1)).toBe(fence.replace(/text.*/, ""));
  expect(sent.text).toContain("rm -rf src");
});

test("a step is shown with all of its facts, not redacted", async () => {
  const body = { from: "review", to: "deployed", message: "Deploy?", data: { note: `"token":"'; hidden"` } };
  const { sent } = await asked({ ...grant({}), kind: "approveTransition", body });
  expect(sent.text).toContain("hidden");
  expect(sent.toolCall).toMatchObject({ rawInput: { data: { note: `"token":"'; hidden"` } } });
});
