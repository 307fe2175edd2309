import { chmodSync, existsSync, readdirSync, symlinkSync } from "node:fs";
import { checkPipeline, done, type JsonObject, pipeline, to } from "@sluice/core";
import { script } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type AnyScript, commandSession, node, PRINT_ARGUMENTS, play } from "../support/commands.ts";
import { json } from "../support/run-kit.ts";
import { type TestWorkspace, tempFolder } from "../support/tools.ts";

// Values of a run that try to become code in the commands of its author.

/** What a value creates if a shell, a program or the next template executes it. */
const CANARY = "PWN";
const planted = ({ root }: TestWorkspace): readonly string[] =>
  readdirSync(root).filter((name) => name.startsWith(CANARY));

/** Values that are data, whatever they look like. Every one of them is tried in an argument, a variable and on standard input. */
const VALUES: readonly (readonly [name: string, value: string])[] = [
  ["single quotes", `'; touch ${CANARY}; '`],
  ["double quotes", `"; touch ${CANARY}; "`],
  ["a substitution", `$(touch ${CANARY})`],
  ["a substitution in backticks", `\`touch ${CANARY}\``],
  ["an arithmetic substitution", `$((a[$(touch ${CANARY})]))`],
  ["a process substitution", `<(touch ${CANARY}) >(touch ${CANARY})`],
  ["a variable", `\${IFS}$PATH$HOME$0 $'\\x24(touch ${CANARY})'`],
  ["a newline", `a\ntouch ${CANARY}\n`],
  ["a carriage return and other blanks", `a\r\ntouch ${CANARY}\v\f\u2028touch ${CANARY}\u0085`],
  [
    "separators of commands",
    `a; touch ${CANARY} && touch ${CANARY} || touch ${CANARY} | touch ${CANARY} & touch ${CANARY}`,
  ],
  ["redirections", `a > ${CANARY} 2> ${CANARY}2 << ${CANARY}3`],
  ["globs", `* ?* [a-z]* {a,b} ~ ~root !! !-1`],
  ["a function in a variable", `() { :; }; touch ${CANARY}`],
  ["a format", `%s%n%x%d\\x60touch ${CANARY}\\x60`],
  ["a backslash at the end", `touch ${CANARY}\\`],
  ["a comment", `# \ntouch ${CANARY} #`],
  [
    "quotes of Unicode",
    `\u2018; touch ${CANARY}; \u2019 \uff07; touch ${CANARY}; \uff02 \uff04(touch ${CANARY}) \uff40touch ${CANARY}\uff40`,
  ],
  ["text that runs backwards", `\u202e; touch ${CANARY} \u2066\u200b\ufeff`],
  ["control characters of a terminal", `\u001b]0;touch ${CANARY}\u0007\u001b[2J\u0003\u0004\u0008\u007f`],
  ["characters beyond the basic plane", `\u{1f4a5}\u{10ffff}; touch ${CANARY}`],
  ["assignments", `PATH=. BASH_ENV=${CANARY} touch ${CANARY}`],
  ["a template", `{{ctx.run.input.other}}{{ctx.workspace}}`],
  ["half a template", `{{ctx.run.input`],
  ["an escaped template", `\\{{ctx.run.input.other}} \${ctx.task} <%= touch %>`],
  ["a pattern of replaced text", `$& $1 $$ $\` $' $<other>`],
  ["code of the program's language", `");require("node:fs").writeFileSync("${CANARY}","");("`],
  ["a long list of commands", `$(touch ${CANARY});`.repeat(200)],
  ["JSON", `","env":{"PATH":"."},"command":["touch","${CANARY}"],"__proto__":{"shell":"touch ${CANARY}"}}`],
];

const List = z.object({ parsed: z.array(z.string()) });

