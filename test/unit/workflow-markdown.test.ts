import { type Diagnostic, type LoadedWorkflow, loadWorkflow, simulate } from "@sluice/workflows";
import { describe, expect, test } from "vitest";

type Files = Readonly<Record<string, string>>;

const SCHEMA = `completionTool: submit
completionSchema:
  type: object
  required: [text]
  properties: { text: { type: string } }`;
const stage = (body = "Work.", more = ""): string =>
  `---\nallowedTools: []\n${SCHEMA}\n${more === "" ? "" : `${more}\n`}---\n${body}\n`;
const ONE = "id: demo\ninitial: one\ntransitions:\n  - { from: one, to: done }\n";
const TWO = `id: demo
initial: one
transitions:
  - { from: one, to: two }
  - { from: two, to: done }
`;

/** Loads a folder of these files. */
async function load(files: Files, options: { readonly tools?: readonly string[] } = {}): Promise<LoadedWorkflow> {
  return await loadWorkflow("demo", {
    ...options,
    list: async (path) => (path === "demo" ? Object.keys(files) : undefined),
    read: async (path) => {
      const text = files[path.replace("demo/", "")];
      if (text === undefined) throw new Error(`${path} was read, which is not there`);
      return text;
    },
  });
}

/** A diagnostic in one line: where, its rule, the text that the caret is under, and the suggestion. */
function lines(files: Files, { diagnostics }: LoadedWorkflow): readonly string[] {
  return diagnostics.map((one) => lineOf(files, one));
}
function lineOf(files: Files, { file, line, column, length, rule, message, suggestion, severity }: Diagnostic): string {
  const name = file.replace("demo/", "");
  const text = files[name]?.replace(/^\uFEFF/, "").split(/\r?\n/)[line - 1] ?? "";
  const under = text.slice(column - 1, column - 1 + length);
  const kind = severity === "error" ? "" : "warning ";
  return `${name}:${line}:${column} ${kind}${rule} <${under}> ${message}${suggestion === undefined ? "" : ` (${suggestion})`}`;
}
async function problems(files: Files): Promise<readonly string[]> {
  return lines(files, await load(files));
}
const state = ({ pipeline }: LoadedWorkflow, id: string) => {
  const found = pipeline?.spec.states.get(id);
  if (found === undefined) throw new Error(`there is no state ${id}`);
  return found;
};
const rows = ({ pipeline }: LoadedWorkflow) => {
  const routes = pipeline?.spec.routes;
  return routes?.kind === "table" ? routes.rows : [];
};

test("a folder with a pipeline.yaml and a Markdown file for each stage is a pipeline", async () => {
  const files = { "pipeline.yaml": TWO, "one.md": stage("First."), "two.md": stage("Then {{ctx.upstream.one.text}}.") };
  const loaded = await load(files);
  expect(loaded).toMatchObject({ id: "demo", format: "markdown", diagnostics: [] });
  expect(loaded.files.map(({ path }) => path)).toEqual(["demo/pipeline.yaml", "demo/one.md", "demo/two.md"]);
  expect(state(loaded, "two").templates?.prompt?.map(({ path }) => path)).toEqual([["upstream", "one", "text"]]);
});

test("pipeline.yaml itself can be named instead of its folder", async () => {
  const files: Files = { "pipeline.yaml": ONE, "one.md": stage() };
  const loaded = await loadWorkflow("demo/pipeline.yaml", {
    list: async (path) => (path === "demo" ? Object.keys(files) : undefined),
    read: async (path) => files[path.replace("demo/", "")] ?? "",
  });
  expect(loaded).toMatchObject({ id: "demo", format: "markdown", diagnostics: [] });
});

