import { agentsOf } from "@sluice/stages/runtime";
import { loadWorkflow, writeStatewright } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { loadTexts } from "../support/workflows.ts";

const SETTINGS = {
  topP: 0.5,
  seed: 7,
  stopSequences: ["END"],
  reasoning: "low",
  toolChoice: "required",
  providerOptions: { openai: { serviceTier: "flex" } },
  cache: false,
  fallbackModels: ["openai/gpt-5-mini"],
};
const FAULTS = { retry: { maxElapsedMs: 60_000, initialMs: 500 }, onProviderFault: "fail" };
const FIELDS = `top_p: 0.5
seed: 7
stop_sequences: [END]
reasoning: low
tool_choice: required
provider_options: { openai: { serviceTier: flex } }
cache: false
fallback_models: [openai/gpt-5-mini]
retry: { max_elapsed_ms: 60000, initial_ms: 500 }
on_provider_fault: fail`;

const indented = (text: string, spaces: number): string => text.replaceAll(/^/gm, " ".repeat(spaces));

const documents = {
  statewright: (fields: string) => `id: w
initial: work
states:
  work:
    allowed_tools: []
${indented(fields, 4)}
    on: { DONE: done }
  done: { type: final }
`,
  "a step of FLUJO": (fields: string) => `steps:
  - name: work
    prompt: Work.
    tools: []
${indented(fields, 4)}
`,
  "an agent of FLUJO": (fields: string) => `agents:
  worker:
    system_prompt: Work.
    tools: []
${indented(fields, 4)}
steps:
  - { name: work, uses: agents.worker }
`,
};

async function markdown(fields: string) {
  const files: Readonly<Record<string, string>> = {
    "demo/pipeline.yaml": "id: demo\ninitial: work\ntransitions:\n  - { from: work, to: done }\n",
    "demo/work.md": `---
allowedTools: []
completionTool: submit
completionSchema: { type: object }
${fields}
---
Work.
`,
  };
  return await loadWorkflow("demo", {
    list: async (path) => (path === "demo" ? ["pipeline.yaml", "work.md"] : undefined),
    read: async (path) => files[path] ?? "",
  });
}

const formats = [
  ...Object.entries(documents).map(
    ([name, text]) => [name, (fields: string) => loadTexts("w.yaml", { "w.yaml": text(fields) })] as const,
  ),
  ["markdown", markdown] as const,
];

describe.each(formats)("in %s", (_name, load) => {
  test("the settings of a model reach the stage", async () => {
    const { pipeline, diagnostics } = await load(FIELDS);
    expect(diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
    const agents = pipeline === undefined ? [] : [...agentsOf(pipeline.spec).values()];
    expect(agents).toMatchObject([SETTINGS]);
    expect(pipeline?.spec.states.get("work")).toMatchObject(FAULTS);
  });

  test("a provider option that could bypass the gate is an error with its place", async () => {
    const { pipeline, diagnostics } = await load("provider_options: { anthropic: { mcpServers: [] } }");
    expect(pipeline).toBeUndefined();
    expect(diagnostics).toMatchObject([
      { severity: "error", line: expect.any(Number), message: expect.stringContaining("is not allowed") },
    ]);
  });

  test("a value that a setting does not take is an error", async () => {
    for (const field of ["reasoning: enormous", "top_p: 2", "seed: 0.5", "stop_sequences: END"]) {
      const { diagnostics } = await load(field);
      expect([field, diagnostics]).toMatchObject([field, [{ severity: "error" }]]);
    }
  });
});

test("writing a workflow as a statewright document keeps them", async () => {
  const { pipeline } = await loadTexts("w.yaml", { "w.yaml": documents.statewright(FIELDS) });
  if (pipeline === undefined) throw new Error("it does not load");
  const written = writeStatewright(pipeline, {});
  const again = await loadTexts("w.json", { "w.json": "text" in written ? written.text : "" });
  expect(again.pipeline?.spec.fingerprint).toBe(pipeline.spec.fingerprint);
  expect(again.pipeline?.spec.states.get("work")).toMatchObject(FAULTS);
});
