import { field, type Json, type RunEnd, type SluiceEvent } from "@sluice/core";
import { readOutcome, redactJson, redactText } from "@sluice/core/runtime";
import { endStateOf } from "../words/describe-event.ts";
import { agentOf, originOf, textAt, textsAt } from "../words/fields.ts";
import { shownError } from "../words/words.ts";
import { executionKey } from "./execution-reducer.ts";
import type { CapView, DeniedCall, LastWord, RunEndItem, RunView } from "./run-view.ts";

type HeadView = Pick<
  RunView,
  | "runId"
  | "pipeline"
  | "task"
  | "input"
  | "origin"
  | "models"
  | "agent"
  | "secrets"
  | "mode"
  | "cwd"
  | "status"
  | "caps"
> &
  Pick<RunView, "denied" | "startedAt" | "endedAt" | "endState" | "meta" | "output" | "error" | "lastWord" | "streams">;

/** Facts about a run as a whole. */
export class RunHead {
  readonly runId: string;
  readonly #caps = new Map<string, CapView>();
  readonly #denied: DeniedCall[] = [];
  #view: HeadView;
  #wakes = false;

  constructor(runId: string) {
    this.runId = runId;
    const unknown = { pipeline: "", task: "", origin: "", models: [], mode: "", cwd: "", startedAt: 0, meta: {} };
    this.#view = { runId, streams: false, status: "starting", ...unknown, caps: [], denied: [] };
  }

  get ended(): boolean {
    const { status } = this.#view;
    return status === "completed" || status === "failed" || status === "cancelled";
  }

  get suspended(): boolean {
    return this.#view.status === "suspended";
  }

  /** Whether it continues by itself while it is suspended. */
  get wakes(): boolean {
    return this.#wakes;
  }

  view(): HeadView {
    return this.#view;
  }

  start({ data, at }: SluiceEvent): void {
    const agent = agentOf(data);
    this.#change({
      ...(agent === "" ? {} : { agent }),
      status: "running",
      pipeline: textAt(data, "pipeline"),
      task: textAt(field(data, "input"), "task"),
      input: data.input ?? null,
      origin: originOf(data),
      models: textsAt(data, "models"),
      secrets: textsAt(data, "secrets"),
      mode: textAt(data, "mode"),
      cwd: textAt(data, "cwd"),
      startedAt: at,
      meta: metaAt(data),
    });
  }

  /** A run continues with a changed pipeline: what either of them keeps out of reports stays out. */
  continued({ data }: SluiceEvent): void {
    const { agent: before = "" } = this.#view;
    const agent = agentOf(data);
    if (agent !== "" && !before.split(THEN).includes(agent))
      this.#change({ agent: before === "" ? agent : `${before}${THEN}${agent}` });
    const { changed } = data;
    if (changed === undefined) return;
    const withheld = this.#view.meta.captureOutput === false ? { captureOutput: false as const } : {};
    this.#change({ meta: { ...metaAt(changed), ...withheld } });
  }

  setStreams(): void {
    this.#change({ streams: true });
  }

  suspend(suspended: boolean, wakes: boolean): void {
    this.#wakes = wakes;
    this.#change({ status: suspended ? "suspended" : "running" });
  }

  decided({ data, runId, executionId = "", attempt = 1 }: SluiceEvent): void {
    if (data.verdict !== "refused" || data.cause === undefined) return;
    const call = { callId: textAt(data, "callId"), tool: textAt(data, "tool"), cause: textAt(data, "cause") };
    this.#denied.push({ runId, executionId, attempt, ...call });
    this.#change({ denied: [...this.#denied] });
  }

  /** A later event of the same limit replaces the earlier one. */
  limit({ type, data, runId, executionId }: SluiceEvent): void {
    const limit = textAt(data, "limit");
    const key = executionId === undefined ? undefined : executionKey(runId, executionId);
    const { used, max } = data;
    this.#caps.set(JSON.stringify([key ?? null, limit]), {
      ...(key === undefined ? {} : { key }),
      limit,
      message: textAt(data, "message"),
      reached: type === "limit.reached",
      ...(typeof used === "number" ? { used } : {}),
      ...(typeof max === "number" ? { max } : {}),
    });
    this.#change({ caps: [...this.#caps.values()] });
  }

  /** `end` has what the event lacks: the output. */
  finish({ data, at }: SluiceEvent, end: RunEnd | undefined): RunEndItem {
    const status = end?.status ?? statusAt(data);
    const state = endStateOf(data);
    const { output, error = errorAt(data, status) } = end === undefined ? {} : readOutcome(end);
    const said = lastWordAt(data);
    const shown = {
      ...(said === undefined ? {} : { lastWord: said }),
      ...(output === undefined ? {} : { output: redactJson(output) }),
      ...(error === undefined ? {} : { error: shownError(error) }),
    };
    this.#change({ ...shown, status, endedAt: at, ...(state === "" ? {} : { endState: state }) });
    return { kind: "end", status, ...(state === "" ? {} : { state }), ...shown };
  }

  #change(change: Partial<HeadView>): void {
    this.#view = { ...this.#view, ...change };
  }
}

const THEN = ", then ";

function metaAt(data: Json): RunView["meta"] {
  const meta = field(data, "meta");
  const dangerLevel = textAt(meta, "dangerLevel");
  return {
    ...(dangerLevel === "" ? {} : { dangerLevel }),
    ...(field(meta, "captureOutput") === false ? { captureOutput: false } : {}),
  };
}

function lastWordAt(data: Json): LastWord | undefined {
  const said = field(data, "acknowledgement");
  const text = redactText(textAt(said, "text"));
  return text === "" ? undefined : { text, asksForRun: field(said, "followUp") !== undefined };
}

function statusAt(data: Json): RunEnd["status"] {
  const status = textAt(data, "status");
  return status === "completed" || status === "cancelled" ? status : "failed";
}

function errorAt(data: Json, status: RunEnd["status"]): RunEndItem["error"] {
  if (status === "completed") return undefined;
  const error = field(data, "error");
  const message = textAt(error, "message") || textAt(data, "reason") || status;
  const at = textAt(error, "at");
  return { code: textAt(error, "code") || status, message, ...(at === "" ? {} : { at }) };
}
