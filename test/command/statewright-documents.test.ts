import { copyFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { at, call, type Ended, lines, printed, textAt, turn } from "../support/command.ts";
import { type DeskHere, deskHere } from "../support/command-here.ts";
import { sends } from "../support/workflow-desk.ts";

// The complete documents of the Statewright reference, unchanged, from the first state to every end that their rules allow.

const JSON_OUT = ["--output-format", "json"];
const DOCUMENTS = join(import.meta.dirname, "../fixtures/workflows/statewright");

function deskWith(document: string): DeskHere {
  const here = deskHere();
  copyFileSync(join(DOCUMENTS, document), join(here.folder, document));
  return here;
}
type Turns = Readonly<Record<string, readonly JsonObject[]>>;
interface Ran {
  readonly code: number | null;
  /** How the run ended. */
  readonly end: JsonObject | undefined;
  /** The executions and the event that led out of each. */
  readonly walked: readonly string[];
  readonly runId: string;
}
async function run(here: DeskHere, document: string, turns: Turns, ...flags: readonly string[]): Promise<Ran> {
  const model = here.script(turns);
  const args = ["run", document, "Ship it.", "--model", model, "--output-format", "stream-json", ...flags];
  return ranOf(await here.sluice(args));
}
function ranOf(ended: Ended): Ran {
  const events = lines(ended);
  const moves = events.filter(({ type }) => type === "route.decided");
  const sent = (move: JsonObject): string => String(at(move, "data", "why", "event") ?? at(move, "data", "why", "by"));
  const walked = moves.map((move) => `${textAt(move, "executionId")} ${sent(move)}`);
  const end = events.findLast(({ type }) => type === "run.finished");
  return { code: ended.code, end, walked, runId: textAt(events[0], "runId") };
}

test("the minimal example completes", async () => {
  const here = deskWith("review.json");
  here.write("notes.md", "Nothing to find.\n");
  const turns = { reading: [turn(call("Read", { file_path: "notes.md" })), sends("DONE", { rationale: "read" })] };
  expect(await run(here, "review.json", turns)).toMatchObject({
    code: 0,
    end: { data: { status: "completed" } },
    walked: ["reading#1 DONE"],
  });
});

describe("the full example", () => {
  test("fails by FAIL, and an event that sets what its own guard reads does not get around the guard", async () => {
    const here = deskWith("deploy.json");
    const turns = { testing: [sends("DEPLOY", { test_result: "pass" }), sends("DEPLOY"), sends("FAIL")] };
    expect(await run(here, "deploy.json", turns)).toMatchObject({ code: 1, walked: ["testing#1 FAIL"] });
  });

  test("cannot complete, and sluice check says why, and proves it", async () => {
    const here = deskWith("deploy.json");
    const { code, stdout } = await here.sluice(["check", "deploy.json", "--property", "never: state:complete"]);
    expect(code).toBe(0);
    expect(stdout).toContain("deploy.json:15:20: warning: The condition of DEPLOY in testing can never hold");
    expect(stdout).toContain("the data of a transition is added only after its condition held");
    expect(stdout).toContain("complete cannot be reached");
    expect(stdout).toContain("never: state:complete: holds on every path");
  });
});

const PASSED: Turns = {
  planning: [sends("READY", { test_result: "pass" })],
  testing: [sends("EVALUATE"), sends("EVALUATE")],
  deploying: [sends("DONE"), sends("FAIL")],
};
const BROKEN: Turns = {
  planning: [sends("READY", { test_result: "fail" })],
  testing: [sends("EVALUATE"), sends("EVALUATE")],
};

describe("the complete reference example", () => {
  const document = "deploy-full.json";

  test("loads without a mistake or a warning", async () => {
    const { code, stdout } = await deskWith(document).sluice(["check", document]);
    expect([code, stdout]).toEqual([0, "1 workflow: 0 errors, 0 warnings\n"]);
  });

  test.each<readonly [way: string, turns: Turns, walked: readonly string[]]>([
    ["planning gives up", { planning: [sends("FAIL")] }, ["planning#1 FAIL"]],
    [
      "there is no test result",
      { planning: [sends("READY")], testing: [sends("EVALUATE")] },
      ["planning#1 READY", "testing#1 EVALUATE"],
    ],
    [
      "fixing gives up",
      { ...BROKEN, fixing: [sends("FAIL")] },
      ["planning#1 READY", "testing#1 EVALUATE", "fixing#1 FAIL"],
    ],
    [
      "a fix leaves no test result",
      { ...BROKEN, fixing: [sends("DONE", { test_result: "unknown" })] },
      ["planning#1 READY", "testing#1 EVALUATE", "fixing#1 DONE", "testing#2 EVALUATE"],
    ],
    [
      "no one is there to approve, and deploying gives up",
      PASSED,
      ["planning#1 READY", "testing#1 EVALUATE", "deploying#1 FAIL"],
    ],
  ])("fails where %s", async (_way, turns, walked) => {
    const ran = await run(deskWith(document), document, turns);
    expect(ran).toMatchObject({ code: 1, end: { data: { status: "failed" } }, walked });
  });

  test("fails in a state that never moves, and no event is made up for it", async () => {
    const ran = await run(deskWith(document), document, {
      planning: Array.from({ length: 50 }, () => ({ text: "All done." })),
    });
    expect(ran).toMatchObject({ code: 1, walked: ["planning#1 default"] });
  });

  /** Runs up to the approval, and answers it. */
  const answered = async (turns: Turns, answer: string) => {
    const here = deskWith(document);
    const waiting = await run(here, document, turns, "--wait=1ms");
    expect(waiting.code).toBe(3);
    const shown = await here.sluice(["show", waiting.runId, ...JSON_OUT]);
    expect(at(printed(shown), "requests", 0)).toMatchObject({ kind: "approveTransition" });
    const requestId = textAt(printed(shown), "requests", 0, "requestId");
    const args = ["answer", waiting.runId, requestId, answer, "--resume", "--output-format", "stream-json"];
    return { ...ranOf(await here.sluice(args)), waited: waiting.walked };
  };

  test("completes by every state and by safe_next when a person approves", async () => {
    const turns = {
      ...PASSED,
      planning: [sends("LOOKS_GOOD", { test_result: "fail" })],
      fixing: [sends("DONE", { test_result: "pass" })],
    };
    expect(await answered(turns, "approve")).toMatchObject({
      code: 0,
      end: { data: { status: "completed" } },
      waited: ["planning#1 LOOKS_GOOD", "testing#1 EVALUATE", "fixing#1 DONE", "testing#2 EVALUATE"],
      walked: ["deploying#1 DONE"],
    });
  });

  test("fails when a person denies and deploying gives up", async () => {
    expect(await answered(PASSED, "deny")).toMatchObject({ code: 1, walked: ["deploying#1 FAIL"] });
  });
});
