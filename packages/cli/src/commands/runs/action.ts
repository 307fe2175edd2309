import { field, isSluiceError, type JsonObject, type RunHost, type RunSummary } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { table } from "@sluice/view/text";
import { moment, oneLine, originOf, readRunStarted, textAt } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { timeWithCountdown } from "../../output/countdown.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import { toneOf } from "../../output/reporter.ts";
import { asShown } from "../../output/run-report.ts";
import { withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

type RunsFlags = CommonFlags & { readonly limit: number; readonly sleeping?: boolean };

/** `sluice runs`: the runs of the store, newest first. */
export async function runs(context: CommandContext, flags: RunsFlags): Promise<number> {
  const { terminal } = context;
  const place = await projectsHere(flags, context).place();
  let listed: readonly JsonObject[] = [];
  let more = false;
  try {
    listed = await withStore(place, async (host) => {
      const all =
        flags.sleeping === true ? await sleepers(host, flags.limit + 1) : await host.list({ limit: flags.limit + 1 });
      more = all.length > flags.limit;
      return await Promise.all(all.slice(0, flags.limit).map((run) => listedRun(host, run)));
    });
  } catch (thrown) {
    // A missing default store has no runs; a store that was named must exist.
    if (!isSluiceError(thrown, "store_missing") || flags.store !== undefined) throw thrown;
  }
  write(flags.outputFormat, terminal, {
    json: { store: place.store, more },
    items: { key: "runs", each: listed },
    text: () => {
      if (listed.length === 0)
        return [`no ${flags.sleeping === true ? "sleeping " : ""}runs in ${oneLine(place.store, 1_000)}`];
      const rows = table([["RUN", "STATUS", "STARTED", "PIPELINE", "TASK"], ...listed.map(rowOf)]);
      const [head = "", ...lines] = rows;
      const painted = lines.map((line, at) =>
        line.replace(/ {2}\S+/, (cell) => terminal.paint("out", toneOf(textAt(listed[at], "status")), cell)),
      );
      return [
        terminal.paint("out", "strong", head),
        ...painted,
        ...(more ? [`${flags.sleeping === true ? "more" : "older"} runs exist; --limit shows more`] : []),
      ];
    },
  });
  return EXIT.completed;
}

/** The runs that continue by themselves, whenever that is. */
async function sleepers(host: RunHost, limit: number): Promise<readonly RunSummary[]> {
  const { runs } = await host.due(limit, Number.MAX_SAFE_INTEGER);
  const found = await Promise.all(runs.map((runId) => host.get(runId)));
  return found.filter((run) => run !== undefined);
}

async function listedRun(host: RunHost, run: RunSummary): Promise<JsonObject> {
  const started = await startOf(host, run.runId);
  const waiting = run.end === undefined ? (await host.requests(run.runId)).length : 0;
  return {
    runId: run.runId,
    status: run.status,
    ...(run.suspended === undefined ? {} : { suspended: run.suspended }),
    ...(run.faults === undefined ? {} : { faults: run.faults.map((fault) => asShown(fault)) }),
    ...(run.wakeAt === undefined ? {} : { wakeAt: run.wakeAt }),
    ...(run.owner === undefined ? {} : { owner: run.owner }),
    openRequests: waiting,
    createdAt: run.createdAt,
    ...started,
    records: run.records,
    head: run.head,
  };
}

/** An unreadable journal must not hide the other runs. */
async function startOf(host: RunHost, runId: string): Promise<JsonObject> {
  try {
    const { pipeline, input, forkedFrom, from, agent } = await readRunStarted(host, runId);
    return {
      ...(agent === undefined ? {} : { agent }),
      ...(forkedFrom === undefined ? {} : { forkedFrom }),
      ...(from === undefined ? {} : { from }),
      pipeline: typeof pipeline === "string" ? pipeline : "",
      task: input === undefined ? "" : textAt(input, "task"),
    };
  } catch (thrown) {
    return { pipeline: "", task: "", fault: messageOf(thrown) };
  }
}

function rowOf(run: JsonObject): readonly string[] {
  const waiting = Number(field(run, "openRequests")) > 0 ? " (waiting for an answer)" : "";
  const task = oneLine(textAt(run, "task"), 60);
  const origin = originOf(run) === "" ? "" : ` (${oneLine(originOf(run))})`;
  const driver = textAt(field(run, "agent"), "name");
  const agent = driver === "" ? "" : ` (agent ${driver})`;
  const wakeAt = field(run, "wakeAt");
  const wakes = typeof wakeAt === "number" ? ` (wakes at ${timeWithCountdown(wakeAt, Date.now())})` : "";
  const faults = field(run, "faults");
  const code = Array.isArray(faults) && faults[0] !== undefined ? textAt(faults[0], "code") : "";
  const fault = code === "" ? "" : ` (the provider failed: ${oneLine(code)})`;
  const createdAt = field(run, "createdAt");
  return [
    oneLine(textAt(run, "runId")),
    textAt(run, "suspended") === "sleeping" ? "sleeping" : textAt(run, "status"),
    moment(typeof createdAt === "number" ? createdAt : 0),
    oneLine(textAt(run, "fault") === "" ? `${textAt(run, "pipeline")}${agent}` : "(unreadable)", 60),
    `${task}${origin}${waiting}${fault}${wakes}`,
  ];
}
