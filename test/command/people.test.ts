import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  at,
  call,
  type Desk,
  desk,
  finishes,
  lines,
  PIPELINES,
  printed,
  type Running,
  textAt,
  turn,
} from "../support/command.ts";
import { type DeskHere, sluiceHere } from "../support/command-here.ts";

const single = `${PIPELINES}#single`;
const JSON_OUT = ["--output-format", "json"];
const asking = `${PIPELINES}#asking`;
const writes = (path: string) => call("Write", { file_path: path, content: "granted" });
const writesThenEnds = { work: [turn(writes("one.txt")), finishes()] };

interface Waiting {
  readonly runId: string;
  readonly running: Running;
  /** The line that answers what it waits for. */
  readonly announced: string;
}
/** A desk at which runs work in processes of their own, and this one is another. */
function deskOfTwo(): Pick<Desk, "folder" | "script" | "start"> & Pick<DeskHere, "sluice"> {
  const { folder, script, start } = desk();
  return { folder, script, start, sluice: sluiceHere(folder) };
}

/** Starts a run that waits, and returns its id once a request is open. */
async function waiting(of: Pick<Desk, "start">, model: string, pipeline = single): Promise<Waiting> {
  const running = of.start(["run", pipeline, "x", "--model", model, "--wait", "--output-format", "json"]);
  const [announced = "", runId = ""] = await running.said("stderr", /sluice answer (\S+).*(?=\n)/);
  return { runId, running, announced };
}

describe("a run that waits, seen from another process", () => {
  test("is listed as running, shown with its open request and the line that answers it, and continues when that is run", async () => {
    const here = deskOfTwo();
    const { runId, running, announced } = await waiting(here, here.script(writesThenEnds));
    const [runs, show, shown] = await Promise.all([
      here.sluice(["runs"]),
      here.sluice(["show", runId]),
      here.sluice(["show", runId, "--output-format", "json"]),
    ]);
    expect(runs.stdout).toMatch(new RegExp(`^${runId} +running .* single +x \\(waiting for an answer\\)$`, "m"));
    const digest = textAt(printed(shown), "requests", 0, "digest");
    const line = `sluice answer ${runId} 'work#1/a1/t1.c0' --digest ${digest.slice(0, 16)} approve`;
    // No shell runs it as it stands: a person who pastes it has not answered yet.
    expect(announced).toBe(line.replace("approve", "<approve, deny or defer>"));
    expect(show.stdout).toContain(line);
    // Whole, since a person decides by it: a summary leaves out the middle.
    expect(show.stdout).toContain("    file_path: │ one.txt\n");
    expect(show.stdout).toContain(`  writes: ${join(realpathSync(here.folder), "one.txt")}\n`);
    expect(show.stdout).toContain("owner      process");
    expect(at(printed(shown), "requests", 0)).toMatchObject({ kind: "grantStageTool", answer: line });

    // As if something else had come to wait under the same id.
    const another = digest.replace(/^./, (first) => (first === "0" ? "1" : "0"));
    const refused = await here.sluice(["answer", runId, "t1.c0", "--digest", another, "approve", ...JSON_OUT]);
    expect([refused.code, printed(refused)]).toEqual([
      1,
      { runId, requestId: "work#1/a1/t1.c0", outcome: "digest_mismatch", digest },
    ]);
    expect(refused.stderr).toContain(`the digest of work#1/a1/t1.c0 is now ${digest.slice(0, 16)}`);
    expect(refused.stderr).toContain("review the request with sluice show");

    const begins = digest.slice(0, 6).toUpperCase();
    const answered = await here.sluice(["answer", runId, "t1.c0", "approve", "--digest", begins]);
    expect(answered.code).toBe(0);
    expect(answered.stdout).toBe(`approved work#1/a1/t1.c0; process ${running.child.pid} continues the run\n`);
    const ended = await running.ended;
    expect([ended.code, printed(ended).status]).toEqual([0, "completed"]);
    expect(existsSync(join(here.folder, "one.txt"))).toBe(true);
  });

  test("denied with a reason, the call does not run and the reason is in the result's journal", async () => {
    const here = deskOfTwo();
    const { runId, running } = await waiting(here, here.script(writesThenEnds));
    expect((await here.sluice(["answer", runId, "work#1/a1/t1.c0", "deny", "--reason", "not today"])).code).toBe(0);
    const ended = await running.ended;
    expect(printed(ended).denied).toMatchObject([{ tool: "Write", cause: "denied" }]);
    expect(existsSync(join(here.folder, "one.txt"))).toBe(false);
    expect((await here.sluice(["audit", runId])).stdout).toContain("not today");
  });

  test("deferred, it continues without the call", async () => {
    const here = deskOfTwo();
    const { runId, running } = await waiting(here, here.script(writesThenEnds));
    expect((await here.sluice(["answer", runId, "t1.c0", "defer"])).stdout).toContain("deferred");
    expect(printed(await running.ended).denied).toMatchObject([{ cause: "deferred" }]);
  });

  test("cancelled, it ends there as cancelled, exit 1", async () => {
    const here = deskOfTwo();
    const { runId, running } = await waiting(here, here.script(writesThenEnds));
    const cancel = await here.sluice(["cancel", runId, "--reason", "wrong branch"]);
    expect([cancel.code, cancel.stdout]).toEqual([0, `run ${runId} is cancelled\n`]);
    const ended = await running.ended;
    expect([ended.code, printed(ended)]).toMatchObject([
      1,
      { status: "cancelled", error: { message: "wrong branch" } },
    ]);
  });

  test("a question takes a value that fits it, and nothing else", async () => {
    const here = deskOfTwo();
    const question = call("AskUser", { question: "Which colour?", options: ["red", "blue"] });
    const { runId, running } = await waiting(here, here.script({ asker: [turn(question), finishes()] }), asking);
    const [approve, green] = [
      await here.sluice(["answer", runId, "question", "approve"]),
      await here.sluice(["answer", runId, "question", "--value", "green"]),
    ];
    expect([approve.code, green.code]).toEqual([2, 2]);
    expect(approve.stderr).toContain("takes a value");
    const answered = await here.sluice(["answer", runId, "question", "--value", "blue", "--output-format", "json"]);
    expect(printed(answered)).toMatchObject({
      outcome: "accepted",
      answer: { kind: "value", value: "blue" },
      owner: `process ${running.child.pid}`,
    });
    expect((await running.ended).code).toBe(0);
  });
});

