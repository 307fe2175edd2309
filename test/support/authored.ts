import {
  type Answer,
  callbackInteractor,
  done,
  type Json,
  type JsonObject,
  type PersonRequest,
  pipeline,
  type Schema,
} from "@sluice/core";
import type { ScriptedTurn } from "@sluice/stages";
import { type AuthoredAllow, type AuthoredOptions, authored, authoredExecutor, runInput } from "@sluice/workflows";
import { json, session, type TestSession, type TestSessionOptions } from "./run-kit.ts";
import { type Heard, type Talker, talker } from "./talker.ts";

// Pipelines that a scripted model writes.

type Options = Omit<AuthoredOptions<Record<never, never>, undefined>, "allow"> & { readonly allow?: AuthoredAllow };

/** A pipeline whose one state lets a model write another one. A failure completes it too, with what the failure says. */
export function writes({ allow = { tools: ["Read", "Edit(src/**)"] }, ...options }: Options = {}) {
  return pipeline({
    id: "outer",
    input: runInput,
    stages: { auto: authored({ allow, ...options }) },
    initial: "auto",
    next: {
      auto: {
        completed: ({ output }) => done(json(output)),
        failed: ({ code, message, detail }) => done({ code, message, detail: detail ?? null }),
      },
    },
  });
}

/** The same for a run whose input is any JSON. */
export function writesOf(input: Schema<Json>, allow: AuthoredAllow) {
  return pipeline({
    id: "outer",
    input,
    stages: { auto: authored({ allow }) },
    initial: "auto",
    next: { auto: ({ output }) => done(json(output)) },
  });
}

/** A document of one question. */
export const asking: JsonObject = {
  id: "asking",
  initial: "ask",
  states: {
    ask: { human: { question: "Ready for {{ctx.task}}?" }, on: { success: "done" } },
    done: { type: "final" },
  },
};

/** The turn that submits a document. */
export function submit(document: unknown): ScriptedTurn {
  return { calls: [{ tool: "create_pipeline", input: JSON.parse(JSON.stringify({ document })) }] };
}

export interface Written {
  readonly live: TestSession;
  readonly model: Talker;
  readonly asked: readonly PersonRequest[];
  readonly output: Json;
  readonly runId: string;
}

/** A person who lets every pipeline run, and answers every other question with `yes`. */
export function agrees({ body }: PersonRequest): Answer {
  return { kind: "value", value: String(body.question).endsWith("Run it?") ? "run" : "yes" };
}

/** Runs such a pipeline with a model that submits these documents, one after another, and then does what `say` says. */
export async function write(
  documents: readonly unknown[],
  options: Options = {},
  {
    person = agrees,
    say,
    ...more
  }: TestSessionOptions & {
    readonly person?: (request: PersonRequest) => Answer;
    readonly say?: (heard: Heard) => ScriptedTurn;
  } = {},
): Promise<Written> {
  const asked: PersonRequest[] = [];
  const left = [...documents];
  const model = talker((heard) => {
    if (heard.stage !== "design" && say !== undefined) return say(heard);
    return submit(left.shift() ?? null);
  });
  const interactor = callbackInteractor("Ada", (request) => {
    asked.push(request);
    return person(request);
  });
  const live = session({ model, interactors: [interactor], executors: [authoredExecutor], ...more });
  const result = await live.run(writes(options), { task: "the release" });
  if (result.status !== "completed") throw new Error(JSON.stringify(result));
  return { live, model, asked, output: json(result.output), runId: result.runId };
}

/** What the model read of its last document. */
export function feedbackOf({ model }: Pick<Written, "model">): string {
  return JSON.stringify(model.heard.at(-1)?.messages);
}
