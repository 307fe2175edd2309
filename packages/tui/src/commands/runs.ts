import { SluiceError } from "@sluice/core";
import { interruptRun } from "@sluice/stages";
import { type Line, spanOf, wrap } from "@sluice/view/text";
import { type Command, type Steering, usageError } from "../app/command.ts";
import type { KnownRun, StartIn } from "../app/engine.ts";
import { createViewer, fixedRows } from "../app/overlay/viewer.ts";
import { userName } from "../user/person.ts";

const ALLOW_CHANGED = "--allow-changed";

export const run: Command = {
  name: "run",
  description: "start a pipeline",
  usage: "<pipeline> [--from state [--input key=value]] <task>",
  takes: [{ kind: "pipeline" }],
  run: async (words, app) => {
    const [, pipeline, rest = ""] = /^(\S+)\s*(.*)$/s.exec(words) ?? [];
    if (pipeline === undefined)
      throw usageError("write /run <pipeline> <task>, such as /run codeReview fix the parser");
    const { task, from } = startIn(rest);
    app.turnTo(await app.engine.start(pipeline, task, from));
  },
};

/** Reads the options in front of a task, which may itself contain words like options. */
function startIn(words: string): { readonly task: string; readonly from?: StartIn } {
  const input: string[] = [];
  let state: string | undefined;
  let rest = words.trim();
  for (;;) {
    const [whole = "", option, value = ""] = /^--(from|input)\s+(\S+)\s*/.exec(rest) ?? [];
    if (option === undefined) break;
    rest = rest.slice(whole.length);
    if (option === "from") state = value;
    else input.push(value);
  }
  if (state !== undefined) return { task: rest, from: { state, input } };
  if (input.length > 0)
    throw usageError("--input needs --from: the task is the input of a run that starts at its beginning");
  return { task: rest };
}

export const check: Command = {
  name: "check",
  description: "check workflow files, by default all of this folder",
  usage: "[workflow]",
  takes: [{ kind: "pipeline", optional: true }],
  run: async (words, app) => {
    const name = words.trim();
    const lines = await app.engine.check(name === "" ? undefined : name);
    if (lines.length === 1) app.say(lines[0] ?? "");
    else
      app.show(
        createViewer(
          "Check",
          fixedRows((width) => lines.flatMap((line) => checkRows(line, width))),
        ),
      );
  },
};

/** Source lines are not wrapped, so that their carets stay below them. */
function checkRows(line: string, width: number): readonly Line[] {
  const style = line.includes(": error: ") ? "bad" : line.includes(": warning: ") ? "notice" : "plain";
  return /^ {2}/.test(line) ? [[spanOf(line)]] : wrap([{ text: line, style }], width);
}

export const demo: Command = {
  name: "demo",
  description: "run codeReview on a sample repository, offline, with a scripted model",
  usage: "",
  run: async (_words, app) => app.turnTo(await app.engine.startDemo()),
};

export const resume: Command = {
  name: "resume",
  description: "resume a suspended run",
  usage: `[run] [${ALLOW_CHANGED}]`,
  takes: [{ kind: "run", optional: true }],
  run: async (words, app) => {
    const { rest, ...options } = continueOptions(words);
    const runId = rest === "" ? await lastSuspended(app) : (await app.find(rest)).runId;
    app.turnTo(await app.engine.resume(runId, options));
  },
};

export const fork: Command = {
  name: "fork",
  description: "continue in a new run from just before an execution; file changes are not rolled back",
  usage: `<execution> [run] [${ALLOW_CHANGED}]`,
  takes: [{ kind: "execution" }, { kind: "run", optional: true }],
  run: async (words, app) => {
    const { rest, ...options } = continueOptions(words);
    const all = rest.split(" ");
    // Only an execution id contains a #.
    const from = all.find((word) => word.includes("#"));
    const named = all.find((word) => word !== from) ?? "";
    const { runId } = await app.named(named);
    app.turnTo(await app.engine.fork(runId, from, options));
  },
};

/** The words without the option, and whether it was set. */
function continueOptions(words: string): { readonly rest: string; readonly allowChanged: boolean } {
  const all = words.split(/\s+/).filter((word) => word !== "");
  const rest = all.filter((word) => word !== ALLOW_CHANGED);
  return { rest: rest.join(" "), allowChanged: rest.length < all.length };
}

export const cancel: Command = {
  name: "cancel",
  description: "cancel a run",
  usage: "[run]",
  takes: [{ kind: "run", optional: true }],
  run: async (words, app) => {
    const { runId, host } = await app.named(words);
    const outcome = await host.cancel(runId, `cancelled by ${userName()}`, userName());
    app.say(CANCELLED[outcome](runId), outcome === "unknown" ? "bad" : "notice");
  },
};

export const interrupt: Command = {
  name: "interrupt",
  description: "interrupt what a run does now; /resume enters those states again",
  usage: "[run] [reason]",
  takes: [{ kind: "run", optional: true }],
  run: async (words, app) => {
    const [first = "", ...rest] = words.split(/\s+/).filter((word) => word !== "");
    const { run, reason } = await namedWithReason(first, rest, app);
    const secrets = await app.engine.secretsToward(run.runId, run.host);
    await interruptRun(run.host, run.runId, secrets.text(reason), secrets.text(userName()));
    app.say(`run ${run.runId} is being interrupted; /resume enters the interrupted states again`, "notice");
  },
};

/** The run that the first word names; words that name none are the reason for the run on screen. */
async function namedWithReason(
  first: string,
  rest: readonly string[],
  app: Steering,
): Promise<{ readonly run: KnownRun; readonly reason: string }> {
  const focus = app.focus();
  if (focus === undefined || first === "") return { run: await app.named(first), reason: rest.join(" ") };
  const isRun = (await app.engine.list()).some(({ runId }) => runId.startsWith(first));
  if (isRun) return { run: await app.find(first), reason: rest.join(" ") };
  return { run: focus.run, reason: [first, ...rest].join(" ") };
}

export const later: Command = {
  name: "later",
  description: "send a message that the next state with an agent reads",
  usage: "<message>",
  run: async (words, app) => {
    if (words.trim() === "") throw usageError("write /later <message>");
    await app.send(await app.named(""), words, "followUp");
    app.say("sent; the next state that an agent runs reads it", "good");
  },
};

const CANCELLED = {
  requested: (runId: string) => `cancellation of run ${runId} is requested`,
  cancelled: (runId: string) => `run ${runId} is cancelled`,
  finished: (runId: string) => `run ${runId} has already ended`,
  unknown: (runId: string) => `there is no run ${runId}`,
} as const;

async function lastSuspended({ engine }: Steering): Promise<string> {
  const isSuspended = ({ status }: { readonly status: string }): boolean => status === "suspended";
  const last = (await engine.list()).find(isSuspended);
  if (last === undefined) throw new SluiceError("Session", "run_unknown", "no run of this store is suspended");
  return last.runId;
}
