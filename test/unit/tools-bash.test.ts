import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { isJsonObject, SluiceError, type ToolCall } from "@sluice/core";
import { expect, test } from "vitest";
import { bashTool } from "../../packages/stages/src/tools/bash/bash-tool.ts";
import { codeOf, stageIn, type TestWorkspace, tempFolder, textOf } from "../support/tools.ts";

const tool = bashTool();
await tool.ready?.();
const bash = (folder: { readonly root: string }, command: string, options: Partial<ToolCall> = {}, timeout?: number) =>
  stageIn(folder, options).use(tool, { command, ...(timeout === undefined ? {} : { timeout }) });
const inReadOnlyStage = { mayWrite: false };

test("a command runs in the workspace's root and gives its output", async () => {
  const folder = tempFolder();
  const result = await bash(folder, "pwd");
  expect(result).toMatchObject({ ok: true, output: `${folder.root}\n`, facts: { exitCode: 0, cut: false } });
  expect(textOf(await bash(folder, "true"))).toBe("(no output)");
});

test("output and errors come in the order they were written", async () => {
  const text = textOf(await bash(tempFolder(), "for i in 1 2 3; do echo out$i; echo err$i >&2; done"));
  expect(text).toBe("out1\nerr1\nout2\nerr2\nout3\nerr3\n");
});

test("a failing command gives its exit code, a killed one the signal", async () => {
  const folder = tempFolder();
  expect(await bash(folder, "echo no; exit 7")).toMatchObject({
    ok: false,
    output: "Exit code 7\nno\n",
    facts: { exitCode: 7 },
  });
  expect(await bash(folder, "kill -9 $$")).toMatchObject({
    ok: false,
    output: "Ended by SIGKILL",
    facts: { killed: "SIGKILL" },
  });
  expect(await bash(folder, "no-such-command")).toMatchObject({ ok: false, facts: { exitCode: 127 } });
});

test("standard input is empty", async () => {
  expect(textOf(await bash(tempFolder(), "cat; echo end"))).toBe("end\n");
});

test("long output keeps head and tail, and the whole is kept for the record", async () => {
  const result = await bash(tempFolder(), "seq 1 20000");
  const text = textOf(result);
  expect(text.length).toBeLessThan(31_000);
  expect(text).toMatch(/^1\n2\n/);
  expect(text).toMatch(/\n… \[\d+ characters omitted\] …\n/);
  expect(text).toMatch(/\n20000\n$/);
  expect(result.full).toBe(execFileSync("seq", ["1", "20000"], { encoding: "utf8" }));
});

test("what is kept is capped too", async () => {
  const result = await bash(tempFolder(), "head -c 3000000 /dev/zero | tr '\\0' x");
  expect(typeof result.full === "string" && result.full.length).toBeLessThan(1_000_100);
  expect(result.facts).toMatchObject({ characters: 3_000_000, cut: true });
});

test("the environment is the call's, with its ids, and nothing that changes what bash runs", async () => {
  const folder = tempFolder();
  folder.put("evil.sh", "echo evil\n");
  const env = {
    PATH: process.env.PATH ?? "",
    BASH_ENV: folder.path("evil.sh"),
    ENV: folder.path("evil.sh"),
    "BASH_FUNC_ls%%": "() { echo evil; }",
    SHELLOPTS: "xtrace",
    CDPATH: "/",
    MINE: "kept",
  };
  const result = await bash(folder, 'ls; echo "$MINE $SLUICE_RUN $SLUICE_CALL $CDPATH."', {
    env,
    idempotencyKey: "12345",
  });
  expect(textOf(result)).toBe("evil.sh\nkept r1 12345 .\n");
  expect(textOf(await bash(folder, "env", { env: {} }))).not.toContain("HOME=");
});

test("after the timeout everything is ended and what was said is shown", async () => {
  const result = await bash(tempFolder(), "echo begun; sleep 1000", {}, 300);
  expect(result).toMatchObject({
    ok: false,
    output: { code: "timeout", output: "begun\n" },
    facts: { endedBy: "timeout" },
  });
});

test("a stopped command leaves no process, not even one that left its group", async () => {
  const folder = tempFolder();
  const controller = new AbortController();
  const pending = bash(folder, "setsid sh -c 'echo $$ > away; exec sleep 1000' & echo $$ > here; sleep 1000", {
    signal: controller.signal,
  });
  await expect
    .poll(() => ["away", "here"].every((name) => existsSync(folder.path(name)) && folder.text(name) !== ""))
    .toBe(true);
  controller.abort();
  expect(codeOf(await pending)).toBe("cancelled");
  for (const name of ["away", "here"]) expect(existsSync(`/proc/${folder.text(name).trim()}/cwd`)).toBe(false);
});

