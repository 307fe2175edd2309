import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { done, pipeline, type StepCall, stage, to } from "@sluice/core";
import { type ScriptedTurn, timer } from "@sluice/stages";
import { expect } from "vitest";
import { z } from "zod";
import { defect, fact, ours } from "../../support/duet.ts";
import { completed, eventually, json, session, tool, twoHosts, work } from "../../support/run-kit.ts";
import { type Heard, type Talker, talker } from "../../support/talker.ts";

// Agent states: what they see, what they use and what remains of them.

const input = z.object({ task: z.string() });
const out = { completionTool: "submit", completionSchema: z.object({ text: z.string() }), turnCap: 5 };
const submit = (text: string): ScriptedTurn => ({ calls: [{ tool: "submit", input: { text } }] });
const textOf = (heard: Heard | undefined): string => JSON.stringify(heard?.messages ?? []);
const systemOf = (heard: Heard | undefined): string => JSON.stringify(heard?.messages[0] ?? "");

/** Two stages, of which the second reads what the first returned. */
function two(prompt = "Write what {{ctx.upstream.plan.text}} says.") {
  const plan = stage({ ...out, prompt: "Plan {{ctx.task}}.", allowedTools: ["Look"] });
  const write = stage({ ...out, prompt, allowedTools: [] });
  return pipeline({
    id: "two",
    input,
    stages: { plan, write },
    initial: "plan",
    next: { plan: () => to("write"), write: ({ output }) => done(output.text) },
  });
}
const look = tool("Look");
const answering = (): Talker =>
  talker(({ stage: at, turn }) => {
    if (at === "plan" && turn === 0) return { text: "a private thought", calls: [{ tool: "Look", input: {} }] };
    return submit(at === "plan" ? "the plan" : "the text");
  });

fact(38, "a state begins with a fresh transcript, each time it runs, also in another process", async () => {
  const { clock, first, second } = twoHosts();
  const hanging = talker(({ stage: at }) => (at === "plan" ? submit("the plan") : new Promise<never>(() => undefined)));
  const run = session({ model: hanging, clock, host: first, tools: [look] }).start(two(), { task: "the move" });
  await eventually(() => hanging.heard.length === 2);
  await run.suspend();
  const model = answering();
  await session({ model, clock, host: second, tools: [look] }).resume(two(), run.runId);
  expect(model.heard.map(({ stage: at }) => at)).toEqual(["write"]);
  expect(textOf(model.heard[0])).not.toContain("Plan the move");
});

fact(39, "the input of a state is rendered into its prompt", async () => {
  const model = answering();
  await session({ model, tools: [look] }).run(two(), { task: "the move" });
  expect(systemOf(model.heard[0])).toContain("Plan the move.");
  expect(systemOf(model.heard.at(-1))).toContain("Write what the plan says.");
});

ours(40, "a prompt is the system prompt of its state, and nothing of another state's reaches it", async () => {
  const model = answering();
  await session({ model, tools: [look] }).run(two("Write."), { task: "the move" });
  const last = textOf(model.heard.at(-1));
  for (const other of ["private thought", "Plan the move", "Look", "the plan"]) expect(last).not.toContain(other);
});

ours(41, "a state has the tools of its envelope and no others; a call of another one is denied", async () => {
  const model = talker(({ stage: at, turn }) =>
    at === "write" && turn === 0 ? { calls: [{ tool: "Look", input: {} }] } : submit("x"),
  );
  const result = await session({ model, tools: [look] }).run(two(), { task: "the move" });
  expect(model.heard.map(({ stage: at, tools }) => [at, tools])).toEqual([
    ["plan", ["Look", "submit"]],
    ["write", ["submit"]],
    ["write", ["submit"]],
  ]);
  expect(result).toMatchObject({ status: "completed", denied: [{ executionId: "write#1", tool: "Look" }] });
});

fact(42, "the contract of the state is part of its system prompt, with how it is completed", async () => {
  const model = answering();
  await session({ model, tools: [look] }).run(two(), { task: "the move" });
  for (const heard of model.heard) expect(systemOf(heard)).toContain("submit");
});

