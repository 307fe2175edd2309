import { isSluiceError, type JsonObject, type RunHost, systemClock } from "@sluice/core";
import { redactText, visible, visibleJson } from "@sluice/core/runtime";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import { count, oneLine } from "@sluice/view/words";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, STOPPED, type StopSignal } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import type { ProjectPaths } from "../../project/project-paths.ts";
import { onStopSignal } from "../../runs/follow-run.ts";
import { withStore, withWritableStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";
import { createWaker, type Woken } from "../../waking/waker.ts";
import { wokenJson, wokenText } from "../../waking/words.ts";

export type WakeFlags = CommonFlags & { readonly maxParallel?: number };

const MAX_PARALLEL = 16;
const LONGEST_LINE = 4_000;

/** `sluice wake`: continues the runs that are due now, and ends. */
export async function wake(context: CommandContext, flags: WakeFlags): Promise<number> {
  const { terminal, env } = context;
  refuseInsideRun(readSettings(env), "wake");
  const at = await projectsHere(flags, context).place();
  const results = new Map<string, Woken>();
  let stoppedBy: StopSignal | undefined;
  if (await hasDueRuns(at, flags)) {
    await withWritableStore(at, undefined, async (host) => {
      stoppedBy = await wakeAll(host, at, flags, context, (runId, woken) => {
        results.set(runId, woken);
        const text = `${runId}  ${wokenText(woken, Date.now())}`;
        // One line, so that no message of a run can look like that of another one.
        if (flags.outputFormat === "text") terminal.out(`${oneLine(text, LONGEST_LINE)}\n`);
        if (flags.outputFormat === "stream-json") terminal.out(`${visibleJson(resultOf(runId, woken))}\n`);
      });
    });
  }
  const each = [...results].map(([runId, woken]) => resultOf(runId, woken));
  if (flags.outputFormat !== "stream-json")
    write(flags.outputFormat, terminal, {
      json: { store: at.store },
      items: { key: "runs", each },
      text: () => (each.length === 0 ? ["no run is due"] : []),
    });
  else terminal.out(`${visibleJson({ type: "result", store: at.store, woken: each.length })}\n`);
  return stoppedBy === undefined ? exitCodeOf([...results.values()]) : STOPPED[stoppedBy];
}

/** Reading does not create a store, and waits for no other process. */
async function hasDueRuns(at: ProjectPaths, { store }: WakeFlags): Promise<boolean> {
  try {
    return await withStore(at, async (host) => (await host.due(1)).runs.length > 0);
  } catch (thrown) {
    // A missing default store has no runs; a store that was named must exist.
    if (isSluiceError(thrown, "store_missing") && store === undefined) return false;
    throw thrown;
  }
}

/** Wakes what is due until nothing is left that was not woken here, or a signal stops it. */
async function wakeAll(
  host: RunHost,
  at: ProjectPaths,
  flags: WakeFlags,
  context: CommandContext,
  onWoken: (runId: string, woken: Woken) => void,
): Promise<StopSignal | undefined> {
  const { terminal } = context;
  const most = flags.maxParallel ?? MAX_PARALLEL;
  const say = (text: string): void => terminal.err(`sluice: ${visible(redactText(text))}\n`);
  const waker = createWaker({ host, at, clock: systemClock, onResumed: ignore, say }, context);
  const active = new Map<string, Promise<void>>();
  const seen = new Set<string>();
  let stoppedBy: StopSignal | undefined;
  const ignoreSignals = onStopSignal((signal) => {
    stoppedBy = signal;
    say(`${signal}: suspending ${count(active.size, "run")}; a second one ends the process at once`);
    // The runs' results have the outcome.
    waker.drain().catch(ignore);
  });
  try {
    for (;;) {
      const next = await unseen(host, seen, most - active.size);
      if (stoppedBy !== undefined || (next.length === 0 && active.size === 0)) break;
      for (const runId of next) {
        seen.add(runId);
        const follow = async (): Promise<void> => {
          onWoken(runId, await waker.wake(runId));
          active.delete(runId);
        };
        active.set(runId, follow());
      }
      if (active.size > 0) await Promise.race(active.values());
    }
    await Promise.all(active.values());
    return stoppedBy;
  } finally {
    ignoreSignals();
    await waker.close();
  }
}

/** The next due runs that were not woken here: one that is due again at once must not keep this process. */
async function unseen(host: RunHost, seen: ReadonlySet<string>, most: number): Promise<readonly string[]> {
  for (let limit = most; most > 0; limit *= 2) {
    const { runs } = await host.due(limit);
    const found = runs.filter((runId) => !seen.has(runId));
    if (found.length >= most || runs.length < limit) return found.slice(0, most);
  }
  return [];
}

function resultOf(runId: string, woken: Woken): JsonObject {
  return { runId, ...wokenJson(woken) };
}

function exitCodeOf(all: readonly Woken[]): number {
  if (all.some(({ kind }) => kind === "refused" || kind === "failed" || kind === "stuck")) return EXIT.environment;
  const bad = all.some((woken) => woken.kind === "ended" && woken.status !== "completed");
  return bad ? EXIT.failed : EXIT.completed;
}

function ignore(): void {
  return;
}
