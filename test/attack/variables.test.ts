// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { symlinkSync } from "node:fs";
import { defineTool, done, type Json, pipeline, type StateEnvironment, type Subject, stage } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { pipelineParts } from "../../packages/core/src/definition/fingerprint/fingerprint.ts";
import { partChanges } from "../../packages/core/src/definition/fingerprint/part-changes.ts";
import { type Attack, type Attacked, approving, attack, bash, eventData, read, scene } from "../support/attack.ts";
import { hasWall } from "../support/walls.ts";

// Variables that a stage sets for its processes, or takes from them.

const VALUE = "postgres://db.internal/staging";
const variables: StateEnvironment = { set: { DATABASE_URL: VALUE, MODE: "staging" }, block: ["PROD_URL"] };
const env = { PATH: process.env.PATH, PROD_URL: "of production", MODE: "of the session", KEPT: "kept" };
/** Says which variables a process has, without their values. */
const has = (name: string, value: string): string =>
  `node -e 'console.log(process.env.${name} === process.argv[1] ? "yes" : "no")' '${value}'`;
const isThere = (name: string): string => `node -e 'console.log("${name}" in process.env ? "there" : "gone")'`;
const lines = [has("MODE", "staging"), has("KEPT", "kept"), isThere("DATABASE_URL"), isThere("PROD_URL")];

describe.each([
  ["off", { allowedTools: ["Read", "Edit", "Write", "Bash"] }],
  ["off", { allowedTools: ["Bash(node *)", "Read", "Write"] }],
  ["off", { allowedTools: ["Read"], interactors: [approving()] }],
  ["off", { mode: "yolo" }],
  ...(hasWall() ? [["require", { allowedTools: ["Read", "Bash"] }] as const] : []),
] as const satisfies readonly (readonly ["off" | "require", Attack])[])("sandbox %s, %o", (sandbox, given) => {
  test("processes get what the stage sets, and not what it blocks", async () => {
    const { outputs } = await attack(scene(), { ...given, sandbox, env, variables, calls: lines.map(bash) });
    expect(outputs).toEqual(["yes\n", "yes\n", "there\n", "gone\n"]);
  });
});

const plain: Attack = { allowedTools: ["Read", "Bash"], env, variables };

test.each([
  "echo $DATABASE_URL",
  'echo "${DATABASE_URL}"',
  "ls $DATABASE_URL",
  "cat <<<x$DATABASE_URL",
  "cat < $DATABASE_URL",
  "cd $DATABASE_URL && ls",
  "CI=$DATABASE_URL ls",
  "env CI=$DATABASE_URL ls",
  "sh -c 'ls $DATABASE_URL'",
  "find . -name $DATABASE_URL",
  "export CI=$DATABASE_URL; ls $CI",
  "echo a.txt | xargs -I {} ls {} $DATABASE_URL",
])("%s: the value is not recorded where the line is judged", async (line) => {
  const { outcomes, recorded, sent, shown } = await attack(scene(), { ...plain, calls: [bash(line)] });
  expect(outcomes).toEqual(["no_interactor"]);
  for (const text of [recorded, sent, shown]) expect(text).not.toContain(VALUE);
});

test("a model that has the name still has the command run, by a person's grant or behind a wall", async () => {
  const line = 'test "$MODE" = staging && echo set';
  const granted = await attack(scene(), { ...plain, calls: [bash(line)], interactors: [approving()] });
  expect(granted.outputs).toEqual(["set\n"]);
  if (!hasWall()) return;
  const walled = await attack(scene(), { ...plain, calls: [bash(line)], sandbox: "require" });
  expect(walled.outputs).toEqual(["set\n"]);
});

test("a value that looks like a key is redacted in what commands print", async () => {
  const secret = "sk-4f9a8b7c6d5e4f3a2b1c";
  const { outputs, recorded } = await attack(scene(), {
    allowedTools: ["Bash", "Write", "Read"],
    env,
    variables: { set: { API_TOKEN: secret } },
    calls: [bash("printenv API_TOKEN")],
  });
  expect(outputs).toEqual([expect.stringContaining("[redacted:")]);
  expect(recorded).not.toContain(secret);
});

