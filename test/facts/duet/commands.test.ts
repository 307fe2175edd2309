import { existsSync } from "node:fs";
import { done, type Json, pipeline, to } from "@sluice/core";
import { poll, script } from "@sluice/stages";
import { describe, expect } from "vitest";
import { z } from "zod";
import { type AnyScript, commandSession, node, only, PRINT_ARGUMENTS, play } from "../../support/commands.ts";
import { defect, fact, ours } from "../../support/duet.ts";
import { eventually, json } from "../../support/run-kit.ts";
import { tempFolder } from "../../support/tools.ts";

// Templates of commands and what commands print.

const echo = (...values: readonly string[]): AnyScript => ({ command: [...node(PRINT_ARGUMENTS), ...values] });
const print = (text: string) => node(`process.stdout.write(${JSON.stringify(text)})`);
const parsedOf = (output: Json): Json => z.object({ parsed: z.json() }).parse(output).parsed;

describe("templates", () => {
  ours(
    31,
    "a template reads a nested path, other values than text as JSON, and one that leads nowhere fails the state",
    async () => {
      const input = { deep: { list: ["a", { b: 2 }], no: false } };
      const values = ["{{ctx.run.input.deep.list[0]}}", "{{ctx.run.input.deep.list[1]}}", "{{ctx.run.input.deep.no}}"];
      expect((await play(script(echo(...values)), input)).output).toMatchObject({ parsed: ["a", '{"b":2}', "false"] });
      const { output } = await play(script(echo("{{ctx.run.input.missing}}")), input);
      expect(output).toMatchObject({ code: "script", detail: { cause: "input" } });
    },
  );

  defect(
    "D3",
    "a value of a run is never read by a shell, in an argument, a variable or on standard input",
    async () => {
      const input = { x: "a'; echo PWNED; touch pwned; echo 'b" };
      const template = "{{ctx.run.input.x}}";
      const states = [
        script(echo(template)),
        script({ command: { shell: 'printf %s "$X"' }, env: { X: template } }),
        script({ command: { shell: "cat" }, stdin: template }),
      ];
      for (const state of states) {
        const { output, session } = await play(state, input);
        expect(JSON.stringify(output)).toContain("echo PWNED");
        expect(existsSync(session.workspace.path("pwned"))).toBe(false);
      }
    },
  );
});

