// Reports what happens in runs to the programs and addresses that a config names. Nothing here changes a run.

import { type Clock, isJsonObject, type Json, type JsonObject, type RunLimits, type SluiceEvent } from "@sluice/core";
import { isQuestion, messageOf, rootRunId, shortened, textField, visible } from "@sluice/core/runtime";
import type { RunHandle } from "@sluice/stages";
import { answerCommand } from "@sluice/tui/user";
import { type RunReducer, reduceRun } from "@sluice/view";
import { textAt } from "@sluice/view/words";
import { NOTIFY_ON, type NotifyOn, type NotifyOption } from "../project/fields/notify-option.ts";
import { createTarget } from "./deliver.ts";

export interface NotifierOptions {
  readonly options: readonly NotifyOption[];
  /** The workspace. */
  readonly cwd: string;
  /** The environment of programs, without secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Masks secrets. */
  readonly mask: (value: Json) => Json;
  /** A command line of the run's project. */
  readonly line: (words: readonly string[]) => string;
  /** Called with the first failure of each target. */
  readonly onFault: (message: string) => void;
}

export interface Notifier {
  /** Reports what happens in a run since a time, and not what was in its journal before. `limits` are the caps of its pipeline. */
  watch(handle: RunHandle<unknown>, since: number, limits: RunLimits): void;
  /** Waits for what is being sent, for at most two seconds. */
  close(): Promise<void>;
}

/** A request that is answered sooner, as by a rule, is not reported. */
const ANSWERED_AT_ONCE_MS = 1_000;
/** The longest that notifications delay the end of a process. */
const CLOSE_MS = 2_000;
/** The share of a cap from which it is reported. */
const NEAR = 0.8;
/** Characters of a text in a notification. */
const LONGEST_TEXT = 2_000;

export function createNotifier(options: NotifierOptions): Notifier {
  const { clock, onFault } = options;
  const targets = options.options.map((option) => ({ option, target: createTarget(option, options) }));
  const watching = new Set<Promise<void>>();
  return {
    watch: (handle, since, limits) => {
      const watched = watchRun(handle, since, limits, options, (on, body, only) => {
        // Masked before it is cut: a part of a secret is no longer known as one.
        const text = JSON.stringify(cut(options.mask(body)));
        for (const { option, target } of targets)
          if ((option.on ?? NOTIFY_ON).includes(on) && (only === undefined || only === option)) target.send(text);
      }).catch((thrown: unknown) => onFault(`the notifications of run ${handle.runId} ended: ${messageOf(thrown)}`));
      watching.add(watched);
      void watched.then(() => watching.delete(watched));
    },
    close: async () => {
      const until = clock.now() + CLOSE_MS;
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const disarm = clock.after(CLOSE_MS, resolve);
      await Promise.race([Promise.all(watching), over]);
      disarm();
      await Promise.all(targets.map(({ target }) => target.close(Math.max(0, until - clock.now()))));
    },
  };
}

/** Sends to every target that wants it, or only to that of one option. */
type Send = (on: NotifyOn, body: JsonObject, only?: NotifyOption) => void;

async function watchRun(
  handle: RunHandle<unknown>,
  since: number,
  limits: RunLimits,
  { options, clock, line, cwd }: NotifierOptions,
  send: Send,
): Promise<void> {
  const { runId } = handle;
  const reducer = reduceRun(runId);
  const waiting = new Map<string, { readonly body: JsonObject; readonly disarm: () => void }>();
  const spentBy = spendingOf(options, limits);
  /** Whether the events are of this process: earlier ones were reported by the process that recorded them. */
  let isNow = false;
  const about = (event: SluiceEvent): JsonObject => {
    const { pipeline, task } = reducer.view();
    return { runId, pipeline, ...(task === "" ? {} : { task }), workspace: cwd, at: event.at };
  };
  const report = (on: NotifyOn, event: SluiceEvent, text: string, more: JsonObject, only?: NotifyOption): void => {
    const { pipeline } = reducer.view();
    // Programs print this line, and others write parts of it.
    const shown = visible(`sluice: run ${runId} (${pipeline}) ${text}`);
    send(on, { event: on, text: shown, ...about(event), ...more }, only);
  };
  const open = (event: SluiceEvent): void => {
    const asked = askedBy(event, line);
    if (asked === undefined) return;
    const { key, text, request } = asked;
    const sendNow = (): void => {
      if (waiting.delete(key)) report("request", event, text, { request });
    };
    waiting.set(key, { body: request, disarm: clock.after(ANSWERED_AT_ONCE_MS, sendNow) });
  };

  const settle = (event: SluiceEvent): void => {
    const key = requestKey(event);
    waiting.get(key)?.disarm();
    waiting.delete(key);
  };
  /** A run that is suspended leaves its requests open. */
  const flush = (event: SluiceEvent): void => {
    for (const { body, disarm } of waiting.values()) {
      disarm();
      report("request", event, `waits for an answer: ${textAt(body, "summary")}`, { request: body });
    }
    waiting.clear();
  };
  const suspended = (event: SluiceEvent): void => {
    flush(event);
    // A sleep is not a stop: the run continues at its time.
    if (event.data.reason === "sleeping") return;
    const isOpen = reducer.view().requests.length > 0;
    const resume = line(["resume", runId, ...(isOpen ? ["--wait"] : [])]);
    const [reason, message] = [textAt(event.data, "reason"), textAt(event.data, "message")];
    const why = message === "" ? reason : `${reason}: ${message}`;
    report("suspended", event, `is suspended (${why}); resume it with: ${resume}`, {
      suspended: { ...event.data, resume },
    });
  };
  const finished = (event: SluiceEvent): void => {
    for (const { disarm } of waiting.values()) disarm();
    waiting.clear();
    const { status, error } = event.data;
    const message = textAt(error ?? null, "message");
    const { usage, denied } = reducer.view();
    const end = message === "" ? textAt(event.data, "status") : `${textAt(event.data, "status")}: ${message}`;
    report("finished", event, `has ended: ${end}`, {
      finished: {
        status: status ?? null,
        ...(isJsonObject(error) ? { error } : {}),
        usage: { ...usage },
        denied: denied.length,
      },
    });
  };

  for await (const event of handle.events) {
    reducer.event(event);
    const isRoot = event.runId === runId;
    if (isRoot && BEGINS.includes(event.type) && event.at >= since) isNow = true;
    const spent = spentBy(event, reducer);
    if (!isNow) continue;
    for (const { text, budget, only } of spent) report("budget", event, text, { budget }, only);
    if (event.type === "grant.requested" || event.type === "request.opened") open(event);
    else if (SETTLES.includes(event.type)) settle(event);
    else if (isRoot && event.type === "run.suspended") suspended(event);
    else if (isRoot && event.type === "run.finished") finished(event);
  }
  for (const { disarm } of waiting.values()) disarm();
}

