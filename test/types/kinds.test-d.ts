// What the types of commands, timers, questions and nested pipelines say. Checked by `tsc`, like definition.test-d.ts.
import { done, type Out, pipeline, stage, to } from "@sluice/core";
import { human, type PollOutput, poll, type ScriptOutput, script, subPipeline, timer } from "@sluice/stages";
import { z } from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function holds<_Fact extends true>(): void;

const input = z.object({ task: z.string() });
const draft = stage({
  prompt: "Draft.",
  completionTool: "submit",
  completionSchema: z.object({ text: z.string() }),
  turnCap: 3,
});
const wait = timer({
  reads: { draft },
  for: "15m",
  precondition: ({ upstream }) => (upstream.draft?.text === "" ? "skip" : "proceed"),
});
holds<Equal<Out<typeof wait>, { readonly elapsedMs: number; readonly timestamp: number }>>();
const text = human({ question: "What now?" });
holds<Equal<Out<typeof text>, string>>();
const typed = human({
  question: "Ready?",
  answer: z.object({ ready: z.boolean() }),
  deadline: "3d",
  onDeadline: { answer: { ready: false } },
});
holds<Equal<Out<typeof typed>, { ready: boolean }>>();

const build = script({
  reads: { draft },
  command: ["npm", "run", "build"],
  output: z.object({ version: z.string() }),
  timeoutMs: "5m",
  precondition: ({ upstream }) => (upstream.draft?.text === "" ? "skip" : "proceed"),
  assert: (result) => (result.status === "completed" && result.output.parsed.version === "" ? { retry: "" } : "ok"),
});
holds<Equal<Out<typeof build>, ScriptOutput<{ version: string }>>>();
const tests = script({ command: { shell: "npm test" } });
holds<Equal<Out<typeof tests>, ScriptOutput>>();
const deployed = poll({ command: ["deployed"], every: "5m", output: z.object({ url: z.string() }) });
holds<Equal<Out<typeof deployed>, PollOutput<{ url: string }>>>();
const publish = script({ command: ["publish"], stdin: "input", inputSchema: z.object({ version: z.string() }) });
pipeline({
  id: "released",
  input,
  stages: { build, publish, deployed },
  initial: "build",
  next: {
    build: { completed: ({ output }) => to("publish", output.parsed), failed: ({ message }) => done(message) },
    publish: () => to("deployed"),
    deployed: ({ output }) => done(`${output.parsed.url} after ${output.attempts}`),
  },
});
pipeline({
  id: "released",
  input,
  stages: { build, publish },
  initial: "build",
  next: {
    // @ts-expect-error the script takes a version
    build: () => to("publish", { version: 3 }),
    publish: ({ output }) => done(output.exitCode),
  },
});

const review = pipeline({
  id: "review",
  input: z.object({ task: z.string(), depth: z.number() }),
  stages: { draft, text: human({ question: "What now?" }) },
  initial: "draft",
  next: { draft: () => to("text"), text: ({ output }) => done({ verdict: output.trim() }) },
});
const reviewed = subPipeline({ pipeline: "review", of: review, input: ({ task }) => ({ task, depth: 1 }) });
holds<Equal<Out<typeof reviewed>, { verdict: string }>>();
pipeline({
  id: "outer",
  input,
  stages: { draft, wait, typed, reviewed, inline: subPipeline({ pipeline: "review", of: review }) },
  initial: "wait",
  pipelines: { review },
  next: {
    wait: ({ output }) => (output.elapsedMs > 0 ? to("typed") : to("reviewed")),
    typed: ({ output }) => done(output.ready),
    reviewed: ({ output }) => done(output.verdict.length),
    inline: ({ output }) => done(output.verdict.length),
  },
});

// @ts-expect-error a timer has one of them
timer({ for: "1m", until: 5 });
// @ts-expect-error and needs one
timer({});
// @ts-expect-error it calls no tools
timer({ for: "1m", allowedTools: ["Read"] });
const ready = z.object({ ready: z.boolean() });
// @ts-expect-error the answer at the deadline is one of the question
human({ question: "Ready?", answer: ready, deadline: "3d", onDeadline: { answer: { ready: "no" } } });
// @ts-expect-error the pipeline takes a depth
subPipeline({ pipeline: "review", of: review, input: ({ task }) => ({ task }) });
// @ts-expect-error a duration has a unit
script({ command: ["a"], timeoutMs: "5" });
// @ts-expect-error a command calls no tools
script({ command: ["a"], allowedTools: ["Read"] });
// @ts-expect-error a poll needs an interval
poll({ command: ["a"] });
// @ts-expect-error a poll may always be repeated
poll({ command: ["a"], every: "1m", repeat: true });
