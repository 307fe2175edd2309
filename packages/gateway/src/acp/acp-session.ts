// One session of a client: its prompts start and continue runs, one at a time.
import { resolve } from "node:path";
import type { AgentContext, AvailableCommand, SessionUpdate, StopReason } from "@agentclientprotocol/sdk";
import { methods, RequestError } from "@agentclientprotocol/sdk";
import type { Clock, Interactor } from "@sluice/core";
import { TreeReader } from "@sluice/core/host";
import { type RunView, reduceRun } from "@sluice/view";
import { readRecord, watchRun } from "@sluice/view/records";
import type { AcpRun, AcpWorkspace, OpenWorkspace, SessionStore } from "./acp-workspace.ts";
import type { ClientAsker } from "./ask-client.ts";
import { RESUME, readPrompt } from "./prompt-text.ts";
import { promptEnd } from "./result-text.ts";
import { createRunUpdates } from "./run-updates.ts";
import { createShownRequests } from "./shown-requests.ts";

export interface AcpSession {
  /** Absolute. */
  readonly cwd: string;
  readonly isBusy: boolean;
  /** Runs what the prompt asks for. Throws RequestError while another prompt runs. */
  prompt(text: string): Promise<StopReason>;
  /** Cancels the run of the current prompt. */
  cancel(): void;
  /** Sends what the session's runs did up to now. */
  replay(): Promise<void>;
  /** Sends the commands that a prompt may begin with. */
  announce(): Promise<void>;
  /** Suspends the run and closes the workspace. */
  close(): Promise<void>;
}

export interface AcpSessionOptions {
  readonly sessionId: string;
  readonly cwd: string;
  /** The runs that the session had in earlier processes. */
  readonly runIds: readonly string[];
  readonly client: Pick<AgentContext, "notify" | "request">;
  /** Answers the requests of its runs; `flush` waits until the client has every update up to the open request. */
  readonly interactor: (flush: ClientAsker["flush"]) => Interactor;
  readonly open: OpenWorkspace;
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly onFault: (message: string) => void;
}

const CANCELLED_BY_CLIENT = "cancelled by the client";

export async function createAcpSession(options: AcpSessionOptions): Promise<AcpSession> {
  const { sessionId, client, clock, onFault } = options;
  const cwd = resolve(options.cwd);
  let sent: Promise<void> = Promise.resolve();
  const send = (update: SessionUpdate): void => {
    sent = sent
      .then(() => client.notify(methods.client.session.update, { sessionId, update }))
      .catch((thrown: unknown) => onFault(`an update could not be sent: ${String(thrown)}`));
  };
  const shown = createShownRequests(clock);
  const workspace = await options.open(
    cwd,
    options.interactor(async (request, signal) => {
      await shown.until(request, signal);
      await sent;
    }),
  );
  const runIds = [...options.runIds];
  let isBusy = false;
  let isCancelled = false;
  let active: AcpRun | undefined;

  const say = (text: string): void => send({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

  const cancelRun = (run: AcpRun): void => {
    run.handle
      ?.cancel(CANCELLED_BY_CLIENT)
      .catch((thrown: unknown) => onFault(`the run could not be cancelled: ${String(thrown)}`));
  };

  /** Shows the run until it ends or is suspended. */
  const follow = async (run: AcpRun): Promise<StopReason> => {
    const { host, runId, handle } = run;
    if (handle === undefined) throw RequestError.internalError(undefined, `run ${runId} does not execute here`);
    const updates = createRunUpdates(send);
    const onError = (thrown: unknown): void => onFault(`the run could not be read: ${String(thrown)}`);
    const watch = watchRun(host, runId, { handle, clock, onError });
    watch.subscribe(() => {
      const view = watch.view();
      updates.show(view);
      shown.show(view);
    });
    try {
      active = run;
      if (isCancelled) cancelRun(run);
      const result = await handle;
      watch.close();
      updates.show(await readView(run, onError));
      const end = promptEnd(result, run);
      say(end.text);
      return isCancelled && result.status !== "completed" ? "cancelled" : end.stopReason;
    } finally {
      active = undefined;
      watch.close();
    }
  };

  /** A run by its whole id: a shortened one could be that of another run later. */
  const findRun = async (runId: string): Promise<AcpRun> => {
    const run = await workspace.find(runId);
    if (run.runId === runId) return run;
    throw RequestError.resourceNotFound(runId);
  };

  const begin = async (text: string): Promise<AcpRun> => {
    const asked = readPrompt(text, await workspace.pipelines());
    switch (asked.kind) {
      case "refused":
        throw RequestError.invalidParams(undefined, asked.why);
      case "resume": {
        const latest = runIds.at(-1);
        if (latest === undefined) throw RequestError.invalidParams(undefined, "this session has no run to continue");
        if (asked.message !== "") await workspace.message(await findRun(latest), asked.message);
        return await workspace.resume(latest);
      }
      case "start": {
        const run = await workspace.start(asked.pipeline, asked.task);
        runIds.push(run.runId);
        options.store.remember(sessionId, { cwd, runIds });
        return run;
      }
    }
  };

  return {
    cwd,
    get isBusy() {
      return isBusy;
    },
    async prompt(text) {
      if (isBusy)
        throw RequestError.invalidRequest(undefined, "this session already runs a prompt; cancel it, or wait");
      isBusy = true;
      isCancelled = false;
      try {
        return await follow(await begin(text));
      } finally {
        isBusy = false;
        await sent;
      }
    },
    cancel() {
      if (!isBusy) return;
      isCancelled = true;
      if (active !== undefined) cancelRun(active);
    },
    async replay() {
      for (const runId of runIds) {
        const run = await findRun(runId);
        const view = await readView(run, (thrown) => onFault(`the run could not be read: ${String(thrown)}`));
        const task = view.task === "" ? `/${view.pipeline}` : `/${view.pipeline} ${view.task}`;
        send({ sessionUpdate: "user_message_chunk", content: { type: "text", text: task } });
        createRunUpdates(send).show(view);
        say(replayedEnd(view, run));
      }
      await sent;
    },
    async announce() {
      send({ sessionUpdate: "available_commands_update", availableCommands: await commandsOf(workspace) });
      await sent;
    },
    close: () => workspace.close(),
  };
}

/** The view of a run, from its records. */
async function readView({ host, runId }: AcpRun, onError: (thrown: unknown) => void): Promise<RunView> {
  const reducer = reduceRun(runId);
  const tree = new TreeReader((id: string, from: number, limit: number) => host.records(id, from, limit));
  for await (const placed of tree.read(await host.tree(runId))) reducer.record(readRecord(placed, onError));
  return reducer.view();
}

function replayedEnd({ status, runId, error }: RunView, run: AcpRun): string {
  if (status === "completed" || status === "failed" || status === "cancelled") {
    const why = error === undefined ? "" : `: ${error.message}`;
    return `\n\nRun ${runId} ${status}${why}\n\nDetails: \`${run.showCommand()}\`\n`;
  }
  return `\n\nRun ${runId} has not ended. Continue it with /${RESUME}, or in a terminal: \`${run.resumeCommand()}\`\n`;
}

async function commandsOf(workspace: AcpWorkspace): Promise<AvailableCommand[]> {
  const { names } = await workspace.pipelines();
  return [
    ...names.map((name) => ({ name, description: `Run the pipeline ${name}`, input: { hint: "the task" } })),
    {
      name: RESUME,
      description: "Continue the latest run of this session",
      input: { hint: "a message to the agent that works (optional)" },
    },
  ];
}