describe("a value of a run", () => {
  const listed = script({
    command: [
      ...node(
        `${PRINT_ARGUMENTS.replace("process.argv.slice(1)", "[...process.argv.slice(1), process.env.VALUE, require('node:fs').readFileSync(0, 'utf8')]")}`,
      ),
      "x{{ctx.run.input.value}}",
      "--name={{ctx.run.input.value}}",
      "{{ctx.run.input.value}}{{ctx.run.input.value}}",
    ],
    env: { VALUE: "{{ctx.run.input.value}}" },
    stdin: "{{ctx.run.input.value}}",
  });
  const line = script({
    command: { shell: `printf '%s\\n' "$VALUE" | cksum; cat | cksum; for word in "$VALUE"; do echo word; done` },
    env: { VALUE: "{{ctx.upstream.listed.parsed[3]}}" },
    stdin: "{{ctx.upstream.listed.parsed[3]}}\n",
  });
  const both = pipeline({
    id: "both",
    input: { type: "object" },
    stages: { listed, line },
    initial: "listed",
    next: { listed: () => to("line"), line: ({ output }, ctx) => done(json([ctx.upstream.listed, output.stdout])) },
  });

  test.each(VALUES)("stays data in arguments, variables and standard input: %s", async (_, value) => {
    const session = commandSession();
    const result = await session.run(both, { value, other: "expanded" });
    if (result.status !== "completed") throw new Error(JSON.stringify(result));
    const [first, sums] = z.tuple([List, z.string()]).parse(result.output);
    expect(first.parsed).toEqual([`x${value}`, `--name=${value}`, value + value, value, value]);
    const [own, piped, ...words] = sums.split("\n");
    expect([own, words]).toEqual([piped, ["word"]]);
    expect(planted(session.workspace)).toEqual([]);
  });

  const argument = (...elements: readonly string[]) => script({ command: [...node(PRINT_ARGUMENTS), ...elements] });

  test.each<[string, readonly string[], JsonObject]>([
    ["an option", ["{{ctx.run.input.a}}"], { a: "--eval=1" }],
    ["the end of the options", ["{{ctx.run.input.a}}"], { a: "--" }],
    ["standard input", ["{{ctx.run.input.a}}"], { a: "-" }],
    ["an option behind a value that is empty", ["{{ctx.run.input.a}}{{ctx.run.input.b}}"], { a: "", b: "-rf" }],
    ["an option in two halves", ["{{ctx.run.input.a}}{{ctx.run.input.b}}"], { a: "-", b: "rf" }],
    ["a negative number", ["{{ctx.run.input.a}}"], { a: -1 }],
    ["a NUL that ends the argument", ["a{{ctx.run.input.a}}"], { a: "b\0 c" }],
    ["the prototype of an object", ["{{ctx.run.input.constructor}}"], { a: 1 }],
    ["the length of a text", ["{{ctx.run.input.a.length}}"], { a: "text" }],
  ])("does not start a command as %s", async (_, elements, input) => {
    const { output, session } = await play(argument(...elements), input);
    expect(output).toMatchObject({ code: "script", detail: { cause: "input", exitCode: null } });
    expect(planted(session.workspace)).toEqual([]);
  });

  test("that is longer than an argument may be fails its state, and is not cut", async () => {
    const { output } = await play(argument("x{{ctx.run.input.a}}"), { a: "y".repeat(3_000_000) });
    expect(output).toMatchObject({ code: "script", detail: { cause: "spawn" } });
    expect(JSON.stringify(output).length).toBeLessThan(2_000);
  });

  test("that is a list or an object stays one argument", async () => {
    const input = { list: ["-c", `touch ${CANARY}`], object: { "-c": `touch ${CANARY}` } };
    const { output } = await play(argument("{{ctx.run.input.list}}", "{{ctx.run.input.object}}"), input);
    expect(output).toMatchObject({ parsed: [JSON.stringify(input.list), JSON.stringify(input.object)] });
  });

  test("with half a character of Unicode stays one argument, with a replacement for it", async () => {
    const { output } = await play(argument("x{{ctx.run.input.a}}"), { a: `\ud800; touch ${CANARY}` });
    expect(output).toMatchObject({ parsed: [`x\ufffd; touch ${CANARY}`] });
  });
});