test("background processes are ended with the command", async () => {
  const folder = tempFolder();
  const result = await bash(folder, "sleep 1000 & echo $!");
  expect(result).toMatchObject({ ok: true, facts: { backgroundEnded: true } });
  expect(existsSync(`/proc/${textOf(result).trim()}/cwd`)).toBe(false);
});

const subjects = (folder: { readonly root: string }, command: string) =>
  stageIn(folder).judge(tool, { command }).subjects;

test("every command and path of a line becomes a fact for the gate", () => {
  const folder = tempFolder();
  folder.put("src/a.ts", "");
  expect(subjects(folder, "cat src/a.ts | grep x > out/log; CI=1 npm test")).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ kind: "command", argv: ["cat", "src/a.ts"], readOnly: true }),
      expect.objectContaining({ kind: "command", argv: ["npm", "test"], readOnly: false, assignments: [] }),
      { kind: "path", real: folder.path("src/a.ts"), access: "read", from: "operand" },
      { kind: "path", real: folder.path("out/log"), access: "write", from: "redirect" },
    ]),
  );
});

test("operands are judged where their links lead", () => {
  const folder = tempFolder();
  const outside = tempFolder();
  symlinkSync(outside.root, folder.path("link"));
  expect(subjects(folder, "cat link/secret")).toContainEqual({
    kind: "path",
    real: outside.path("secret"),
    access: "read",
    from: "operand",
  });
});

test("a glob is judged by the files it matches, where their links lead, and by the folders it shows names of", () => {
  const folder = tempFolder();
  const outside = tempFolder();
  folder.put("docs/a.md", "");
  symlinkSync(outside.path("key"), folder.path("docs/k.md"));
  const reals = (command: string) =>
    subjects(folder, command)
      .flatMap((subject) => (subject.kind === "path" ? [subject.real] : []))
      .sort();
  expect(reals("cat docs/*.md")).toEqual([folder.path("docs"), folder.path("docs/a.md"), outside.path("key")].sort());
  expect(reals("cat docs/a*")).toEqual([folder.path("docs"), folder.path("docs/a.md")]);
  expect(reals("echo docs/*")).toEqual([folder.path("docs")]);
});

test("what is not of the plain language is opaque, what cannot run as written is refused", () => {
  const folder = tempFolder();
  const kinds = (command: string) => subjects(folder, command).map((subject) => subject.kind);
  for (const line of ['cat "$X"', "echo x > $OUT", "echo 'open", "for x in a; do echo; done", "echo $(ls)"])
    expect(kinds(line)).toEqual(["opaque", "line"]);
  expect(kinds("cat new/../x")).toContain("opaque");
  expect(kinds(`echo ${"x".repeat(17_000)}`)).toEqual(["refused"]);
  expect(kinds("echo \0")).toEqual(["refused"]);
});

test("a link that is turned between judging and running stops the command", async () => {
  const folder = tempFolder();
  const outside = tempFolder();
  outside.put("a", "secret");
  folder.put("a", "public");
  symlinkSync("a", folder.path("link"));
  const call = stageIn(folder).judge(tool, { command: "cat link" });
  rmSync(folder.path("link"));
  symlinkSync(outside.path("a"), folder.path("link"));
  expect(codeOf(await call.run())).toBe("path_changed");
});

/** A command the analyser takes for a reader, that writes: a program of that name in front of PATH. */
function withWritingReader(folder: TestWorkspace, script: string): Partial<ToolCall> {
  const bin = tempFolder();
  bin.put("cat", `#!/bin/sh\n${script}\n`);
  execFileSync("chmod", ["+x", bin.path("cat")]);
  return { ...inReadOnlyStage, env: { PATH: `${bin.root}:${process.env.PATH ?? ""}`, ROOT: folder.root } };
}

test("a change by a command that was judged to only read is an error that names the files", async () => {
  const folder = tempFolder();
  for (const name of ["changed", "removed", "same"]) folder.put(name, "x");
  const options = withWritingReader(folder, "echo read; echo y > changed; rm removed; mkdir made; echo z > made/new");
  const result = await bash(folder, "cat same", options);
  expect(result).toMatchObject({
    ok: false,
    output: {
      code: "unexpected_change",
      files: ["changed (changed)", "made (created)", "made/new (created)", "removed (removed)"],
      exit_code: 0,
      output: "read\n",
    },
    facts: { changedFiles: 4, compared: true },
  });
  expect(folder.text("changed")).toBe("y\n");
});