describe("a known secret that commands receive", () => {
  const SECRET = "abcDEF0123456789ghiJKL";
  const QUOTED = "tok9Zx'Qa\"77/b+Lq3456";
  const passing: Attack = {
    allowedTools: ["Read", "Edit(src/**)", "Bash(gh api *)", "Bash(echo *)", "Bash(node *)"],
    env: { PATH: process.env.PATH, GH_TOKEN: SECRET, OTHER_TOKEN: QUOTED },
    passEnv: ["GH_TOKEN"],
  };
  /** A workspace in which names hold the secret. */
  const named = () => {
    const here = scene();
    here.put(`d-${SECRET}/in.txt`, "in\n");
    here.put(`${SECRET}.txt`, "n\n");
    symlinkSync(`d-${SECRET}`, here.path("ln"));
    return here;
  };
  const hidden = ({ recorded, sent, shown }: Attacked): void => {
    for (const text of [recorded, sent, shown])
      for (const secret of [SECRET, QUOTED, JSON.stringify(QUOTED).slice(1, -1)]) expect(text).not.toContain(secret);
  };

  test.each([
    'gh api "$GH_TOKEN"',
    'echo "t $GH_TOKEN"',
    "echo $GH_TOKEN",
    'gh auth login "$GH_TOKEN"',
    'cat "$GH_TOKEN"',
    'ls > "$GH_TOKEN"',
    'cat < "x$GH_TOKEN"',
    'X="$GH_TOKEN"; echo a',
    'env X="$GH_TOKEN" node x.js',
    "sh -c 'echo $GH_TOKEN'",
    "ls */",
    "echo *",
    "cd d-* && ls",
    "ls ln/*",
    "cat ln/in.txt",
    "node x.js > ln/out.txt",
    "echo 'abcDEF01234''56789ghiJKL'",
    `cat '${QUOTED.replaceAll("'", `'\\''`)}'`,
  ])("%s: no word, path or request holds it", async (line) => {
    hidden(await attack(named(), { ...passing, calls: [bash(line)] }));
    hidden(await attack(named(), { ...passing, calls: [bash(line)], allowedTools: ["Bash", "Read"] }));
  });

  test("no path of Read, Edit, Glob and Grep holds it, and a call through a link to such a path says why it did not run", async () => {
    const after = await attack(named(), {
      ...passing,
      allowedTools: ["Read", "Edit(src/**)", "Glob", "Grep"],
      calls: [
        read("ln/in.txt"),
        ["Edit", { file_path: "ln/in.txt", old_string: "in", new_string: "on" }],
        ["Glob", { pattern: "**/*", path: "ln" }],
        ["Grep", { pattern: "in", path: "ln" }],
      ],
    });
    hidden(after);
    expect(after.outcomes).toEqual(["limit", "limit", "limit", "limit"]);
    expect(JSON.stringify(after.outputs[0])).toContain("holds a known secret");
  });

  test("a call of a tool of one's own that declares it does not run, and its reasons are masked", async () => {
    const declaring = (name: string, ...subjects: readonly Subject[]) =>
      defineTool({
        name,
        description: name,
        input: z.object({}),
        effect: "read",
        subjects: () => subjects,
        execute: () => Promise.resolve({ ok: true, output: "ran" }),
      });
    const after = await attack(scene(), {
      ...passing,
      allowedTools: ["Host", "Opaque"],
      tools: [
        declaring("Host", { kind: "host", host: `${SECRET}.example` }),
        declaring("Opaque", { kind: "opaque", reason: `with ${SECRET}` }),
      ],
      calls: [
        ["Host", {}],
        ["Opaque", {}],
      ],
    });
    hidden(after);
    expect(after.outcomes).toEqual(["limit", "no_interactor"]);
    expect(after.recorded).toContain("with [redacted:GH_TOKEN]");
  });

  test("a command has it in its environment, and a line with its variable runs where any line may, or by a grant", async () => {
    const line = 'test -n "$GH_TOKEN" && echo set';
    const listed = await attack(scene(), {
      ...passing,
      allowedTools: ["Bash(printenv GH_TOKEN)", "Bash(test *)", "Bash(echo *)"],
      calls: [bash("printenv GH_TOKEN"), bash("echo done"), bash(line)],
    });
    expect(listed.outcomes).toEqual(["ok", "ok", "no_interactor"]);
    expect(listed.outputs[0]).toBe("[redacted:GH_TOKEN]\n");
    expect(JSON.stringify(listed.outputs[2])).toContain("$GH_TOKEN, whose value holds a known secret");
    const granted = await attack(scene(), { ...passing, calls: [bash(line)], interactors: [approving()] });
    const free = await attack(scene(), { ...passing, calls: [bash(line)], allowedTools: ["Bash", "Edit", "Write"] });
    for (const after of [granted, free]) {
      expect(after.outputs).toEqual(["set\n"]);
      hidden(after);
    }
  });
});

describe("a definition", () => {
  const make = (own: StateEnvironment | undefined, id = "made") => {
    const work = stage({
      prompt: "Work.",
      allowedTools: ["Bash"],
      completionTool: "finish",
      completionSchema: z.object({ text: z.string() }),
      turnCap: 3,
      ...(own === undefined ? {} : { env: own }),
    });
    return pipeline({ id, input: z.object({}), stages: { work }, initial: "work", next: { work: () => done("ok") } });
  };

  test("has another fingerprint with other variables, and its parts name them without values", async () => {
    const prints = [
      make(undefined),
      make({}),
      make({ set: { A: "1" } }),
      make({ set: { A: "2" } }),
      make({ set: { B: "1" } }),
      make({ block: ["A"] }),
    ].map(({ spec }) => spec.fingerprint);
    expect(prints[0]).toBe(prints[1]);
    expect(new Set(prints).size).toBe(5);
  });

  test.each([
    ["a value that is no text", { set: { A: JSON.parse("1") } }, "env.set.A"],
    ["a value with NUL", { set: { A: "a\0b" } }, "env.set.A"],
    ["an odd name", { set: { "A B": "1" } }, "is not the name of a variable"],
    ["an empty name", { set: { "": "1" } }, "is not the name of a variable"],
    ["a variable of the loader", { set: { LD_PRELOAD: "./x.so" } }, "changes how shells and loaders work"],
    ["a variable of the shell", { set: { BASH_ENV: "./x" } }, "changes how shells and loaders work"],
    ["a variable of Sluice", { set: { SLUICE_RUN: "" } }, "changes how shells and loaders work"],
    ["the same name set and blocked", { set: { A: "1" }, block: ["A"] }, "is also blocked"],
    ["a blocked pattern", { block: ["AWS_*"] }, "must be a list of names of variables"],
    ["a list of variables to set", { set: JSON.parse('["A"]') }, "must be an object of variables"],
    ["an unknown part", JSON.parse('{"unset":["A"]}'), "is not a known option"],
    ["a text", JSON.parse('"A=1"'), "must be an object"],
  ] satisfies readonly (readonly [string, StateEnvironment, string])[])("with %s is refused", (_what, own, why) => {
    expect(() => make(own)).toThrow(why);
  });

  test("never shows a refused value", () => {
    const refused = (): unknown => make({ set: { A: `${VALUE}\0` } });
    expect(refused).toThrow("stages.work.env.set.A");
    expect(refused).not.toThrow(VALUE);
  });

  test.each(["maxToolCalls", "maxEditLines", "maxLinesPerEdit", "maxFiles", "maxResultBytes"])(
    "takes whole numbers from 1 for %s, of a state only",
    (name) => {
      const limited = (value: Json) =>
        stage({
          prompt: "Work.",
          allowedTools: [],
          completionTool: "finish",
          completionSchema: z.object({}),
          turnCap: 1,
          limits: JSON.parse(JSON.stringify({ [name]: value })),
        }).spec.problems ?? [];
      for (const value of [0, -1, 1.5, "3", null]) expect(limited(value)).toMatchObject([{ path: `limits.${name}` }]);
      expect(limited(1)).toEqual([]);
      const { spec } = make(undefined);
      const { states: _states, ...rest } = spec;
      expect(rest.limits).not.toHaveProperty(name);
      const whole = () =>
        pipeline({
          id: "whole",
          input: z.object({}),
          stages: {
            work: stage({
              prompt: "Work.",
              allowedTools: [],
              completionTool: "finish",
              completionSchema: z.object({}),
              turnCap: 1,
            }),
          },
          initial: "work",
          limits: JSON.parse(JSON.stringify({ [name]: 3 })),
          next: { work: () => done("ok") },
        });
      expect(whole).toThrow("is not a known option");
    },
  );

  test("with changed variables has changes without values", () => {
    const recorded: Json = JSON.parse(JSON.stringify(pipelineParts(make({ set: { A: VALUE } }).spec)));
    expect(JSON.stringify(recorded)).not.toContain(VALUE);
    const now = pipelineParts(make({ set: { A: "other" }, block: ["C"] }).spec);
    expect(partChanges(recorded, now)).toEqual([
      "state work: env values changed",
      "state work: env block was added (C)",
    ]);
  });
});

test("what the session's environment holds is not changed by a stage", async () => {
  const own = { ...env };
  const { events } = await attack(scene(), { ...plain, env: own, calls: [bash("ls")] });
  expect(own).toEqual(env);
  expect(JSON.stringify(eventData(events, "run.started"))).not.toContain(VALUE);
});