describe("the frontmatter", () => {
  test("every field reaches the stage, in camelCase", async () => {
    const header = `id: one
name: The one
description: Works.
allowedTools: [Read, { tool: Grep, optional: true }, ReadSkill]
visibility: session
model: some/model
temperature: 0.5
maxOutputTokens: 900
turnCap: 7
retries: 1
skills: [pdf, docx]
limits: { maxTokens: 9, maxCostUsd: 1.5, timeoutMs: 8, maxToolCalls: 7, maxEditLines: 6, maxLinesPerEdit: 5, maxFiles: 4, maxResultBytes: 3 }
sandbox: { network: true, scratch: [out] }
env: { set: { CI: "1" }, block: [HOME] }
inputSchema: { type: object, properties: { task: { type: string } } }
meta: { owner: me }
${SCHEMA}`;
    const loaded = await load({ "pipeline.yaml": ONE, "one.md": `---\n${header}\n---\nWork.` });
    expect(loaded.diagnostics).toEqual([]);
    expect(state(loaded, "one")).toMatchObject({
      kind: "agent",
      completionTool: "submit",
      visibility: "session",
      allowedTools: ["Read", { tool: "Grep", optional: true }, "ReadSkill(*/skills/{pdf,docx}/**)"],
      retryPolicy: { maxAttempts: 2 },
      limits: {
        maxTokens: 9,
        maxCostUsd: 1.5,
        timeoutMs: 8,
        maxToolCalls: 7,
        maxEditLines: 6,
        maxLinesPerEdit: 5,
        maxFiles: 4,
        maxResultBytes: 3,
      },
      sandbox: { network: true, scratch: ["out"] },
      env: { set: { CI: "1" }, block: ["HOME"] },
      options: { turnCap: 7, model: "some/model", temperature: 0.5, maxOutputTokens: 900 },
      inputSchema: { jsonSchema: { properties: { task: { type: "string" } } } },
    });
  });

  test("snake_case means the same, and a turn cap of 50 is the default", async () => {
    const header = `allowed_tools: [Read]
completion_tool: submit
completion_schema: { type: object, properties: { text: { type: string } } }
max_output_tokens: 5
limits: { max_tool_calls: 3 }
retry_policy: { max_attempts: 4, backoff: none }`;
    const loaded = await load({ "pipeline.yaml": ONE, "one.md": `---\n${header}\n---\nWork.` });
    expect(loaded.diagnostics).toEqual([]);
    expect(state(loaded, "one")).toMatchObject({
      allowedTools: ["Read"],
      limits: { maxToolCalls: 3 },
      retryPolicy: { maxAttempts: 4 },
      options: { turnCap: 50, maxOutputTokens: 5 },
    });
  });

  test("a key that does not exist, one that is written twice and a wrong value are reported at their lines of the file", async () => {
    const header = `allowedTool: [Read]\nturn_cap: 5\nturnCap: 6\nvisibility: some\nlimits:\n  maxTokens: 0\n  maxToken: 1`;
    const files = { "pipeline.yaml": ONE, "one.md": `---\n${header}\nallowedTools: []\n${SCHEMA}\n---\nWork.` };
    expect(await problems(files)).toEqual([
      'one.md:2:1 unknown-key <allowedTool> The document has no field "allowedTool". (did you mean "allowedTools"?)',
      'one.md:4:1 alias-twice <turnCap> "turnCap" and "turn_cap" are the same field. (remove one of them)',
      'one.md:5:13 wrong-type <some> "visibility" is "some", but must be one of "allowed", "session".',
      'one.md:7:14 wrong-type <0> "maxTokens" is 0, but must be a whole number from 1.',
      'one.md:8:3 unknown-key <maxToken> "limits" has no field "maxToken". (did you mean "maxTokens"?)',
    ]);
  });

  test("a pattern that cannot be read is reported where it is listed", async () => {
    const files = {
      "pipeline.yaml": ONE,
      "one.md": `---\nallowed_tools:\n  - Read\n  - "Edit(../x)"\n${SCHEMA}\n---\nWork.`,
    };
    expect(await problems(files)).toEqual([
      'one.md:4:5 tool-pattern <"Edit(../x)"> Edit(../x): a scope cannot climb with ... (name the folder itself)',
    ]);
  });

  test.each([
    ["", "one.md:1:1 frontmatter <> The file does not begin with frontmatter. (begin with a line ---)"],
    ["Work.", "one.md:1:1 frontmatter <Work.> The file does not begin with frontmatter. (begin with a line ---)"],
    ["---\nname: x\n", "one.md:1:1 frontmatter <---> The frontmatter is never closed. (end it with a line ---)"],
    ["---\n- a\n---\nWork.", "one.md:2:1 frontmatter <- a> The frontmatter is not a mapping of fields."],
    ["---\na: 1\na: 2\n---\nWork.", /^one\.md:3:1 duplicate-key <a> /],
    ["---\na: [1\n---\nWork.", /^one\.md:\d+:\d+ syntax /],
    ["---\na: \u0007\n---\nWork.", /^one\.md:2:4 control-character /],
    ["---\n__proto__: 1\n---\nWork.", /^one\.md:2:1 prototype-key <__proto__> /],
    [`---\nname: ${"x".repeat(300_000)}\n---\nWork.`, /^one\.md:1:1 file-size /],
  ])("%j is one error at its place in the file", async (text, expected) => {
    const found = await problems({ "pipeline.yaml": ONE, "one.md": text });
    expect(found).toEqual([expect.stringMatching(typeof expected === "string" ? /./ : expected)]);
    if (typeof expected === "string") expect(found).toEqual([expected]);
  });

  test.each([
    ["id: two", /one\.md:8:1 stage-id <id> The stage is called one, as its file\. /],
    ["prompt: Work.", /one\.md:8:1 unknown-key <prompt> The prompt is the text below the frontmatter\. /],
    ["skills: [pdf]", /one\.md:8:1 skills-without-tool <skills> .*add ReadSkill to allowedTools/],
    ["skills: []", /one\.md:8:9 wrong-type <\[\]> "skills" is an empty list/],
    ["skills: [../x]", /one\.md:8:10 wrong-name <\.\.\/x> "\.\.\/x" is not the name of a skill/],
    ["resolutionPolicy: retry-later", /one\.md:8:1 warning no-effect <resolutionPolicy> /],
    ["retries: 1\nretryPolicy: { maxAttempts: 2 }", /one\.md:9:1 alias-twice <retryPolicy> /],
    ["inputSchema: { type: string }", /one\.md:8:1 wrong-type <inputSchema> inputSchema must describe an object/],
  ])("%j is reported", async (more, expected) => {
    const found = await problems({ "pipeline.yaml": ONE, "one.md": stage("Work.", more) });
    expect(found.join("\n")).toMatch(expected);
  });

  test.each([
    ["completionTool: submit", /^one\.md:2:1 missing-field <completionTool> The stage has no completionSchema/],
    [
      "completionSchema: { type: object }",
      /^one\.md:2:1 missing-field <completionSchema> The stage has no completionTool/,
    ],
    [
      "completionTool: submit\ncompletionSchema: { type: array }",
      /^one\.md:3:1 wrong-type <completionSchema> completionSchema must describe an object/,
    ],
    [
      "completionTool: submit\ncompletionSchema: { type: object, properties: 5 }",
      /^one\.md:3:19 definition <.*not a valid JSON Schema/,
    ],
  ])("a completion of %j is an error", async (header, expected) => {
    const found = await problems({ "pipeline.yaml": ONE, "one.md": `---\n${header}\nallowedTools: []\n---\nWork.` });
    expect(found[0]).toMatch(expected);
  });

  test("a stage that lists no tools is a warning, and has no envelope", async () => {
    const loaded = await load({ "pipeline.yaml": ONE, "one.md": `---\n${SCHEMA}\n---\nWork.` });
    expect(loaded.diagnostics).toMatchObject([
      { severity: "warning", rule: "no-envelope", file: "demo/one.md", line: 1 },
    ]);
    expect(state(loaded, "one").allowedTools).toBeUndefined();
  });

  test("with the session's tools, a tool that does not exist is an error where it is listed", async () => {
    const files = { "pipeline.yaml": ONE, "one.md": `---\nallowedTools: [Raed]\n${SCHEMA}\n---\nWork.` };
    const found = lines(files, await load(files, { tools: ["Read", "Grep"] }));
    expect(found).toEqual([expect.stringMatching(/^one\.md:2:16 unknown-tool <Raed> .*did you mean "Read"/)]);
  });
});

