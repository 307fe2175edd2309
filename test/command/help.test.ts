import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { desk, printed, textAt } from "../support/command.ts";

const COMMANDS = "run demo runs show resume fork answer cancel audit replay report export prune doctor".split(" ");

describe("help", () => {
  test("every command has a help with a description, its options and examples, on stdout and exit 0", async () => {
    const { sluice } = desk();
    const all = await Promise.all(COMMANDS.map((command) => sluice([command, "--help"])));
    for (const [index, { code, stdout, stderr }] of all.entries()) {
      expect([COMMANDS[index], code, stderr]).toEqual([COMMANDS[index], 0, ""]);
      expect(stdout).toMatch(new RegExp(`^Usage: sluice ${COMMANDS[index]}`));
      expect(stdout).toContain("--output-format <format>");
      expect(stdout).toContain("Examples:");
    }
  });

  test("the help of the program lists every command with its summary", async () => {
    const { code, stdout } = await desk().sluice(["--help"]);
    expect(code).toBe(0);
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command} {2,}\\w`, "m"));
  });

  test("sluice help <command> is the help of that command, and of an unknown one exit 2", async () => {
    const { sluice } = desk();
    const [named, flag, unknown] = await Promise.all([
      sluice(["help", "fork"]),
      sluice(["fork", "--help"]),
      sluice(["help", "frok"]),
    ]);
    expect(named).toEqual(flag);
    expect([unknown.code, unknown.stdout]).toEqual([2, ""]);
    expect(unknown.stderr).toContain("Did you mean fork?");
  });

  test("the help of run names every option of it, and --wait with an equals sign", async () => {
    const { stdout } = await desk().sluice(["help", "run"]);
    const options =
      "model headless output-format input cwd mode allow max-parallel store adopt-store fail-on-denied trust no-config";
    for (const option of options.split(" ")) expect(stdout).toContain(`--${option}`);
    expect(stdout).toContain("--wait[=duration]");
    expect(stdout).toContain("130 and 143");
  });

  test("--help and --version load nothing but the command's own files and commander", async () => {
    const { sluice, write } = desk();
    const hooks = `
      import { registerHooks } from "node:module";
      import { appendFileSync } from "node:fs";
      registerHooks({ load(url, context, next) { appendFileSync(process.env.LOADED, url + "\\n"); return next(url, context); } });`;
    const file = write("hooks.mjs", hooks);
    for (const option of ["--help", "--version"]) {
      const loaded = write(`loaded${option}.txt`, "");
      const { code } = await sluice([option], { node: ["--import", file], env: { LOADED: loaded } });
      expect(code).toBe(0);
      const urls = readFileSync(loaded, "utf8").trim().split("\n");
      const own = ["node:", "file:", "data:"];
      const others = urls.filter(
        (url) => url.includes("/node_modules/") || !own.some((start) => url.startsWith(start)),
      );
      expect(others.filter((url) => !url.includes("/commander/"))).toEqual([]);
      expect(urls.filter((url) => /\/packages\/(core|stages|sqlite)\//.test(url))).toEqual([]);
      expect(urls).not.toContain("node:sqlite");
    }
  });

  test("--version is the package's", async () => {
    const manifest = JSON.parse(readFileSync(join(import.meta.dirname, "../../packages/cli/package.json"), "utf8"));
    expect(await desk().sluice(["--version"])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: "" });
  });
});

describe("arguments that are invalid", () => {
  test("sluice alone prints its help to stderr and is exit 2 without a terminal", async () => {
    const { code, stdout, stderr } = await desk().sluice([]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("Usage: sluice");
  });

  test("an unknown command and an unknown option are exit 2 with a suggestion", async () => {
    const { sluice } = desk();
    const [command, option] = await Promise.all([sluice(["rnu"]), sluice(["run", "codeReview", "x", "--modle", "y"])]);
    expect([command.code, option.code]).toEqual([2, 2]);
    expect(command.stderr).toContain("Did you mean run?");
    expect(command.stderr).toContain("sluice --help");
    expect(option.stderr).toMatch(/Did you mean one of .*--model/);
    expect(option.stderr).toContain("sluice run --help");
    expect(command.stdout + option.stdout).toBe("");
  });

  test("with a format for programs the same is one object with a null run id", async () => {
    const { sluice } = desk();
    const report = printed(await sluice(["run", "codeReview", "--nonsense", "--output-format", "json"]));
    expect(report).toMatchObject({ runId: null, status: "failed", output: null, stages: [], denied: [] });
    expect(textAt(report, "error", "code")).toBe("usage");
  });

  test.each([
    [["run", "codeReview", "x", "--max-parallel", "0"], "--max-parallel"],
    [["run", "codeReview", "x", "--wait=soon"], "30m"],
    [["run", "codeReview", "x", "--mode", "careless"], "ask, allowlist, yolo"],
    [["run", "codeReview", "x", "--output-format", "xml"], "stream-json"],
    [["run", "codeReview", "x", "--allow", "Read"], "--mode allowlist"],
    [["answer", "r1", "x", "perhaps"], "approve, deny, defer"],
    [["answer", "r1", "x", "approve", "--digest", "12345"], "6 to 64 hex digits"],
    [["answer", "r1", "x", "approve", "--digest", "looked-at"], "6 to 64 hex digits"],
    [["show"], "run"],
  ])("%j is exit 2 and lists what is allowed", async (args, hint) => {
    const { code, stdout, stderr } = await desk().sluice(args, { env: { SLUICE_MODEL: "scripted:none.json" } });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(hint);
  });
});
