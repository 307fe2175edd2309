// biome-ignore-all lint/suspicious/noTemplateCurlyInString: texts of the sources
import type { LineBug } from "./line-bugs.ts";

const STATE = "core/src/machine/machine-state.ts";
const TRANSITION = "core/src/machine/transition.ts";
const NEXT = "core/src/machine/decide-next.ts";
const tests = ["test/unit/machine.test.ts"];

/** Bugs put on purpose into what decides where a run goes; some test has to fail then. */
export const MACHINE_BUGS: readonly LineBug[] = [
  {
    name: "routes-are-not-counted",
    file: TRANSITION,
    find: "hops: view.hops + (isRoute ? 1 : 0)",
    replace: "hops: view.hops",
    tests,
  },
  {
    name: "one-visit-too-many",
    file: TRANSITION,
    find: "before(state, index) >= maxVisits",
    replace: "before(state, index) > maxVisits",
    tests,
  },
  {
    name: "children-are-no-visits",
    file: STATE,
    find: "for (const visited of statesToVisit(fanOut.choice)) count(state, visited, 1, 0);",
    replace: "",
    tests,
  },
  {
    name: "each-item-is-a-visit",
    file: STATE,
    find: "if (list !== undefined) return [list];",
    replace: "if (list !== undefined && siblings.length === 0) return [list];",
    tests,
  },
  {
    name: "a-thrown-condition-fires",
    file: NEXT,
    find: "return `its condition failed: ${messageOf(thrown)}`;",
    replace: "return thrown === undefined ? messageOf(thrown) : undefined;",
    tests,
  },
  {
    name: "almost-true-fires",
    file: NEXT,
    find: "return fires === true ? undefined : why;",
    replace: "return fires ? undefined : why;",
    tests,
  },
  {
    name: "all-rows-are-recorded",
    file: NEXT,
    find: "if (rejectedRows.length < MOST_ROWS)",
    replace: "if (rejectedRows.length < MOST_ROWS * MOST_ROWS)",
    tests,
  },
  {
    name: "cancelled-siblings-are-blamed",
    file: TRANSITION,
    find: "const failed = failures.length > 0 ? failures : unsuccessful;",
    replace: "const failed = unsuccessful;",
    tests,
  },
  {
    name: "a-join-is-remembered",
    file: STATE,
    find: "state.joined = deepFreeze(enter.joined);",
    replace: "state.joined = deepFreeze(enter.joined ?? state.joined);",
    tests,
  },
  {
    name: "old-outputs-stay",
    file: "core/src/machine/outputs.ts",
    find: "if (output === undefined) delete object[state];",
    replace: "if (output === undefined) continue;",
    tests,
  },
  {
    name: "handled-failures-name-the-run",
    file: TRANSITION,
    find: 'return code ?? (by === "default" && result?.status === "failed" ? result.code : "failed");',
    replace: 'return code ?? (by !== undefined && result?.status === "failed" ? result.code : "failed");',
    tests,
  },
  {
    name: "the-context-is-replaced",
    file: STATE,
    find: "state.context = deepFreeze({ ...state.context, ...context });",
    replace: "state.context = deepFreeze({ ...context });",
    tests,
  },
  {
    name: "upstream-runs-ahead",
    file: STATE,
    find: "return outputs.object;",
    replace: "return view.outputs.object;",
    tests,
  },
  {
    name: "empty-lists-leave-the-declared-targets",
    file: NEXT,
    find: "if (list !== undefined) return [list, ...after];",
    replace: "if (list !== undefined && siblings.length > 0) return [list, ...after];",
    tests,
  },
];
