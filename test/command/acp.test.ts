import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { openEditor, saidIn, updatesOf } from "../support/acp-client.ts";
import { at, call, type Desk, desk, finishes, PIPELINES, printed, textAt, turn } from "../support/command.ts";

const single = `${PIPELINES}#single`;
const writes = (path: string) => call("Write", { file_path: path, content: "granted\n" });
const writesThenEnds = { work: [{ text: "I write.", calls: [writes("one.txt")] }, finishes()] };

function runIdIn(text: string): string {
  const [, runId = ""] = /[Rr]un (r\w+)/.exec(text) ?? [];
  return runId;
}

async function shown(here: Desk, runId: string) {
  return printed(await here.sluice(["show", runId, "--output-format", "json"]));
}

describe("a prompt", () => {
  test("runs the pipeline: its states are the plan, its calls tool calls with diffs, and its end has the run's id", async () => {
    const here = desk();
    const editor = await openEditor(here, [single, "--model", here.script(writesThenEnds)]);
    const sessionId = await editor.session();
    expect(await editor.prompt(sessionId, "write it")).toBe("end_turn");
    expect(readFileSync(join(here.folder, "one.txt"), "utf8")).toBe("granted\n");

    const file = join(here.folder, "one.txt");
    const [permission] = editor.permissions;
    expect(permission).toMatchObject({
      sessionId,
      toolCall: {
        title: "Write one.txt",
        kind: "edit",
        status: "pending",
        rawInput: { file_path: "one.txt", content: "granted\n" },
        locations: [{ path: file }],
      },
    });
    expect(permission?.options.map(({ optionId, kind }) => [optionId, kind])).toEqual([
      ["allow", "allow_once"],
      ["deny", "reject_once"],
    ]);
    expect(permission?.toolCall.content?.[0]).toEqual({ type: "diff", path: file, newText: "granted\n" });
    expect(JSON.stringify(permission?.toolCall.content)).toContain("Write is not in the envelope (Read)");

    const calls = updatesOf(editor.updates, "tool_call");
    expect(calls.map(({ title, toolCallId }) => [title, toolCallId.split("/").slice(1).join("/")])).toEqual([
      ["Write one.txt", "work#1/a1/t1.c0"],
      ["finish text: done", "work#1/a1/t2.c0"],
    ]);
    expect(permission?.toolCall.toolCallId).toBe(calls[0]?.toolCallId);
    const last = [...calls, ...updatesOf(editor.updates, "tool_call_update")].filter(
      ({ toolCallId }) => toolCallId === calls[0]?.toolCallId,
    );
    expect(last.at(-1)).toMatchObject({ status: "completed", content: [{ type: "diff", path: file }] });
    const plans = updatesOf(editor.updates, "plan");
    expect(plans[0]?.entries).toEqual([{ content: "work", priority: "medium", status: "in_progress" }]);
    expect(plans.at(-1)?.entries).toEqual([{ content: "work", priority: "medium", status: "completed" }]);

    expect(editor.said()).toContain("I write.");
    const runId = runIdIn(editor.said());
    expect(editor.said()).toContain(`Run ${runId} completed.`);
    expect(editor.said()).toContain(`sluice show ${runId}`);
    expect(await shown(here, runId)).toMatchObject({ status: "completed" });
    expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
    expect(await editor.quit()).toBe(0);
    // Nothing but the protocol.
    for (const line of editor.stdout().trim().split("\n")) expect(at(JSON.parse(line), "jsonrpc")).toBe("2.0");
  });

  test("a denied call does not run: the model reads it, the tool call fails, and the record names the editor", async () => {
    const here = desk();
    const options = { choose: () => "deny" };
    const editor = await openEditor(here, [single, "--model", here.script(writesThenEnds)], options);
    expect(await editor.prompt(await editor.session(), "write it")).toBe("end_turn");
    expect(existsSync(join(here.folder, "one.txt"))).toBe(false);
    const ends = updatesOf(editor.updates, "tool_call_update").concat(
      updatesOf(editor.updates, "tool_call").map((one) => ({ ...one, sessionUpdate: "tool_call_update" as const })),
    );
    const write = ends.filter(({ toolCallId }) => toolCallId.endsWith("t1.c0"));
    expect(write.map(({ status }) => status)).toContain("failed");
    const audit = await here.sluice(["audit", runIdIn(editor.said()), "--output-format", "json"]);
    expect(audit.stdout).toContain('"by": "acp editor"');
  });

  test.each(["allow_always", "always", "", "allow\n", "choice-0"])(
    "the option %j, which was not offered, denies",
    async (id) => {
      const here = desk();
      const editor = await openEditor(here, [single, "--model", here.script(writesThenEnds)], { choose: () => id });
      expect(await editor.prompt(await editor.session(), "write it")).toBe("end_turn");
      expect(existsSync(join(here.folder, "one.txt"))).toBe(false);
    },
  );

  test("an approval counts for one call: the same call again is asked again", async () => {
    const here = desk();
    const twice = { work: [turn(writes("one.txt")), turn(writes("two.txt"), writes("three.txt")), finishes()] };
    const answers = ["allow", "deny", "allow"];
    const options = { choose: () => answers.shift() };
    const editor = await openEditor(here, [single, "--model", here.script(twice)], options);
    await editor.prompt(await editor.session(), "write it");
    const wrote = ["one.txt", "two.txt", "three.txt"].map((name) => existsSync(join(here.folder, name)));
    expect([editor.permissions.length, wrote]).toEqual([3, [true, false, true]]);
  });

  test("a call is announced before a person is asked, so that its redacted record does not replace what they are shown", async () => {
    const here = desk();
    const content = `{"token":"' + run() + '"}`;
    const calls = turn(call("Write", { file_path: "one.txt", content }));
    const held: { choose: string | undefined } = { choose: undefined };
    const editor = await openEditor(here, [single, "--model", here.script({ work: [calls, finishes()] })], {
      choose: () => held.choose,
    });
    const sessionId = await editor.session();
    const ended = editor.prompt(sessionId, "write it");
    await editor.until(() => editor.permissions.length > 0);
    const [permission] = editor.permissions;
    expect(JSON.stringify(permission?.toolCall)).toContain("run()");
    const ofCall = editor.updates.filter(
      (one) => "toolCallId" in one && one.toolCallId === permission?.toolCall.toolCallId,
    );
    expect(ofCall.map(({ sessionUpdate }) => sessionUpdate)).toContain("tool_call");
    expect(JSON.stringify(ofCall)).toContain("[redacted:token]");
    await editor.agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await ended).toBe("cancelled");
  });

  test("while another one runs is refused, and the first continues", async () => {
    const here = desk();
    const held: { choose: string | undefined } = { choose: undefined };
    const editor = await openEditor(here, [single, "--model", here.script(writesThenEnds)], {
      choose: () => held.choose,
    });
    const sessionId = await editor.session();
    const first = editor.prompt(sessionId, "write it");
    await editor.until(() => editor.permissions.length > 0);
    await expect(editor.prompt(sessionId, "and this")).rejects.toThrow("already runs a prompt");
    await editor.agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await first).toBe("cancelled");
  });

  test("without a name and without a default pipeline, or with an unknown one, is refused with the names there are", async () => {
    const here = desk();
    const editor = await openEditor(here, []);
    const sessionId = await editor.session();
    await expect(editor.prompt(sessionId, "do it")).rejects.toThrow(
      /name a pipeline.*\/codeReview, \/fixTests, \/auto/s,
    );
    await expect(editor.prompt(sessionId, "/codereview it")).rejects.toThrow("there is no pipeline codereview");
    await expect(editor.prompt(sessionId, `/${single} it`)).rejects.toThrow("name a pipeline");
    await expect(editor.prompt(sessionId, "/resume")).rejects.toThrow("no run to continue");
    await expect(editor.prompt(sessionId, " ")).rejects.toThrow("has no text");
    await editor.until(() => updatesOf(editor.updates, "available_commands_update").length > 0);
    const [commands] = updatesOf(editor.updates, "available_commands_update");
    expect(commands?.availableCommands.map(({ name }) => name)).toEqual(["codeReview", "fixTests", "auto", "resume"]);
    expect(existsSync(here.store)).toBe(false);
  });

  test("of a run that fails ends with a message that says so, and one that reached its turns with that reason", async () => {
    const here = desk();
    const giving = await openEditor(here, [`${PIPELINES}#giving`, "--model", here.script({ first: [finishes()] })]);
    expect(await giving.prompt(await giving.session(), "x")).toBe("end_turn");
    expect(giving.said()).toMatch(/Run r\w+ failed: .*there is no way/);
    const idle = { work: [{ text: "a" }, { text: "b" }, { text: "c" }, { text: "d" }] };
    const capped = await openEditor(here, [single, "--model", here.script(idle)]);
    expect(await capped.prompt(await capped.session(), "x")).toBe("max_turn_requests");
    expect(capped.said()).toMatch(/Run r\w+ failed: .*turn_cap/);
  });

  test("of a pipeline with a fan-out shows its siblings as entries of the plan", async () => {
    const here = desk();
    const model = here.script({ start: [finishes()], left: [finishes()], right: [finishes()], join: [finishes()] });
    const editor = await openEditor(here, [`${PIPELINES}#forked`, "--model", model]);
    expect(await editor.prompt(await editor.session(), "x")).toBe("end_turn");
    const plans = updatesOf(editor.updates, "plan").map(({ entries }) => entries.map(({ content }) => content));
    expect(plans.at(-1)).toEqual(["start", "left, in parallel", "right, in parallel", "join"]);
  });
});

