// What runs and executions used: in this process, and by what earlier ones recorded.
import { readCost } from "../../journal/record.ts";
import type { JournalRecord, RunJournal, StepCost } from "../../journal/seam.ts";
import { parseAttemptStep, parseSiblingId, parseStepId } from "../../journal/step-id.ts";

/** What was used, and what is reserved for calls in flight at their maximum. Money in billionths of a dollar. */
export interface Ledger {
  readonly tokens: Account;
  readonly money: Account;
}
export interface Account {
  spent: number;
  reserved: number;
  /** An unknown amount was spent, so nothing more may be. */
  unknown: boolean;
}

/** Whole billionths of a dollar, so that sums and caps are exact. */
const NANO = 1_000_000_000;

export function nanoUsd(usd: number): number {
  return Math.round(usd * NANO);
}

export function usdOf(nano: number): number {
  return nano / NANO;
}

/** US dollars as text: with cents from a dollar on, with more digits below. */
export function usdText(usd: number): string {
  if (usd >= 1) return `$${usd.toFixed(2)}`;
  return `$${usd.toFixed(usd >= 0.01 ? 4 : 9).replace(/\.?0+$/, "")}`;
}

/** A ledger that starts with what is already spent in another. */
export function createLedger(from?: Ledger): Ledger {
  const account = (before?: Account): Account => ({ ...(before ?? { spent: 0, unknown: false }), reserved: 0 });
  return { tokens: account(from?.tokens), money: account(from?.money) };
}

export function spend({ tokens, money }: Ledger, cost: StepCost): void {
  const { inputTokens = 0, outputTokens = 0, costUsd } = cost;
  if (isAmount(inputTokens) && isAmount(outputTokens)) tokens.spent += inputTokens + outputTokens;
  else tokens.unknown = true;
  if (isAmount(costUsd)) money.spent += nanoUsd(costUsd);
  if (isUnpriced(cost)) money.unknown = true;
}

/** Adds what was spent in another ledger. */
function addLedger(to: Ledger, { tokens, money }: Ledger): void {
  for (const [own, other] of [
    [to.tokens, tokens],
    [to.money, money],
  ] as const) {
    own.spent += other.spent;
    own.unknown ||= other.unknown;
  }
}

/** Whether any of it has no known price. */
function isUnpriced({ inputTokens = 0, outputTokens = 0, costUsd, unpricedCalls = 0 }: StepCost): boolean {
  if (unpricedCalls !== 0) return true;
  return costUsd === undefined ? inputTokens !== 0 || outputTokens !== 0 : !isAmount(costUsd);
}

/** A number of tokens or dollars. With anything else (NaN, for example) every comparison has the same result, and a cap holds nothing. */
export function isAmount(amount: unknown): amount is number {
  return typeof amount === "number" && Number.isFinite(amount) && amount >= 0;
}

/** What one execution, with the runs that it started, used in earlier processes. */
export interface ExecutionCost {
  readonly spent: Ledger;
  readonly stateMs: number;
}

/** What a run, its children included, used in earlier processes. */
export interface RecordedCosts {
  readonly spent: Ledger;
  readonly runMs: number;
  /** The opening records of the steps that used models without a known price. */
  readonly unpriced: readonly JournalRecord[];
  /** `around` is how many runs, and executions that started them, it is in. */
  execution(runId: string, executionId: string, around: number): ExecutionCost | undefined;
  /** Of the run of another pipeline and its children: what they used, and how long it ran. `around` counts as for an execution. */
  tree(runId: string, around: number): { readonly spent: Ledger; readonly ms: number };
}

/** For a new run. */
export const NO_RECORDED_COSTS: RecordedCosts = {
  spent: createLedger(),
  runMs: 0,
  unpriced: [],
  execution: () => undefined,
  tree: () => ({ spent: createLedger(), ms: 0 }),
};