describe("a name", () => {
  const program = "console.log(JSON.stringify(process.env))";
  test("of an input field never becomes the name of a variable", async () => {
    const names = ["BASH_ENV", "LD_PRELOAD", "NODE_OPTIONS", "PATH", "A=B", "SLUICE_RUN"];
    const input = Object.fromEntries(names.map((name) => [name, `${CANARY}-value`]));
    const { output } = await play(
      script({ command: node(program), stdin: "input", env: { ALL: "{{ctx.run.input}}" } }),
      input,
    );
    const { parsed } = z.object({ parsed: z.record(z.string(), z.string()) }).parse(output);
    const { ALL, ...rest } = parsed;
    expect(ALL).toContain(`${CANARY}-value`);
    expect(Object.values(rest).join("\n")).not.toContain(`${CANARY}-value`);
  });

  const settable = (env: Readonly<Record<string, string>>) => problems({ command: ["true"], env });

  test.each([
    ...["BASH_ENV", "ENV", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH", "GLOBIGNORE"],
    ...[
      "LD_PRELOAD",
      "LD_AUDIT",
      "LD_LIBRARY_PATH",
      "DYLD_INSERT_LIBRARIES",
      "SLUICE_RUN",
      "BASH_FUNC_ls%%",
      "A=B",
      "",
    ],
  ])("of a variable that shells and loaders obey is refused, even with a fixed value: %s", (name) => {
    expect(settable({ [name]: "x" })).not.toEqual([]);
  });

  test.each([
    ...[
      "PATH",
      "NODE_OPTIONS",
      "NODE_PATH",
      "PYTHONPATH",
      "PYTHONSTARTUP",
      "PERL5OPT",
      "PERL5LIB",
      "RUBYOPT",
      "RUBYLIB",
    ],
    ...[
      "GIT_SSH_COMMAND",
      "GIT_CONFIG_COUNT",
      "GIT_EXTERNAL_DIFF",
      "EDITOR",
      "PAGER",
      "JAVA_TOOL_OPTIONS",
      "CLASSPATH",
    ],
    ...["HOME", "XDG_CONFIG_HOME", "SHELL", "ZDOTDIR", "PERL5DB", "PYTHONUSERBASE", "PYTHONBREAKPOINT", "LESSOPEN"],
    ...["MANPAGER", "SSH_ASKPASS", "SUDO_ASKPASS", "RUSTC_WRAPPER", "RUSTC", "CARGO_HOME", "MAKEFLAGS", "GNUMAKEFLAGS"],
    ...[
      "npm_config_script_shell",
      "NPM_CONFIG_NODE_OPTIONS",
      "npm_config_userconfig",
      "JDK_JAVA_OPTIONS",
      "_JAVA_OPTIONS",
    ],
    ...["MAVEN_OPTS", "GRADLE_OPTS", "DOTNET_STARTUP_HOOKS", "LUA_INIT", "LUA_PATH", "PHPRC", "PHP_INI_SCAN_DIR"],
    ...["GEM_PATH", "GEM_HOME", "BUNDLE_GEMFILE", "GOFLAGS", "CC", "CXX", "TERMINFO", "GCONV_PATH", "OPENSSL_CONF"],
    ...["OPENSSL_MODULES", "KUBECONFIG", "DOCKER_CONFIG", "AWS_CONFIG_FILE", "GNUPGHOME", "TAR_OPTIONS"],
  ])("of a variable that decides which code runs takes no value of a run: %s", (name) => {
    expect(settable({ [name]: "{{ctx.run.input.x}}" })).toEqual([expect.stringMatching(/decides which code runs/)]);
    expect(settable({ [name]: "fixed" })).toEqual([]);
  });

  test.each(["VERSION", "TITLE", "RELEASE_NOTES", "NODE_ENV", "GITHUB_SHA", "NPM_TAG", "TARGET", "HOMEPAGE", "PATHS"])(
    "of an ordinary variable takes values of a run: %s",
    (name) => {
      expect(settable({ [name]: "{{ctx.run.input.x}}" })).toEqual([]);
    },
  );
});

/** What is wrong with the definition of a script. */
function problems(options: AnyScript): readonly string[] {
  const stages = { run: script(options) };
  const found = checkPipeline({
    id: "p",
    input: { type: "object" },
    stages,
    initial: "run",
    next: { run: () => done(null) },
  });
  return found.map(({ path, message }) => `${path} ${message}`);
}

describe("a command of the author", () => {
  test.each<[string, readonly string[]]>([
    ["a shell", ["sh", "-c", "echo {{ctx.run.input.x}}"]],
    ["a shell by its path", ["/bin/bash", "-ec", "echo {{ctx.run.input.x}}"]],
    ["a shell with options", ["bash", "--norc", "-o", "pipefail", "-c", "{{ctx.run.input.x}}"]],
    ["a shell behind another program", ["env", "A=1", "sh", "-c", "echo {{ctx.run.input.x}}"]],
    ["a shell behind a time limit", ["timeout", "5", "zsh", "-c", "echo '{{ctx.run.input.x}}'"]],
    ["node", ["node", "-e", "console.log('{{ctx.run.input.x}}')"]],
    ["node that prints", ["node", "--no-warnings", "--print", "{{ctx.run.input.x}}"]],
    ["node with an option that has its value", ["node", "--eval={{ctx.run.input.x}}"]],
    ["Python", ["python3", "-c", "print('{{ctx.run.input.x}}')"]],
    ["Perl", ["perl", "-ne", "print '{{ctx.run.input.x}}'"]],
    ["Ruby", ["ruby", "-e", "puts '{{ctx.run.input.x}}'"]],
    ["PHP", ["php", "-r", "echo '{{ctx.run.input.x}}';"]],
    ["awk", ["awk", '{ print "{{ctx.run.input.x}}" }']],
    ["sed", ["sed", "-e", "s/a/{{ctx.run.input.x}}/"]],
    ["a line in one argument of env", ["env", "-S", "sh -c {{ctx.run.input.x}}"]],
    ["a program behind env", ["env", "-i", "A=1", "{{ctx.run.input.x}}"]],
    ["a variable that env sets", ["env", "LD_PRELOAD={{ctx.run.input.x}}", "git"]],
    ["a program behind a time limit", ["timeout", "-k", "9", "5", "{{ctx.run.input.x}}"]],
    ["a program behind sudo", ["sudo", "-u", "deploy", "{{ctx.run.input.x}}"]],
    ["a package that is installed to run", ["npx", "-y", "{{ctx.run.input.x}}"]],
    ["a line on another machine", ["ssh", "host", "deploy", "{{ctx.run.input.x}}"]],
    ["a goal of make, which may be a setting", ["make", "check", "{{ctx.run.input.x}}"]],
    ["a setting of make, whose value it expands", ["/usr/bin/gmake", "check", "NAME={{ctx.run.input.x}}"]],
    ["a script file", ["bash", "scripts/{{ctx.run.input.x}}.sh"]],
    ["a module of Python", ["python3", "-m", "{{ctx.run.input.x}}"]],
    ["a module that node loads first", ["node", "-r", "./{{ctx.run.input.x}}", "a.js"]],
  ])("cannot make a value part of a program: %s", (_, command) => {
    expect(problems({ command })).toEqual([expect.stringMatching(/^stages\.run\.command\[\d\] /)]);
  });

  test.each<[string, readonly string[]]>([
    ["an argument of a shell's line", ["sh", "-c", 'echo "$1"', "sh", "{{ctx.run.input.x}}"]],
    ["an argument of a program text", ["node", "-e", "console.log(process.argv[1])", "{{ctx.run.input.x}}"]],
    ["an argument of a script", ["python3", "tools/print.py", "{{ctx.run.input.x}}"]],
    ["the value of a program's own -c", ["gh", "release", "-c", "{{ctx.run.input.x}}"]],
    ["the message of a commit", ["git", "commit", "-m", "{{ctx.run.input.x}}"]],
    ["an argument of a program behind env", ["env", "-i", "deploy", "{{ctx.run.input.x}}"]],
    ["an argument of a program behind a time limit", ["timeout", "5", "deploy", "{{ctx.run.input.x}}"]],
    ["an argument of a package", ["npx", "semver", "{{ctx.run.input.x}}"]],
    ["a variable of awk", ["awk", "-v", "x={{ctx.run.input.x}}", "{ print x }"]],
    [
      "a shell with options, as an argument",
      ["bash", "-eo", "pipefail", "-c", 'echo "$1"', "--", "{{ctx.run.input.x}}"],
    ],
    ["a file for sed", ["sed", "-e", "s/a/b/", "{{ctx.run.input.x}}"]],
    ["a file of a script with an option of the same name", ["node", "build.js", "-e", "{{ctx.run.input.x}}"]],
  ])("may give a value to a program: %s", (_, command) => {
    expect(problems({ command })).toEqual([]);
  });

  test.each<[readonly string[], string]>([
    [["sh"], "echo {{ctx.run.input.x}}"],
    [["bash", "-e"], "input"],
    [["node"], "upstream"],
    [["python3", "-"], "{{ctx.run.input.x}}"],
  ])("has no program that reads its code from values: %j", (command, stdin) => {
    expect(problems({ command, stdin })).toEqual([expect.stringMatching(/^stages\.run\.stdin has a value/)]);
    expect(problems({ command: [...command, "script"].filter((word) => word !== "-"), stdin })).toEqual([]);
  });

  test.each(["./{{ctx.run.input.x}}", "{{ctx.run.input.x}}", "/usr/bin/{{ctx.run.input.x}}"])(
    "is no value of a run: %s",
    (program) => {
      expect(problems({ command: [program] })).toEqual([expect.stringMatching(/the program is fixed/)]);
    },
  );

  test.each(["{{ctx.run.input.x}}", "packages/{{ctx.run.input.x}}"])(
    "runs in no folder that a value names: %s",
    (cwd) => {
      expect(problems({ command: ["true"], cwd })).toEqual([expect.stringMatching(/working directory is fixed/)]);
    },
  );
});

describe("a program", () => {
  const TOKEN = { RELEASE_CODE: "Zq81 c4stle/gate?9" };
  const printing = (workspace: TestWorkspace, name: string): void => {
    workspace.put(name, `#!/bin/sh\necho "$RELEASE_CODE" > ${workspace.path(CANARY)}\necho mine\n`);
    chmodSync(workspace.path(name), 0o755);
  };

  test.each<[string, (root: string) => string]>([
    ["a folder of the workspace", (root) => `${root}/node_modules/.bin:${process.env.PATH}`],
    ["a folder that is relative", () => `node_modules/.bin:${process.env.PATH}`],
    ["an empty entry", () => `:${process.env.PATH}`],
    ["the workspace, and has nothing else", (root) => `${root}:.:`],
    ["nothing at all", () => ""],
    ["the current folder", () => `.:${process.env.PATH}`],
    ["a folder that leads back to the workspace", (root) => `/tmp/../${root}/node_modules/.bin:${process.env.PATH}`],
  ])(
    "with a secret is not one that an agent wrote into the workspace, although PATH begins with %s",
    async (_, pathOf) => {
      const workspace = tempFolder();
      for (const name of ["printf", "node_modules/.bin/printf"]) printing(workspace, name);
      const env = { ...TOKEN, PATH: pathOf(workspace.root) };
      const state = script({ command: ["printf", "%s", "system"], secrets: ["RELEASE_CODE"] });
      const { output } = await play(state, {}, { workspace, env });
      expect(output).toMatchObject({ exitCode: 0, stdout: "system" });
      // Nor is one that a shell line or a program looks up itself.
      const line = script({ command: { shell: "env printf '%s' system" }, secrets: ["RELEASE_CODE"] });
      expect((await play(line, {}, { workspace, env })).output).toMatchObject({ exitCode: 0, stdout: "system" });
      expect(planted(workspace)).toEqual([]);
    },
  );

  test("with a secret is not one behind a link outside that leads into the workspace", async () => {
    const workspace = tempFolder();
    const beside = tempFolder();
    printing(workspace, "bin/printf");
    symlinkSync(workspace.path("bin"), beside.path("bin"));
    const env = { ...TOKEN, PATH: `${beside.path("bin")}:${process.env.PATH}` };
    const state = script({ command: ["printf", "%s", "system"], secrets: ["RELEASE_CODE"] });
    expect((await play(state, {}, { workspace, env })).output).toMatchObject({ stdout: "system" });
    expect(existsSync(workspace.path(CANARY))).toBe(false);
  });

  test("with a secret that is in the workspace only is not found, and the failure says how to name it", async () => {
    const workspace = tempFolder();
    printing(workspace, "node_modules/.bin/own-tool");
    const env = { ...TOKEN, PATH: `${workspace.path("node_modules/.bin")}:${process.env.PATH}` };
    const state = script({ command: ["own-tool"], secrets: ["RELEASE_CODE"] });
    expect((await play(state, {}, { workspace, env })).output).toMatchObject({
      code: "script",
      message: expect.stringMatching(/ENOENT.*name such a program by its path/),
      detail: { cause: "spawn" },
    });
    expect(planted(workspace)).toEqual([]);
  });

  test("with a secret may be one of the workspace that its author names by its path", async () => {
    const workspace = tempFolder();
    printing(workspace, "tools/publish");
    const state = script({ command: ["./tools/publish"], secrets: ["RELEASE_CODE"] });
    expect((await play(state, {}, { workspace, env: TOKEN })).output).toMatchObject({ stdout: "mine" });
  });

  test("without a secret may be one that is installed in the workspace", async () => {
    const workspace = tempFolder();
    printing(workspace, "node_modules/.bin/own-tool");
    const env = { PATH: `${workspace.path("node_modules/.bin")}:${process.env.PATH}` };
    expect((await play(script({ command: ["own-tool"] }), {}, { workspace, env })).output).toMatchObject({
      stdout: "mine",
    });
  });
});