test("the same change while another call was at work, or by a command that may write, is a note", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  const options = withWritingReader(folder, "echo y >> a");
  const beside = await bash(folder, "cat a", { ...options, othersAtWork: () => true });
  expect(beside).toMatchObject({
    ok: true,
    output: "(no output)\n[The workspace changed while this ran: a (changed)]",
  });
  const granted = await bash(folder, "echo done; echo more >> a", { ...inReadOnlyStage, anyLine: true });
  expect(granted).toMatchObject({ ok: true, facts: { changed: ["a (changed)"] } });
  expect(textOf(granted)).toBe("done\n\n[The workspace changed while this ran: a (changed)]");
});

test("a stage that may write is not compared", async () => {
  const folder = tempFolder();
  const result = await bash(folder, "echo x > a");
  expect(result).toMatchObject({ ok: true, output: "(no output)" });
  expect(result.facts).not.toHaveProperty("changed");
  expect(readdirSync(folder.root)).toEqual(["a"]);
});

test("reading a repository in a stage without writers changes nothing and runs no program of its settings", async () => {
  const folder = tempFolder();
  const git = (...args: readonly string[]) =>
    execFileSync("git", args, { cwd: folder.root, env: { PATH: process.env.PATH, HOME: folder.root }, stdio: "pipe" });
  git("init", "-q");
  folder.put("a", "x");
  git("add", "a");
  git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "one");
  git("config", "core.fsmonitor", `echo ran > ${folder.path("ran")}; false`);
  const result = await bash(folder, "git status --short && git log --oneline", inReadOnlyStage);
  expect(result.ok).toBe(true);
  expect(existsSync(folder.path("ran"))).toBe(false);
});

test("the shell is never one that PATH or the workspace brings", async () => {
  const folder = tempFolder();
  folder.put("bash", "#!/bin/sh\necho evil\n");
  execFileSync("chmod", ["+x", folder.path("bash")]);
  expect(textOf(await bash(folder, "echo good", { env: { PATH: folder.root } }))).toBe("good\n");
});

test("a workspace whose root was swapped for a link is not run in", async () => {
  const outer = tempFolder();
  const outside = tempFolder();
  mkdirSync(outer.path("work"));
  const call = stageIn({ root: outer.path("work") }).judge(tool, { command: "echo x > made" });
  rmSync(outer.path("work"), { recursive: true });
  symlinkSync(outside.root, outer.path("work"));
  const result = await call.run();
  expect(result.ok).toBe(false);
  expect(isJsonObject(result.output) && result.output.code).toBe("path_changed");
  expect(readdirSync(outside.root)).toEqual([]);
});

test("without a bash nothing is run", async () => {
  const missing = bashTool({ shell: "/nowhere/bash" });
  await missing.ready?.();
  const result = await stageIn(tempFolder()).use(missing, { command: "true" });
  expect(codeOf(result)).toBe("spawn_failed");
});

test("the line that runs is the line that was judged, whatever is in it", async () => {
  const folder = tempFolder();
  const line = "printf '%s|' \"a b\" 'c$d' $'e\\'f' \\\\; echo \"$0\"";
  expect(textOf(await bash(folder, line))).toMatch(/^a b\|c\$d\|e'f\|\\\|.*bash\n$/);
});

test("where a sandbox is required and there is none, a call is refused with the reason, and the tool does not fail", async () => {
  const missing = { reason: "no bubblewrap is here", fix: "install it" };
  const nothing = () => Promise.reject(new SluiceError("Session", "sandbox_missing", missing.reason));
  const sandbox = {
    mode: "require",
    wall: undefined,
    isLost: false,
    missing,
    prove: nothing,
    run: nothing,
    watched: nothing,
    wrap: nothing,
  } as const;
  const required = bashTool({ sandbox });
  await required.ready?.();
  const [first] = stageIn(tempFolder()).judge(required, { command: "ls" }).subjects;
  expect(first).toMatchObject({ kind: "refused", reason: expect.stringContaining("no bubblewrap is here") });
});

test("where the sandbox was lost, nothing more is run without it", async () => {
  const missing = { reason: "it was built before", fix: "find out why" };
  const nothing = () => Promise.reject(new Error("not called"));
  const sandbox = {
    mode: "try",
    wall: undefined,
    isLost: true,
    missing,
    prove: async () => undefined,
    run: nothing,
    watched: nothing,
    wrap: nothing,
  } as const;
  const held = bashTool({ sandbox });
  await held.ready?.();
  const [first] = stageIn(tempFolder()).judge(held, { command: "echo $(id)" }).subjects;
  expect(first).toMatchObject({ kind: "refused", reason: expect.stringContaining("can no longer be created") });
});

test("a call is never judged before the shell analyser is loaded", () => {
  expect(() => stageIn(tempFolder()).judge(bashTool(), { command: "ls" })).toThrow("the shell analyser is not loaded");
});