/**
 * Sums the recorded costs of the steps of a run and its children. An open record counts too, with the most that its step could
 * use, if no process finished the step or a different one did. They are read without caps, too: the times that this process records
 * have to include those before, since a later one may have caps. `older` reads the cost of a record that has none, which earlier
 * versions kept in its value.
 */
export function recordedCosts(
  journals: readonly RunJournal[],
  older: (record: JournalRecord) => StepCost | undefined,
): RecordedCosts {
  const spent = createLedger();
  let runMs = 0;
  const unpriced = new Set<JournalRecord>();
  const executions = new Map<string, RecordedExecution>();
  const executionAt = (key: string): RecordedExecution => {
    const known = executions.get(key) ?? { spent: createLedger(), started: createLedger(), stateMs: 0, aroundMs: [] };
    executions.set(key, known);
    return known;
  };
  for (const { runId, records } of journals) {
    const callers = callersOf(runId).map(executionAt);
    let open: JournalRecord | undefined;
    const add = (record: JournalRecord): void => {
      const at = parseAttemptStep(record.stepId);
      const cost = readCost(record) ?? (at === undefined ? undefined : older(record));
      if (cost === undefined) return;
      const execution = executionAt(keyOf(runId, at?.executionId ?? ""));
      spend(execution.spent, cost);
      for (const { started } of callers) spend(started, cost);
      spend(spent, cost);
      if (isUnpriced(cost)) unpriced.add(open ?? record);
      execution.stateMs = Math.max(execution.stateMs, elapsed(cost.stateMs));
      runMs = Math.max(runMs, elapsed(cost.runMs));
      for (const { aroundMs } of [execution, ...callers])
        for (const [at, ms] of cost.aroundMs?.entries() ?? []) aroundMs[at] = Math.max(aroundMs[at] ?? 0, elapsed(ms));
    };
    for (const record of records) {
      if (record.phase === "open") open = record;
      if (record.phase !== "done") continue;
      if (open !== undefined && open.incarnation !== record.incarnation) add(open);
      add(record);
      open = undefined;
    }
    if (open !== undefined) add(open);
  }
  return {
    spent,
    runMs,
    unpriced: [...unpriced],
    execution: (runId, id, around) => {
      const found = executions.get(keyOf(runId, id));
      if (found === undefined) return undefined;
      const all = createLedger(found.spent);
      addLedger(all, found.started);
      return { spent: all, stateMs: Math.max(found.stateMs, found.aroundMs[around - 1] ?? 0) };
    },
    tree: (runId, around) => {
      const sum = createLedger();
      let [ms, together] = [0, 0];
      for (const [key, { spent: own, stateMs, aroundMs }] of executions) {
        if (!key.startsWith(`${runId} `) && !key.startsWith(`${runId}/`)) continue;
        addLedger(sum, own);
        ms = Math.max(ms, aroundMs[around - 1] ?? 0);
        together += stateMs;
      }
      // Earlier versions did not record how long the run took: no longer than its executions together.
      return { spent: sum, ms: ms === 0 ? together : ms };
    },
  };
}

interface RecordedExecution {
  readonly spent: Ledger;
  /** Of the runs that it started, which are in other journals. */
  readonly started: Ledger;
  stateMs: number;
  /** Of what is around its steps and those of the runs that it started, the outermost first. It is itself around the latter. */
  readonly aroundMs: number[];
}

/** The executions that started a run or one around it, by their keys. */
function callersOf(runId: string): readonly string[] {
  const of = parseSiblingId(runId);
  if (of === undefined) return [];
  const step = parseStepId(of.fanOut);
  const outer = callersOf(of.parentId);
  return step.kind === "children" ? [keyOf(of.parentId, step.executionId), ...outer] : outer;
}

function keyOf(runId: string, executionId: string): string {
  return `${runId} ${executionId}`;
}

/** A time that no run records has passed every cap. */
function elapsed(ms = 0): number {
  return isAmount(ms) ? ms : Number.POSITIVE_INFINITY;
}