describe("questions", () => {
  const asks = (input: { question: string; options?: string[] }) => ({
    asker: [turn(call("AskUser", input)), finishes("ok")],
  });
  const asking = `${PIPELINES}#asking`;

  test("are forms where the client has elicitation, and an answer that does not fit is asked for again", async () => {
    const here = desk();
    const answers = ["", "blue"];
    const editor = await openEditor(here, [asking, "--model", here.script(asks({ question: "Which colour?" }))], {
      capabilities: { elicitation: { form: {} } },
      fill: () => ({ action: "accept", content: { answer: answers.shift() ?? "" } }),
    });
    expect(await editor.prompt(await editor.session(), "x")).toBe("end_turn");
    expect(editor.questions).toHaveLength(2);
    expect(editor.questions[0]).toMatchObject({ mode: "form", message: expect.stringMatching(/Which colour\?\n```$/) });
    expect(editor.questions[1]?.message).toMatch(/Which colour\?\n```\n\n./);
    expect(JSON.stringify(editor.updates)).toContain("blue");
  });

  test("with options are choices where it has none, and no option approves anything else", async () => {
    const here = desk();
    const model = here.script(asks({ question: "Which?", options: ["red", "blue"] }));
    const editor = await openEditor(here, [asking, "--model", model], { choose: () => "choice-1" });
    expect(await editor.prompt(await editor.session(), "x")).toBe("end_turn");
    expect(editor.permissions[0]?.options.map(({ name }) => name)).toEqual(["red", "blue", "Do not answer"]);
    expect(JSON.stringify(updatesOf(editor.updates, "tool_call"))).toContain("blue");
  });

  test("for text are denied with the reason where it has none", async () => {
    const here = desk();
    const editor = await openEditor(here, [asking, "--model", here.script(asks({ question: "Why?" }))]);
    expect(await editor.prompt(await editor.session(), "x")).toBe("end_turn");
    expect([editor.permissions.length, editor.questions.length]).toEqual([0, 0]);
    const audit = await here.sluice(["audit", runIdIn(editor.said()), "--output-format", "json"]);
    expect(audit.stdout).toContain("lacks elicitation");
  });

  test("a step that needs approval is asked with its states", async () => {
    const here = desk();
    const model = here.script({ work: [finishes()] });
    const editor = await openEditor(here, [`${PIPELINES}#approving`, "--model", model]);
    expect(await editor.prompt(await editor.session(), "x")).toBe("end_turn");
    expect(editor.permissions[0]?.toolCall.title).toBe("work -> released: Release it?");
    expect(editor.said()).toContain("completed");
  });
});

describe("a session", () => {
  test("whose client cancels ends its run as cancelled", async () => {
    const here = desk();
    const editor = await openEditor(here, [single, "--model", here.script(writesThenEnds)], {
      choose: () => undefined,
    });
    const sessionId = await editor.session();
    const prompted = editor.prompt(sessionId, "write it");
    await editor.until(() => editor.permissions.length > 0);
    await editor.agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await prompted).toBe("cancelled");
    expect(existsSync(join(here.folder, "one.txt"))).toBe(false);
    const [, runId = ""] = /Run (r\w+) was cancelled/.exec(editor.said()) ?? [];
    expect(await shown(here, runId)).toMatchObject({ status: "cancelled" });
  });

  test("whose process is killed is loaded again with everything that was done, and /resume continues its run", async () => {
    const here = desk();
    const model = here.script({ work: [turn(call("Read", { file_path: "in.txt" })), ...writesThenEnds.work] });
    here.write("in.txt", "read me\n");
    const first = await openEditor(here, [single, "--model", model], { choose: () => undefined });
    const sessionId = await first.session();
    const lost = first.prompt(sessionId, "write it").catch(() => "lost");
    await first.until(() => first.permissions.length > 0);
    await first.kill();
    expect(await lost).toBe("lost");

    const second = await openEditor(here, [single, "--model", model]);
    const { folder } = here;
    await second.agent.request(methods.agent.session.load, { sessionId, cwd: folder, mcpServers: [] });
    expect(saidIn(second.updates, "user_message_chunk")).toBe("/single write it");
    expect(updatesOf(second.updates, "tool_call").map(({ title, status }) => [title, status])).toEqual([
      ["Read in.txt", "completed"],
      ["Write one.txt", "pending"],
    ]);
    expect(second.said()).toMatch(/Run r\w+ has not ended. Continue it with \/resume/);
    expect(existsSync(join(folder, "one.txt"))).toBe(false);

    expect(await second.prompt(sessionId, "/resume")).toBe("end_turn");
    expect(second.permissions).toHaveLength(1);
    expect(readFileSync(join(folder, "one.txt"), "utf8")).toBe("granted\n");
    const runId = runIdIn(second.said());
    expect(await shown(here, runId)).toMatchObject({ status: "completed" });
    expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
  });

  test("whose client disconnects suspends its run, which the command and a load by its id continue", async () => {
    const here = desk();
    const model = here.script(writesThenEnds);
    const first = await openEditor(here, [single, "--model", model], { choose: () => undefined });
    const lost = first.prompt(await first.session(), "write it").catch(() => "lost");
    await first.until(() => first.permissions.length > 0);
    expect(await first.quit()).toBe(0);
    expect(await lost).toBe("lost");
    const runs = await here.sluice(["runs", "--output-format", "json"]);
    expect(runs.stdout).toContain('"suspended"');
    const [, runId = ""] = /"runId": ?"(r\w+)"/.exec(runs.stdout) ?? [];

    const second = await openEditor(here, [single, "--model", model]);
    await second.agent.request(methods.agent.session.load, { sessionId: runId, cwd: here.folder, mcpServers: [] });
    expect(await second.prompt(runId, "/resume")).toBe("end_turn");
    expect(existsSync(join(here.folder, "one.txt"))).toBe(true);
    // It has ended: nothing is left to continue.
    await expect(second.prompt(runId, "/resume")).rejects.toThrow("cannot be resumed");
  });

  test("is not found by a path, an id of another folder, or a made-up id", async () => {
    const here = desk();
    const other = join(here.folder, "other");
    mkdirSync(other);
    const editor = await openEditor(here, [single, "--model", here.script(writesThenEnds)]);
    const sessionId = await editor.session();
    await editor.prompt(sessionId, "x");
    await editor.agent.request(methods.agent.session.close, { sessionId });
    const load = (id: string, cwd: string) =>
      editor.agent.request(methods.agent.session.load, { sessionId: id, cwd, mcpServers: [] });
    for (const id of ["../../etc/passwd", "r0000000000", "", "__proto__", "/", `${sessionId}x`])
      await expect(load(id, here.folder)).rejects.toThrow(/there is no run|several runs|not found/);
    await expect(load(sessionId, other)).rejects.toThrow("belongs to");
    await expect(load(sessionId, "relative")).rejects.toThrow(/belongs to|absolute/);
    await expect(editor.prompt(sessionId, "x")).rejects.toThrow("no such session");
    await load(sessionId, here.folder);
  });

  test("in a folder with untrusted code is refused with how to trust it, and runs the code once it is trusted", async () => {
    const here = desk();
    here.write(
      ".sluice/pipelines/greet.mjs",
      `import { done, pipeline, stage } from "@sluice/core";
       import { z } from "zod";
       console.log("loaded");
       process.stdout.write("and again");
       const work = stage({ prompt: "Do it.", completionTool: "finish", completionSchema: z.object({ text: z.string() }), turnCap: 2, allowedTools: [] });
       export const greet = pipeline({ id: "greet", input: z.object({ task: z.string() }), stages: { work }, initial: "work", next: { work: ({ output }) => done(output.text) } });`,
    );
    const editor = await openEditor(here, ["--model", here.script({ work: [finishes("hello")] })]);
    const sessionId = await editor.session();
    await expect(editor.prompt(sessionId, "/greet me")).rejects.toThrow(/not trusted.*sluice check --trust --cwd/s);
    expect(editor.stderr()).not.toContain("loaded");
    expect((await here.sluice(["check", "--trust", "greet"])).code).toBe(0);
    expect(await editor.prompt(sessionId, "/greet me")).toBe("end_turn");
    expect(editor.said()).toMatch(/Run r\w+ completed\.\n\nhello/);
    // What the code prints does not break the protocol.
    expect(editor.stderr()).toContain("loaded");
    expect(editor.stderr()).toContain("and again");
    expect(editor.stdout()).not.toContain("loaded");
  });

  test("masks keys of the environment and what looks like a key", async () => {
    const here = desk();
    const text = "The key is sk-ant-0123456789abcdefghij and\nhunter2-hunter2-hunter2.\n";
    const model = here.script({ work: [{ text, calls: [writes("one.txt")] }, finishes()] });
    const editor = await openEditor(here, [single, "--model", model], {
      env: { OPENAI_API_KEY: "hunter2-hunter2-hunter2" },
    });
    await editor.prompt(await editor.session(), "use hunter2-hunter2-hunter2");
    expect(editor.stdout()).toContain("[redacted:");
    expect(editor.stdout()).not.toContain("0123456789abcdefghij");
    expect(editor.stdout()).not.toContain("hunter2-hunter2");
  });

  test("is not served inside a run, which could approve its own calls", async () => {
    const here = desk();
    const { code, stdout, stderr } = await here.sluice(["acp"], { env: { SLUICE_RUN: "rabc" } });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("no run may use it");
  });
});

test("the options of sluice acp lack --trust: an editor opens any folder", async () => {
  const { stdout } = await desk().sluice(["acp", "--help"]);
  expect(stdout).toContain("--model");
  expect(stdout).not.toMatch(/^ +--trust/m);
  expect(textAt({ stdout }, "stdout")).toContain("Examples:");
});