ours(
  72,
  "nothing is debounced: each record is committed whole, so a kill loses the step that was open and no more",
  async () => {
    const { clock, first, second } = twoHosts();
    const starts: string[] = [];
    const state = (name: string, act: (call: StepCall) => Promise<null>) =>
      work<null>({
        act: async ({ steps }) => {
          starts.push(name);
          await steps.run("once", act);
          return completed(null);
        },
      });
    const made = (act: (call: StepCall) => Promise<null>) =>
      pipeline({
        id: "kept",
        input,
        stages: { one: state("one", async () => null), two: state("two", act) },
        initial: "one",
        next: { one: () => to("two"), two: () => done("both") },
      });
    const run = session({ clock, host: first }).start(
      made(({ signal }) => new Promise<null>((_resolve, reject) => signal.addEventListener("abort", reject))),
      { task: "x" },
    );
    await eventually(() => starts.includes("two"));
    await first.close();
    const again = session({ clock, host: second });
    expect(
      await again.resume(
        made(async () => null),
        run.runId,
      ),
    ).toMatchObject({ status: "completed", output: "both" });
    const done1 = (await again.host.records(run.runId)).filter(({ stepId }) => stepId === "one#1/a1/once");
    expect(done1).toHaveLength(1);
  },
);

fact(81, "the usage of the stages adds up to that of the run", async () => {
  const { stages, usage } = await session({ model: answering(), tools: [look] }).run(two(), { task: "the move" });
  const sum = (of: "inputTokens" | "outputTokens") => stages.reduce((total, each) => total + each.usage[of], 0);
  expect(usage.inputTokens).toBeGreaterThan(0);
  expect([sum("inputTokens"), sum("outputTokens")]).toEqual([usage.inputTokens, usage.outputTokens]);
});

fact(82, "a run that has nothing to do but to sleep is asleep until its time; one that works is not", async () => {
  const naps = pipeline({
    id: "naps",
    input,
    stages: { nap: timer({ for: "1h" }) },
    initial: "nap",
    next: { nap: () => done("rested") },
  });
  const live = session({ suspendSleepsOver: 0 });
  const wakeAt = live.clock.now() + 3_600_000;
  expect(await live.run(naps, { task: "x" })).toMatchObject({ status: "suspended", reason: "sleeping", wakeAt });
  expect(await live.host.due(10)).toEqual({ runs: [], next: wakeAt });
  expect(
    await session()
      .run(two(), { task: "x" })
      .then(
        ({ status }) => status,
        () => "refused",
      ),
  ).not.toBe("suspended");
});

fact(83, "what a state gets without an option is what production gives it", async () => {
  const sleeps = pipeline({
    id: "sleeps",
    input,
    stages: { nap: timer({ for: "1h" }) },
    initial: "nap",
    next: { nap: () => done("rested") },
  });
  // Without the option a session waits for its sleeps.
  const live = session();
  const run = live.start(sleeps, { task: "x" });
  await eventually(async () => live.clock.waiting() === 1);
  expect((await live.host.get(run.runId))?.status).toBe("running");
  live.clock.turn(3_600_000);
  expect(await run).toMatchObject({ status: "completed", output: "rested" });
});

defect("D15", "no state can change what another one keeps: there is no list that they share", async () => {
  const model = answering();
  const { stages } = await session({ model, tools: [look] }).run(two(), { task: "the move" });
  expect(model.heard.flatMap(({ tools }) => tools).filter((name) => /todo/i.test(name))).toEqual([]);
  expect(stages.map((each) => (each.status === "completed" ? json(each.output) : null))).toEqual([
    { text: "the plan" },
    { text: "the text" },
  ]);
});

defect("D16", "a prompt names no tool that its state does not have", async () => {
  const model = answering();
  await session({ model, tools: [look] }).run(two(), { task: "the move" });
  const known = ["Look", "Bash", "Edit", "Write", "Read", "Grep", "Glob", "AskUser"];
  for (const heard of model.heard)
    for (const name of known.filter((each) => !heard.tools.includes(each)))
      expect(systemOf(heard).replaceAll("Write what", "")).not.toMatch(new RegExp(`\\b${name}\\b`));
});

defect(
  "D19",
  "each page that names a command, an event, an option or an error is compared with the code by a test",
  () => {
    const tests = join(import.meta.dirname, "../../docs");
    const files = readdirSync(tests).join(" ");
    for (const subject of ["command", "events", "errors"]) expect(files).toContain(`${subject}.test.ts`);
    expect(readFileSync(join(tests, "command.test.ts"), "utf8")).toContain("docs/command.md");
    expect(existsSync(join(tests, "../../docs/serve.md"))).toBe(true);
  },
);
