import { field, type Json, type RunEnd, readOutcome, redactJson, redactText, type SluiceEvent } from "@sluice/core";
import { textAt } from "../words/fields.ts";
import { executionKey } from "./execution-reducer.ts";
import type { CapView, RunEndItem, RunView } from "./run-view.ts";

type HeadView = Omit<
  RunView,
  "initial" | "states" | "executions" | "path" | "forks" | "requests" | "usage" | "last" | "log"
>;

/** What is known of a run as a whole. */
export class RunHead {
  readonly runId: string;
  readonly #caps = new Map<string, CapView>();
  #view: HeadView;

  constructor(runId: string) {
    this.runId = runId;
    const unknown = { pipeline: "", task: "", models: [], mode: "", cwd: "", caps: [], denied: 0, startedAt: 0 };
    this.#view = { runId, streams: false, status: "starting", ...unknown };
  }

  get ended(): boolean {
    const { status } = this.#view;
    return status === "completed" || status === "failed" || status === "cancelled";
  }

  get suspended(): boolean {
    return this.#view.status === "suspended";
  }

  view(): HeadView {
    return this.#view;
  }

  start({ data, at }: SluiceEvent): void {
    this.#view = {
      ...this.#view,
      status: "running",
      pipeline: textAt(data, "pipeline"),
      task: textAt(field(data, "input"), "task"),
      models: namesAt(data, "models"),
      secrets: namesAt(data, "secrets"),
      mode: textAt(data, "mode"),
      cwd: textAt(data, "cwd"),
      startedAt: at,
    };
  }

  streams(): void {
    this.#view = { ...this.#view, streams: true };
  }

  suspend(suspended: boolean): void {
    this.#view = { ...this.#view, status: suspended ? "suspended" : "running" };
  }

  decided({ data }: SluiceEvent): void {
    if (textAt(data, "verdict") !== "refused" || field(data, "cause") === undefined) return;
    this.#view = { ...this.#view, denied: this.#view.denied + 1 };
  }

  /** The last thing said of each cap counts. */
  limit({ type, data, runId, executionId }: SluiceEvent): void {
    const limit = textAt(data, "limit");
    const key = executionId === undefined ? undefined : executionKey(runId, executionId);
    const [used, max] = [field(data, "used"), field(data, "max")];
    this.#caps.set(JSON.stringify([key ?? null, limit]), {
      ...(key === undefined ? {} : { key }),
      limit,
      message: textAt(data, "message"),
      reached: type === "limit.reached",
      ...(typeof used === "number" ? { used } : {}),
      ...(typeof max === "number" ? { max } : {}),
    });
    this.#view = { ...this.#view, caps: [...this.#caps.values()] };
  }

  /** `end` says more than the event: what the run returned. */
  finish({ data, at }: SluiceEvent, end: RunEnd | undefined): RunEndItem {
    const status = end?.status ?? statusAt(data);
    const { output, error = errorAt(data, status) } = end === undefined ? {} : readOutcome(end);
    const told = {
      ...(output === undefined ? {} : { output: redactJson(output) }),
      ...(error === undefined ? {} : { error: { code: error.code, message: redactText(error.message) } }),
    };
    this.#view = { ...this.#view, ...told, status, endedAt: at };
    return { kind: "end", status, ...told };
  }
}

function namesAt(data: Json, key: string): readonly string[] {
  const names = field(data, key);
  return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
}

function statusAt(data: Json): RunEnd["status"] {
  const status = textAt(data, "status");
  return status === "completed" || status === "cancelled" ? status : "failed";
}

function errorAt(data: Json, status: RunEnd["status"]): RunEndItem["error"] {
  if (status === "completed") return undefined;
  const error = field(data, "error");
  const message = textAt(error, "message") || textAt(data, "reason") || status;
  return { code: textAt(error, "code") || status, message };
}