const BEGINS: readonly string[] = ["run.started", "run.resumed", "run.forked"];
const SETTLES: readonly string[] = ["grant.answered", "grant.expired", "request.answered", "request.expired"];

function requestKey({ runId, data }: SluiceEvent): string {
  return JSON.stringify([runId, data.requestId ?? null]);
}

/** A request, and the lines that show and answer it. */
function askedBy(event: SluiceEvent, line: NotifierOptions["line"]) {
  const { requestId, kind, digest, body } = event.data;
  if (typeof requestId !== "string" || typeof kind !== "string" || typeof digest !== "string") return undefined;
  const said = (name: string): string | undefined => textField(body, name);
  const summary = said("argsSummary") ?? said("question") ?? said("message") ?? kind;
  const why = said("why");
  // A shell must refuse the line if it is pasted unchanged.
  const answers = isQuestion({ kind }) ? "--value <text>" : "<approve, deny or defer>";
  const show = line(["show", rootRunId(event.runId)]);
  const answer = `${line(answerCommand({ runId: event.runId, requestId, digest }))} ${answers}`;
  return {
    key: requestKey(event),
    text: `waits for an answer: ${summary}`,
    // The summary may leave out parts of a call.
    request: { requestId, kind, summary, ...(why === undefined ? {} : { why }), show, answer },
  };
}

interface Overspend {
  readonly text: string;
  readonly budget: JsonObject;
  /** The option whose budget it is; undefined for a cap of the run. */
  readonly only?: NotifyOption;
}

/** An amount that is reported once. */
interface Line {
  readonly limit: string;
  /** The amount from which, or above which, it is reported. */
  readonly at: number;
  readonly max: number;
  readonly only?: NotifyOption;
}

/** What an event makes a run exceed: the budgets of options, and the run's own caps at 80 % and when they are reached. Each once. */
function spendingOf(options: readonly NotifyOption[], limits: RunLimits) {
  const budgets = options.flatMap((only): readonly Line[] =>
    only.budgetUsd === undefined ? [] : [{ limit: "budgetUsd", at: only.budgetUsd, max: only.budgetUsd, only }],
  );
  const caps = CAPS.flatMap((cap): readonly Line[] => {
    const max = limits[cap];
    return max === undefined ? [] : [{ limit: `run.${cap}`, at: max * NEAR, max }];
  });
  let ahead: readonly Line[] = [...budgets, ...caps];
  const reached = new Set<string>();
  return ({ type, data }: SluiceEvent, reducer: RunReducer): readonly Overspend[] => {
    if (type === "limit.reached") {
      const { limit, message = null, max, used } = data;
      if (typeof limit !== "string" || !limit.startsWith("run.") || reached.has(limit)) return [];
      reached.add(limit);
      const amounts = { ...(max === undefined ? {} : { max }), ...(used === undefined ? {} : { used }) };
      return [{ text: `has reached ${limit}: ${textAt(data, "message")}`, budget: { limit, message, ...amounts } }];
    }
    if (ahead.length === 0 || data.usage === undefined) return [];
    const { inputTokens, outputTokens, costUsd = 0 } = reducer.view().usage;
    const usedOf = ({ limit }: Line): number => (limit === "run.maxTokens" ? inputTokens + outputTokens : costUsd);
    const isPast = (one: Line): boolean => (one.only === undefined ? usedOf(one) >= one.at : usedOf(one) > one.at);
    const past = ahead.filter(isPast);
    ahead = ahead.filter((one) => !past.includes(one));
    return past.map((one) => {
      const { limit, max, only } = one;
      const used = usedOf(one);
      const budget = { limit, used, max };
      if (only !== undefined) return { text: `has cost ${dollars(used)}, more than ${dollars(max)}`, budget, only };
      return { text: `has used ${Math.floor((used / max) * 100)} % of ${limit}`, budget };
    });
  };
}

function dollars(amount: number): string {
  return `$${amount.toFixed(amount < 1 ? 4 : 2)}`;
}

const CAPS = ["maxTokens", "maxCostUsd"] as const;

/** The same value with long texts cut. */
function cut(value: Json): Json {
  if (Array.isArray(value)) return value.map(cut);
  if (isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, cut(member)]));
  return typeof value === "string" ? shortened(value, LONGEST_TEXT) : value;
}