describe("the body", () => {
  test("is the prompt, without the blank lines around it, whatever ends its lines", async () => {
    const text = stage("\n\nLine one.\n\n  Line two.\n\n").replaceAll("\n", "\r\n");
    const loaded = await load({ "pipeline.yaml": ONE, "one.md": `\uFEFF${text}` });
    expect(loaded.diagnostics).toEqual([]);
    expect(state(loaded, "one").parts?.prompt).toEqual({ data: "Line one.\n\n  Line two." });
  });

  test("may hold lines of dashes and text that looks like frontmatter", async () => {
    const loaded = await load({ "pipeline.yaml": ONE, "one.md": stage("A\n---\nname: b\n---\n") });
    expect(state(loaded, "one").parts?.prompt).toEqual({ data: "A\n---\nname: b\n---" });
  });

  test("a template that cannot exist is reported at its line and column", async () => {
    const body = "\n\nThe task: {{ctx.task}} and {{ctx.upstream.tow.text}}.\n\n- {{ ctx.upstream.one.txt }}";
    const files = { "pipeline.yaml": TWO, "one.md": stage("{{ctx.run.input.task}}"), "two.md": stage(body) };
    expect(await problems(files)).toEqual([
      'two.md:11:28 bad-template <{{ctx.upstream.tow.text}}> prompt: {{ctx.upstream.tow.text}} leads nowhere: there is no state "tow". (did you mean "two"?)',
      "two.md:13:3 bad-template <{{ ctx.upstream.one.txt }}> prompt: {{ctx.upstream.one.txt}} leads nowhere: ctx.upstream.one has text. (name what the schema has, or add it there)",
    ]);
  });

  test.each([
    ["{{ctx.taks}}", "<{{ctx.taks}}>"],
    ["{{task}}", "<{{task}}>"],
    ["{{ctx.feedback}}", "<{{ctx.feedback}}>"],
    ["{{ctx.setup}}", "<{{ctx.setup}}>"],
    ["{{ctx.task", "<{{>"],
  ])("so is the template %j, which cannot be read", async (template, under) => {
    const files = { "pipeline.yaml": ONE, "one.md": stage(`One.\r\nAbc ${template}`) };
    expect(await problems(files)).toEqual([expect.stringContaining(`one.md:10:5 bad-template ${under}`)]);
  });

  test("{{input.x}} means {{ctx.input.x}}, and what follows it keeps its column", async () => {
    const schema = "inputSchema: { type: object, properties: { x: { type: string } } }";
    const pipeline =
      "id: demo\ninitial: one\ninput: { type: object, properties: { x: { type: string } } }\ntransitions:\n  - { from: one, to: done }\n";
    const files = {
      "pipeline.yaml": pipeline,
      "one.md": stage("{{input.x}} {{ input.x }} \\{{input.x}} {{input.y}}", schema),
    };
    const loaded = await load(files);
    expect(lines(files, loaded)).toEqual([expect.stringContaining("one.md:10:40 bad-template <{{input.y}}>")]);
    const good = await load({ ...files, "one.md": stage("{{input.x}}|\\{{input.x}}", schema) });
    expect(state(good, "one").parts?.prompt).toEqual({ data: "{{ctx.input.x}}|\\{{input.x}}" });
  });

  test("a file without a body is an error", async () => {
    expect(await problems({ "pipeline.yaml": ONE, "one.md": stage("") })).toEqual([
      "one.md:1:1 missing-field <---> The file has no text below its frontmatter, which is the prompt.",
    ]);
  });
});

