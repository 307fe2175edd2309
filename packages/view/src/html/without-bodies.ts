import { ListBuilder } from "../projection/append-only-list.ts";
import type {
  BoundaryItem,
  CallView,
  DecisionView,
  ExecutionView,
  RunView,
  TranscriptItem,
} from "../projection/run-view.ts";
import { textAt } from "../words/fields.ts";
import type { RouteView } from "../words/route-lines.ts";

/**
 * The view of a run whose author keeps contents out of reports: without what people, models and tools wrote, and without texts
 * that may quote it. Names, times, amounts, verdicts and codes remain.
 */
export function withoutBodies(view: RunView): RunView {
  const { input: _input, output: _output, error, requests, spans, ...rest } = view;
  return {
    ...rest,
    task: "",
    ...(error === undefined ? {} : { error: { code: error.code, message: "" } }),
    executions: view.executions.map(executionWithout),
    decisions: view.decisions.map(decisionWithout),
    routes: view.routes.map(routeWithout),
    requests: requests.map((request) => ({
      ...request,
      body: { question: textAt(request.body, "tool") || NAMES[request.kind] },
    })),
    spans: listOf(
      [...spans].map((span) => (span.kind === "person" ? { ...span, label: "waiting for a person" } : span)),
    ),
  };
}

const NAMES: Readonly<Record<RunView["requests"][number]["kind"], string>> = {
  grantStageTool: "a call",
  approveTransition: "a move to another state",
  askUser: "a question",
  humanState: "a question",
};

function listOf<T>(items: readonly T[]): ReturnType<ListBuilder<T>["view"]> {
  const list = new ListBuilder<T>();
  for (const item of items) list.push(item);
  list.settle(() => true);
  return list.view();
}

function executionWithout({
  fault: _fault,
  live: _live,
  items,
  handles,
  interrupted,
  ...rest
}: ExecutionView): ExecutionView {
  return {
    ...rest,
    ...(handles === undefined ? {} : { handles: { ...handles, files: [] } }),
    ...(interrupted === undefined ? {} : { interrupted: { ...interrupted, files: [] } }),
    items: listOf([...items].flatMap(itemWithout)),
  };
}

function itemWithout(item: TranscriptItem): readonly TranscriptItem[] {
  switch (item.kind) {
    case "text":
    case "reasoning":
    case "message":
      return [];
    case "boundary":
      return [noteWithout(item)];
    case "call":
      return [callWithout(item)];
  }
}

/** A note begins with what happened; what follows may quote anything. */
function noteWithout(item: BoundaryItem): BoundaryItem {
  return item.rank === "attempt" ? item : { ...item, text: item.text.split(": ", 1)[0] ?? "" };
}

function callWithout({ kind, attempt, turn, callId, tool, state, approvedBy, ms }: CallView): CallView {
  return {
    kind,
    attempt,
    turn,
    callId,
    tool,
    state,
    input: undefined,
    isWithheld: true,
    ...(approvedBy === undefined ? {} : { approvedBy }),
    ...(ms === undefined ? {} : { ms }),
  };
}

function decisionWithout(decision: DecisionView): DecisionView {
  const what = decision.kind === "call" ? (decision.what.split("(", 1)[0] ?? "") : "a request";
  return { ...decision, what, because: "", why: "" };
}

/** A reason may quote the values that a condition compared. */
function routeWithout(route: RouteView): RouteView {
  const rows = route.rows.map((row) => (row.verdict === "did not fire" ? { ...row, why: "" } : row));
  return { ...route, rationale: "", why: "", rows };
}
