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
import type { Hop, RouteView } from "../words/routes.ts";

/**
 * The view of a run whose author keeps contents out of reports: without what people, models and tools wrote, and without texts
 * that may quote it. Names that the pipeline declares, times, amounts, verdicts and codes remain.
 */
export function withoutBodies(view: RunView): RunView {
  const { input: _input, output: _output, lastWord: _said, error, requests, spans, ...rest } = view;
  const declared = new Set([view, ...view.invoked].flatMap(({ rows }) => rows.flatMap(({ event }) => event ?? [])));
  const eventIn = (event: string): string => (event === "" || declared.has(event) ? event : "another event");
  const states = new Set([view, ...view.invoked].flatMap((one) => one.states.map(({ id }) => id)));
  const stateIn = (state: string): string => (states.has(state) ? state : "another state");
  return {
    ...rest,
    task: "",
    ...(error === undefined ? {} : { error: { code: error.code, message: "" } }),
    executions: view.executions.map(executionWithout),
    decisions: view.decisions.map(decisionWithout),
    routes: view.routes.map((route) => routeWithout(route, eventIn, stateIn)),
    messages: view.messages.map((message) => ({ ...message, text: "" })),
    path: view.path.map((hop) => hopWithout(hop, eventIn)),
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
    case "answer":
      return [];
    case "command":
      return [{ ...item, words: item.words.slice(0, 1), why: "", stdout: "", stderr: "", files: [], isWithheld: true }];
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
    tool: toolIn(tool),
    state,
    input: undefined,
    isWithheld: true,
    ...(approvedBy === undefined ? {} : { approvedBy }),
    ...(ms === undefined ? {} : { ms }),
  };
}

function decisionWithout(decision: DecisionView): DecisionView {
  const what = decision.kind === "call" ? toolIn(decision.what.split("(", 1)[0] ?? "") : "a request";
  return { ...decision, what, because: "", why: "" };
}

/** A model names an event that no row declares. */
function hopWithout(hop: Hop, eventIn: (event: string) => string): Hop {
  const { event, choice } = hop;
  return event === undefined || choice === "interrupt" ? hop : { ...hop, event: eventIn(event) };
}

/** A reason may quote the values that a condition compared. */
function routeWithout(
  route: RouteView,
  eventIn: (event: string) => string,
  stateIn: (state: string) => string,
): RouteView {
  const { hop, event, named } = route;
  const rows = route.rows.map((row) => (row.verdict === "did not fire" ? { ...row, why: "" } : row));
  const own = hop === undefined ? {} : { hop: hopWithout(hop, eventIn) };
  const considered = route.considered.map((one) => ({ ...one, to: stateIn(one.to), why: "" }));
  const tried = named === undefined ? {} : { named: stateIn(named) };
  return { ...route, ...own, ...tried, event: eventIn(event), rationale: "", why: "", rows, considered };
}

/** A model may call a tool that does not exist. */
function toolIn(name: string): string {
  return /^[\w.-]{1,64}$/.test(name) ? name : "a tool";
}
