import type { JsonObject, RunHost, RunSummary } from "@sluice/core";
import {
  type ExecutionView,
  elapsed,
  flatGroupsOf,
  moneyOf,
  type RunView,
  span,
  stateLabel,
  symbolOf,
  timeLeft,
  workedMs,
} from "@sluice/view";
import { routeLines } from "@sluice/view/routes";
import { cleanInline, columns, editDiff, type Line, type Rows, type Style, spanOf, wrap } from "@sluice/view/text";
import {
  count,
  eventsOf,
  executionName,
  moment,
  oneLine,
  originOf,
  readRunStarted,
  shortKey,
  textAt,
  type Verdict,
} from "@sluice/view/words";
import { type Command, type Steering, usageError } from "../app/command.ts";
import { createViewer, fixedRows } from "../app/overlay/viewer.ts";
import { costLines } from "../run/cost.ts";
import { findRow } from "../run/find-row.ts";
import { graph as graphLines } from "../run/graph.ts";
import { searchText, type TimelineFilter, type TimelineRow, timeline, timelineLine } from "../run/timeline.ts";

/** Runs that are listed; the first record of each is read. */
const MAX_RUNS = 200;

export const runs: Command = {
  name: "runs",
  description: "list the runs in this store; Enter opens one",
  usage: "",
  run: async (_words, app) => {
    const store = await app.engine.store();
    const newest = (await store?.host.list({ limit: MAX_RUNS + 1 })) ?? [];
    if (store === undefined || newest.length === 0) {
      app.say("there are no runs here yet");
      return;
    }
    const listed = newest.slice(0, MAX_RUNS);
    const started = await Promise.all(listed.map((run) => startOf(run, store.host)));
    // What sleeps counts down while the list is open.
    const lines = (): readonly Line[] => columns(listed.map((run, at) => cellsOf(run, started[at], app.now())));
    const rows: Rows = { ...fixedRows(lines), slice: (from, to) => lines().slice(from, to) };
    const ticks = listed.some(({ status, wakeAt }) => status === "suspended" && wakeAt !== undefined);
    const title = newest.length > MAX_RUNS ? `The newest ${MAX_RUNS} runs` : `Runs (${newest.length})`;
    app.show(createViewer(title, rows, { selectable: true, ticks }), (row) => {
      const chosen = listed[row];
      if (chosen !== undefined) void app.perform(async () => app.turnTo(await app.find(chosen.runId)));
    });
  },
};

/** An unreadable journal must not hide the others. */
async function startOf({ runId }: RunSummary, host: RunHost): Promise<JsonObject | undefined> {
  return await readRunStarted(host, runId).catch(() => undefined);
}

function cellsOf(run: RunSummary, started: JsonObject | undefined, now: number): readonly Line[] {
  const pipeline = textAt(started, "pipeline") || "(unreadable)";
  const origin = originOf(started);
  return [
    [spanOf(run.runId, "accent")],
    [spanOf(statusOf(run, now), STYLES[run.status])],
    [spanOf(moment(run.createdAt), "dim")],
    [spanOf(oneLine(pipeline, 24))],
    [
      spanOf(oneLine(textAt(started?.input, "task"), 120)),
      ...(origin === "" ? [] : [spanOf(` ${oneLine(origin, 80)}`, "dim")]),
    ],
  ];
}

function statusOf({ status, suspended, owner = "?", wakeAt }: RunSummary, now: number): string {
  if (status === "running") return `running in ${oneLine(owner, 30)}`;
  if (status !== "suspended") return status;
  const words = suspended === undefined ? status : SUSPENDED[suspended];
  if (wakeAt === undefined) return words;
  // What waits for an answer continues at its deadline without one.
  const time = suspended === "waiting" ? `${timeLeft(wakeAt, now)} left` : `wakes in ${timeLeft(wakeAt, now)}`;
  return `${words} · ${wakeAt <= now ? "due" : time}`;
}

const SUSPENDED: Readonly<Record<NonNullable<RunSummary["suspended"]>, string>> = {
  sleeping: "☾ sleeping",
  waiting: "suspended (waits)",
  interrupted: "suspended",
  provider: "suspended (provider)",
};