describe("pipeline.yaml", () => {
  const both = { "one.md": stage(), "two.md": stage() };

  test("keys that do not exist and fields that are missing are reported", async () => {
    const pipeline = `id: demo\ntransitons: []\nlimits: { maxHop: 3 }\ntransitions:\n  - { from: one, to: done, if: x }\n`;
    expect(await problems({ "pipeline.yaml": pipeline, "one.md": stage() })).toEqual([
      'pipeline.yaml:1:1 missing-field <id: demo> The document has no "initial". (add it: the stage in which a run starts)',
      expect.stringContaining("pipeline.yaml:2:1 unknown-key <transitons>"),
      expect.stringContaining(
        'pipeline.yaml:3:11 unknown-key <maxHop> "limits" has no field "maxHop". (did you mean "maxHops"?)',
      ),
      expect.stringContaining("pipeline.yaml:5:28 unknown-key <if>"),
    ]);
  });

  test("a stage without a file is reported where it is named first, with the closest file", async () => {
    const pipeline = "id: demo\ninitial: one\ntransitions:\n  - { from: one, to: tow }\n  - { from: tow, to: done }\n";
    expect(await problems({ "pipeline.yaml": pipeline, ...both })).toEqual([
      "pipeline.yaml:3:1 warning unused-stage <transitions> two.md is not part of the pipeline: no transition names it.",
      'pipeline.yaml:4:22 unknown-target <tow> There is no stage tow: the folder has no tow.md. (did you mean "two"?)',
    ]);
  });

  test.each(["../secret", "/etc/passwd", "a/b", ".", "..", "one.md", "constructor", "x y"])(
    "%j names no stage, and no such file is read",
    async (name) => {
      const pipeline = `id: demo\ninitial: one\ntransitions:\n  - { from: one, to: ${JSON.stringify(name)} }\n`;
      const files = { "pipeline.yaml": pipeline, "one.md": stage(), [`${name}.md`]: stage() };
      const loaded = await load(files);
      expect(loaded.files.map(({ path }) => path)).toEqual(["demo/pipeline.yaml", "demo/one.md"]);
      expect(lines(files, loaded)).toEqual([
        expect.stringMatching(/^pipeline\.yaml:4:22 unknown-target .* This cannot name a stage: /),
      ]);
    },
  );

  test("README.md and other files of projects are no stages", async () => {
    const files = { "pipeline.yaml": ONE, "one.md": stage(), "README.md": "# Read", "AGENTS.md": "x", "index.md": "y" };
    expect(await problems(files)).toEqual([]);
  });

  test("done ends the run with the stage's output, fail ends it as failed, a final state as it says", async () => {
    const pipeline = `id: demo
initial: one
final: { shipped: completed, broken: failed }
transitions:
  - { from: one, when: output.text == "a", to: done }
  - { from: one, when: output.text == "b", to: fail }
  - { from: one, when: output.text == "c", to: { fail: It is c. } }
  - { from: one, to: shipped }
  - { from: one, on: failure, to: broken }
`;
    const loaded = await load({ "pipeline.yaml": pipeline, "one.md": stage() });
    expect(loaded.diagnostics).toEqual([]);
    expect(rows(loaded).map(({ to }) => to)).toMatchObject([
      { stages: [] },
      { kind: "fail", reason: "one ended with success, which leads to fail" },
      { kind: "fail", reason: "It is c." },
      { kind: "to", state: "shipped" },
      { kind: "to", state: "broken" },
    ]);
    expect(state(loaded, "broken").final).toEqual({ outcome: "failed" });
  });

  test("a target may be stages side by side, or a stage with its input and a change of the context", async () => {
    const pipeline = `id: demo
initial: plan
context: { tries: 0 }
transitions:
  - from: plan
    to: { parallel: [one, two], join: last, on_failure: settle }
  - from: last
    to: { state: plan, input: { again: true }, context: { tries: 1 } }
    when: context.tries == 0
    approval: { message: Again? }
    label: again
  - { from: last, to: done, approval: true }
`;
    const loaded = await load({ "pipeline.yaml": pipeline, "plan.md": stage(), "last.md": stage(), ...both });
    expect(loaded.diagnostics).toEqual([]);
    expect(rows(loaded)).toMatchObject([
      { to: { kind: "fanOut", siblings: ["one", "two"], join: "last", onFailure: "settle" } },
      {
        to: { kind: "to", state: "plan", input: { again: true }, context: { tries: 1 } },
        approval: { message: "Again?" },
        label: "again",
        when: { text: "context.tries == 0" },
      },
      { approval: {} },
    ]);
    expect(loaded.pipeline?.spec.context).toEqual({ tries: 0 });
  });

  test("a stage without a completion tool ends by events, which rows name", async () => {
    const pipeline = `id: demo
initial: one
transitions:
  - { from: one, on: { event: READY }, to: two }
  - { from: one, on: { event: "*" }, to: fail }
  - { from: two, to: done }
`;
    const loaded = await load({
      "pipeline.yaml": pipeline,
      "one.md": "---\nallowedTools: []\n---\nWork.",
      "two.md": stage(),
    });
    expect(loaded.diagnostics).toEqual([]);
    expect(state(loaded, "one").completesByEvents).toBe(true);
    expect(rows(loaded).map(({ on }) => on)).toEqual([{ event: "READY" }, { event: "*" }, "success"]);
  });

  test("the condition of an event row reads the name of the event and its data", async () => {
    const transitions = `id: demo
initial: one
transitions:
  - { from: one, on: { event: "*" }, when: event == "SKIP" && output.data.sure == true, to: done }
`;
    const { pipeline, diagnostics } = await load({
      "pipeline.yaml": transitions,
      "one.md": "---\nallowedTools: []\n---\nWork.",
    });
    if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics));
    const outcomes = [
      { event: "OTHER", data: { sure: true } },
      { event: "SKIP", data: { sure: true } },
    ];
    const { hops, end } = await simulate(pipeline.spec, outcomes);
    expect(hops.map(({ trace: { choice } }) => choice.kind)).toEqual(["to", "stay", "done"]);
    expect(end?.status).toBe("completed");
  });

  test("a success row of a stage that ends by events, and an event row of one that does not, are errors", async () => {
    const pipeline = `id: demo
initial: one
transitions:
  - { from: one, to: two }
  - { from: two, on: { event: READY }, to: done }
`;
    expect(
      await problems({ "pipeline.yaml": pipeline, "one.md": "---\nallowedTools: []\n---\nWork.", "two.md": stage() }),
    ).toEqual([
      expect.stringMatching(/^pipeline\.yaml:4:5 event-row .* one has no completion tool/),
      expect.stringMatching(
        /^pipeline\.yaml:5:22 event-row <\{ event: READY \}> two completes with its completion tool/,
      ),
    ]);
  });

  test("a condition is CEL: what it cannot read is reported at its column", async () => {
    const pipeline = `id: demo
initial: one
transitions:
  - from: one
    to: two
    when: output.txt == "x"
  - { from: one, to: two, when: "output.text = 'x'" }
  - { from: two, to: done, when: upstream.one.text.matches("a") }
  - { from: two, to: done }
`;
    expect(await problems({ "pipeline.yaml": pipeline, ...both })).toEqual([
      expect.stringMatching(/^pipeline\.yaml:6:18 expression-name <.*"txt".*\(did you mean "text"\?\)/),
      expect.stringMatching(/^pipeline\.yaml:7:\d+ expression-/),
      expect.stringMatching(/^pipeline\.yaml:8:\d+ expression-banned/),
    ]);
  });

  test("a dead end and a stage that cannot be reached are reported where the table names them first", async () => {
    const pipeline =
      "id: demo\ninitial: one\ntransitions:\n  - { from: one, to: two }\n  - { from: three, to: done }\n";
    expect(await problems({ "pipeline.yaml": pipeline, ...both, "three.md": stage() })).toEqual([
      expect.stringMatching(/^pipeline\.yaml:3:1 definition <transitions> /),
      expect.stringMatching(/^pipeline\.yaml:4:22 dead-end <two> /),
      expect.stringMatching(/^pipeline\.yaml:5:13 unreachable <three> /),
    ]);
  });

  test("the input of a run is an object with an optional task, unless the file has a schema", async () => {
    const free = (await load({ "pipeline.yaml": ONE, "one.md": stage() })).pipeline?.spec.input;
    expect(await free?.check({ task: "x", more: 1 })).toMatchObject({ ok: true });
    expect(await free?.check({})).toMatchObject({ ok: true });
    expect(await free?.check({ task: 1 })).toMatchObject({ ok: false });
    const pipeline = `${ONE}input: { type: object, required: [file], properties: { file: { type: string } } }\n`;
    const own = (await load({ "pipeline.yaml": pipeline, "one.md": stage() })).pipeline?.spec.input;
    expect(await own?.check({ task: "x" })).toMatchObject({ ok: false });
  });

  test("interrupts name a pattern of files and the stage that handles the change", async () => {
    const pipeline = `id: demo
initial: one
transitions:
  - { from: one, to: done }
  - { from: two, to: $return }
interrupts:
  secrets: { files: src/auth/**, target: two }
`;
    const loaded = await load({ "pipeline.yaml": pipeline, ...both });
    expect(loaded.diagnostics).toEqual([]);
    expect(loaded.pipeline?.spec.interrupts).toEqual([{ name: "secrets", files: "src/auth/**", target: "two" }]);
    expect(rows(loaded)[1]?.to).toEqual({ kind: "return" });
  });

  test("a file that cannot be read is reported where the stage is named", async () => {
    const loaded = await loadWorkflow("demo", {
      list: async () => ["pipeline.yaml", "one.md"],
      read: async (path) => {
        if (path.endsWith(".md")) throw new Error("no permission");
        return ONE;
      },
    });
    expect(loaded.diagnostics).toMatchObject([
      { rule: "file-missing", line: 2, column: 10, message: expect.stringContaining("no permission") },
    ]);
    expect(loaded.pipeline).toBeUndefined();
  });
});