describe("output", () => {
  fact(32, "a script parses any JSON and any text, a poll only an object", async () => {
    const cases: readonly (readonly [string, Json, Json])[] = [
      ['{"a":1}', { a: 1 }, { a: 1 }],
      ["[1]", [1], {}],
      ["7", { result: 7 }, {}],
      ["text", { result: "text" }, {}],
      ["", {}, {}],
    ];
    for (const [text, byScript, byPoll] of cases) {
      expect(parsedOf((await play(script({ command: print(text) }))).output)).toEqual(byScript);
      expect(parsedOf((await play(poll({ command: print(text), every: "1m" }))).output)).toEqual(byPoll);
    }
  });

  fact(33, "codes of success are honoured, and a failure has what was printed", async () => {
    const program = "console.log('out'); console.error('err'); process.exitCode = 3";
    expect((await play(script({ command: node(program), successCodes: [3] }))).output).toMatchObject({ exitCode: 3 });
    const { output } = await play(script({ command: node(program) }));
    expect(output).toMatchObject({ detail: { exitCode: 3, stdout: "out", stderr: "err" } });
  });

  fact(34, "a command that is cancelled ends, and the record has what it had printed", async () => {
    const session = commandSession();
    const program =
      "console.log('half'); require('node:fs').writeFileSync('on', ''); setInterval(() => undefined, 1000)";
    const run = session.start(only(script({ command: node(program) })), {});
    await eventually(() => existsSync(session.workspace.path("on")), "the start");
    await run.cancel("enough");
    expect(await run).toMatchObject({ status: "cancelled" });
    const [journal] = await session.host.journal(run.runId);
    const record = journal?.records.find(({ stepId, phase }) => stepId.endsWith("/command") && phase === "done");
    expect(JSON.parse(String(record?.value))).toMatchObject({ kind: "cancelled", stdout: "half" });
  });

  fact(35, "a state that completed forwards what it printed, as text and parsed", async () => {
    const build = script({ command: print('{"version":"1.2.3"}'), output: z.object({ version: z.string() }) });
    const tag = script({
      ...echo("{{ctx.upstream.build.parsed.version}}", "{{ctx.upstream.build.stdout}}", "{{ctx.input.version}}"),
      inputSchema: z.object({ version: z.string() }),
    });
    const built = pipeline({
      id: "built",
      input: { type: "object" },
      stages: { build, tag },
      initial: "build",
      next: { build: ({ output }) => to("tag", output.parsed), tag: ({ output }) => done(output.parsed) },
    });
    const output = ["1.2.3", '{"version":"1.2.3"}', "1.2.3"];
    expect(await commandSession().run(built, {})).toMatchObject({ output });
  });

  fact(36, "a long output is cut in the middle, all of it is in a file, and a short one is untouched", async () => {
    const { output, session } = await play(
      script({ command: node("console.log('a'.repeat(10000) + 'b'.repeat(30000))") }),
    );
    const { stdout, stdoutFile, parsed } = z
      .object({ stdout: z.string(), stdoutFile: z.string(), parsed: z.object({ result: z.string() }) })
      .parse(output);
    expect(stdout).toMatch(
      /^a{4800}\n… \[24000 characters omitted; all of it is in \.sluice\/output\/\S+\] …\nb{11200}$/,
    );
    expect(parsed.result).toBe(stdout);
    expect(session.workspace.text(stdoutFile)).toHaveLength(40_000);
    const short = await play(script({ command: print("a".repeat(16_000)) }));
    expect(short.output).toMatchObject({ stdout: "a".repeat(16_000) });
    expect(short.output).not.toHaveProperty("stdoutFile");
  });

  defect("D11", "a long JSON value does not reach other states by its parsed value", async () => {
    const program = "console.log(JSON.stringify({ entries: Array.from({ length: 20000 }, (_, at) => 'entry ' + at) }))";
    for (const state of [script({ command: node(program) }), poll({ command: node(program), every: "1m" })])
      expect(JSON.stringify((await play(state)).output).length).toBeLessThan(40_000);
  });

  fact(
    37,
    "a relative working directory is one of the workspace, an absolute one is itself, and without one it is the workspace",
    async () => {
      const workspace = tempFolder();
      workspace.put("packages/a/file", "");
      const folders: readonly (readonly [AnyScript["cwd"], string])[] = [
        [undefined, workspace.root],
        ["packages/a", workspace.path("packages/a")],
        ["/", "/"],
      ];
      for (const [cwd, expected] of folders) {
        const options = { command: ["/bin/pwd"], ...(cwd === undefined ? {} : { cwd }) };
        for (const state of [script(options), poll({ ...options, every: "1m" })])
          expect((await play(state, {}, { workspace })).output).toMatchObject({ stdout: expected });
      }
    },
  );
});

describe("failures", () => {
  const failing = script({ command: node("console.log('out'); console.error('err'); process.exitCode = 3") });

  defect("D1", "a route reads the exit code and both streams of a script that failed", async () => {
    expect((await play(failing)).output).toMatchObject({
      message: expect.stringMatching(/exited with code 3$/),
      detail: { exitCode: 3, stdout: "out", stderr: "err" },
    });
  });

  defect("D2", "a script that failed leads on, by a function or a row", async () => {
    const repair = script({ command: ["true"], inputSchema: z.object({ exitCode: z.number() }) });
    const common = { input: { type: "object" }, stages: { failing, repair }, initial: "failing" } as const;
    const coded = z.object({ exitCode: z.number() });
    const byFunction = pipeline({
      ...common,
      id: "by-function",
      next: {
        failing: { completed: () => done("passed"), failed: ({ detail }) => to("repair", coded.parse(detail)) },
        repair: (_, ctx) => done(json(ctx.input)),
      },
    });
    const byRow = pipeline({
      ...common,
      id: "by-row",
      transitions: [
        { from: "failing", on: "success", to: done("passed") },
        {
          from: "failing",
          on: "failure",
          to: "repair",
          input: (result) => coded.parse("detail" in result ? result.detail : {}),
        },
        { from: "repair", on: "success", to: done("repaired") },
      ],
    });
    expect(await commandSession().run(byFunction, {})).toMatchObject({ status: "completed", output: { exitCode: 3 } });
    expect(await commandSession().run(byRow, {})).toMatchObject({ status: "completed", output: "repaired" });
  });
});