const STYLES: Readonly<Record<RunSummary["status"], Style>> = {
  running: "accent",
  suspended: "notice",
  completed: "good",
  failed: "bad",
  cancelled: "bad",
};

export const show: Command = {
  name: "show",
  description: "show a run of any process, or one of its stages; an item of a list by its key",
  usage: "[run | stage | item]",
  takes: [{ kind: "run", optional: true }],
  run: async (words, app) => {
    const view = app.focus()?.view;
    const isNamed = (one: ExecutionView): boolean =>
      [one.stateId, one.executionId, one.item, executionName(one)].includes(words);
    const stage = view?.executions.findLast(isNamed);
    if (words === "" || stage !== undefined) app.showTranscript(stage?.key);
    else app.turnTo(await app.find(words));
  },
};

export const audit: Command = {
  name: "audit",
  description: "show every decision of a run, with who decided and why; Enter opens its stage",
  usage: "[run] [stage:… tool:… verdict:approved|refused words]",
  takes: [{ kind: "run", optional: true }],
  run: async (words, app) => {
    const { first, filter, rest } = readFilter(words);
    const run = await app.named(first);
    const events = await eventsOf(run.host, run.runId);
    const rows = timeline(events, filter);
    const startedAt = events[0]?.at ?? 0;
    const filtered = rest === "" ? "" : ` · ${rest}`;
    const lines = timelineRows(rows, startedAt);
    const title = `Audit of ${run.runId} · ${rows.length} of ${events.length} boundaries${filtered}`;
    app.show(createViewer(title, lines, { selectable: true }), (row) => {
      if (app.focus()?.run.runId !== run.runId) app.turnTo(run);
      app.showTranscript(rows[row]?.key);
    });
  },
};

function timelineRows(rows: readonly TimelineRow[], startedAt: number): Rows {
  return {
    count: () => rows.length,
    slice: (from, to, width) => rows.slice(from, to).map((row) => timelineLine(row, { width: width - 2, startedAt })),
    find: (text, from, _width, back) =>
      findRow(rows, (row) => searchText(row).includes(text.toLowerCase()), from, back),
  };
}

/** `/audit [run] stage:plan tool:Bash verdict:refused words`: the first word is the run if it looks like a run id. */
function readFilter(words: string): { readonly first: string; readonly filter: TimelineFilter; readonly rest: string } {
  const parts = words.split(/\s+/).filter((word) => word !== "");
  const first = parts[0] !== undefined && /^r[a-z0-9]{3,}$/.test(parts[0]) ? parts[0] : "";
  const rest = first === "" ? parts : parts.slice(1);
  const named = (name: string): string | undefined =>
    rest.find((word) => word.startsWith(`${name}:`))?.slice(name.length + 1);
  const verdicts: readonly Verdict[] = ["approved", "refused"];
  const verdict = verdicts.find((known) => known === named("verdict"));
  const stage = named("stage");
  const tool = named("tool");
  const text = rest.filter((word) => !/^(stage|tool|verdict):/.test(word)).join(" ");
  return {
    first,
    rest: rest.join(" "),
    filter: {
      ...(stage === undefined ? {} : { stage }),
      ...(tool === undefined ? {} : { tool }),
      ...(verdict === undefined ? {} : { verdict }),
      ...(text === "" ? {} : { text }),
    },
  };
}

export const graph: Command = {
  name: "graph",
  description: "show the pipeline and the path taken",
  usage: "",
  run: (_words, app) => {
    const { view } = runOnScreen(app);
    const rows = fixedRows((width) => graphLines(view, { width }));
    app.show(createViewer(`${cleanInline(view.pipeline)} · ${view.runId}`, rows));
  },
};

export const routes: Command = {
  name: "routes",
  description: "show every decision about a route, with the rows of the table that it looked at",
  usage: "",
  run: (_words, app) => {
    const { view } = runOnScreen(app);
    const rows = fixedRows((width) => routeLines(view).flatMap((line) => wrap(line, width)));
    if (view.routes.length === 0) app.say("no route was decided yet");
    else app.show(createViewer(`Routes of ${view.runId}`, rows, { atEnd: true }));
  },
};