describe("a step that needs approval", () => {
  const released = async (answer: string) => {
    const here = deskOfTwo();
    const { runId, running } = await waiting(here, here.script({ work: [finishes()] }), `${PIPELINES}#approving`);
    const shown = await here.sluice(["show", runId]);
    expect(shown.stdout).toContain("  work -> released\n");
    expect(shown.stdout).toContain("    message: │ Release it?\n");
    const request = at(printed(await here.sluice(["show", runId, ...JSON_OUT])), "requests", 0);
    expect(request).toMatchObject({ kind: "approveTransition", requestId: "work#1/a1/approval" });
    expect((await here.sluice(["answer", runId, "approval", answer])).code).toBe(0);
    return await running.ended;
  };

  test("is made when sluice answer approves it", async () => {
    const ended = await released("approve");
    expect([ended.code, printed(ended)]).toMatchObject([0, { status: "completed" }]);
  });

  test("ends the run as failed when sluice answer denies it", async () => {
    const ended = await released("deny");
    expect([ended.code, printed(ended)]).toMatchObject([1, { error: { code: "approval_denied" } }]);
  });
});

describe("sluice answer", () => {
  test("takes an ending of the request's id that fits only one, and says what is open otherwise", async () => {
    const here = deskOfTwo();
    const script = { left: [turn(writes("l.txt")), finishes()], right: [turn(writes("r.txt")), finishes()] };
    const running = here.start([
      "run",
      `${PIPELINES}#forked`,
      "x",
      "--model",
      here.script({ start: [finishes()], join: [finishes()], ...script }),
      "--wait",
    ]);
    const [, runId = ""] = await running.said("stderr", /sluice answer (\S+)[\s\S]*sluice answer /);
    const [ambiguous, unknown, value] = [
      await here.sluice(["answer", runId, "t1.c0", "approve"]),
      await here.sluice(["answer", runId, "t9.c9", "approve"]),
      await here.sluice(["answer", runId, "right#1/a1/t1.c0", "--value", "1"]),
    ];
    expect([ambiguous.code, unknown.code, value.code]).toEqual([2, 2, 2]);
    for (const { stderr } of [ambiguous, unknown]) {
      expect(stderr).toContain("left#1/a1/t1.c0");
      expect(stderr).toContain("right#1/a1/t1.c0");
    }
    expect((await here.sluice(["answer", runId, "left#1/a1/t1.c0", "approve"])).code).toBe(0);
    expect((await here.sluice(["answer", runId, "right#1/a1/t1.c0", "deny"])).code).toBe(0);
    expect((await running.ended).code).toBe(0);
    expect([existsSync(join(here.folder, "l.txt")), existsSync(join(here.folder, "r.txt"))]).toEqual([true, false]);
  });

  test("of a run that no one works on says so; it cannot be answered twice; --resume continues with it", async () => {
    const here = desk();
    const script = { work: [turn(writes("one.txt")), turn(writes("two.txt")), finishes("end")] };
    const args = ["run", single, "x", "--model", here.script(script), "--wait=1ms", "--output-format", "json"];
    const runId = textAt(printed(await here.sluice(args)), "runId");
    const [first, second] = [
      await here.sluice(["answer", runId, "t1.c0", "approve"]),
      await here.sluice(["answer", runId, "t1.c0", "deny"]),
    ];
    expect(first.stdout).toContain(`the run is suspended; resume it with: sluice resume ${runId}`);
    expect([second.code, second.stdout]).toEqual([2, ""]);
    expect(second.stderr).toContain("has no open request t1.c0");

    const resumed = await here.sluice(["resume", runId, "--wait=1ms", "--output-format", "stream-json"]);
    expect(resumed.code).toBe(3);
    const events = lines(resumed);
    // What an earlier process showed is not shown again.
    expect(events[0]).toMatchObject({ type: "run.resumed" });
    expect(events.at(-1)).toMatchObject({ type: "result", status: "suspended" });
    expect(existsSync(join(here.folder, "one.txt"))).toBe(true);

    const last = await here.sluice(["answer", runId, "t2.c0", "approve", "--resume", "--output-format", "json"]);
    expect(last.code).toBe(0);
    expect(printed(last)).toMatchObject({ runId, status: "completed", output: { text: "end" } });
    expect(existsSync(join(here.folder, "two.txt"))).toBe(true);
    expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
  });
});

describe("sluice cancel", () => {
  test("of a suspended run ends it, and its requests can no longer be answered", async () => {
    const here = desk();
    const args = ["run", single, "x", "--model", here.script(writesThenEnds), "--wait=1ms", "--output-format", "json"];
    const runId = textAt(printed(await here.sluice(args)), "runId");
    const cancel = await here.sluice(["cancel", runId, "--output-format", "json"]);
    expect(printed(cancel)).toEqual({ runId, status: "cancelled", cancelled: true });
    expect((await here.sluice(["answer", runId, "t1.c0", "approve"])).code).toBe(2);
    const show = await here.sluice(["show", runId]);
    expect(show.stdout).toMatch(new RegExp(`^${runId}  cancelled`));
  });
});