export const cost: Command = {
  name: "cost",
  description: "show tokens and cost by stage and model",
  usage: "",
  run: (_words, app) => {
    const { view } = runOnScreen(app);
    const now = app.now();
    const rows = fixedRows((width) => costLines(view, { width, now }));
    app.show(createViewer(`Cost of ${view.runId}`, rows));
  },
};

export const items: Command = {
  name: "items",
  description: "list the items of the run's last list; Enter opens one's transcript",
  usage: "[failed | active | words]",
  run: (words, app) => {
    const { view } = runOnScreen(app);
    const list = flatGroupsOf(view).findLast((group) => group.kind === "list");
    if (list?.kind !== "list") {
      app.say("no state of this run has run over a list");
      return;
    }
    const shown = list.items.executions.filter((one) => isWanted(one, words));
    const now = app.now();
    const rows = fixedRows(() =>
      columns(
        shown.map((execution) => itemCells(execution, now)),
        2,
      ),
    );
    const title = `${stateLabel(list.first.executionId)}: ${shown.length} of ${count(list.items.total, "item")}`;
    app.show(createViewer(title, rows, { selectable: true }), (row) => app.showTranscript(shown[row]?.key));
  },
};

function isWanted({ item, stateId, status, endedAt }: ExecutionView, words: string): boolean {
  if (words === "active") return endedAt === undefined;
  return words === "" || status === words || (item ?? stateId).includes(words);
}

/** UTF-16 units of an item's key in a list. */
const LONGEST_KEY = 48;

function itemCells(execution: ExecutionView, now: number): readonly Line[] {
  const { item, stateId, status, turns, usage, fault } = execution;
  const { sign, word, style } = symbolOf(status);
  return [
    [span(`${sign} ${word}`, style)],
    [
      span(shortKey(item ?? stateId, LONGEST_KEY)),
      ...(fault === undefined ? [] : [span(` ${oneLine(fault, 80)}`, "dim")]),
    ],
    [span(count(turns, "turn"), "dim")],
    [span(moneyOf(usage), "dim")],
    [span(elapsed(workedMs(execution, now)), "dim")],
  ];
}

export const diff: Command = {
  name: "diff",
  description: "show the edits that the run's tools made",
  usage: "",
  run: (_words, app) => {
    const { view } = runOnScreen(app);
    const edits = view.executions.flatMap((execution) =>
      [...execution.items].flatMap((item) =>
        item.kind === "call" && item.state === "ok" && (item.tool === "Edit" || item.tool === "Write")
          ? [{ execution, item }]
          : [],
      ),
    );
    if (edits.length === 0) {
      app.say("no Edit or Write of this run changed a file; changes by commands are not listed");
      return;
    }
    const lines = fixedRows((width) => [
      ...edits.flatMap(({ execution, item }): readonly Line[] => [
        [spanOf(`${stateLabel(executionName(execution))} · ${item.callId}`, "dim")],
        ...(editDiff(item.tool, item.input, { width }) ?? []),
        [],
      ]),
      ...wrap([{ text: "Changes by commands are not listed.", style: "dim" }], width),
    ]);
    app.show(createViewer(`Edits of ${view.runId} (${edits.length})`, lines));
  },
};

export const tools: Command = {
  name: "tools",
  description: "list the tools that each stage may use without approval",
  usage: "",
  run: (_words, app) => {
    const { view } = runOnScreen(app);
    const lines = fixedRows(() =>
      view.executions.flatMap((execution): readonly Line[] => [
        [
          spanOf(stateLabel(executionName(execution)), "accent"),
          { text: execution.status === "running" ? "  running" : "", style: "dim" },
        ],
        [spanOf(`  ${(execution.tools ?? []).join(", ") || "no tools"}`)],
      ]),
    );
    app.show(createViewer(`Tools of ${cleanInline(view.pipeline)}; any other call needs your approval`, lines));
  },
};

function runOnScreen(app: Steering): { readonly view: RunView } {
  const focus = app.focus();
  if (focus === undefined) throw usageError("no run is on screen; /run starts one, /runs lists them");
  return focus;
}
