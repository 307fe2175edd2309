import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { at, call, desk, finishes, lines, PIPELINES, printed, textAt, turn } from "../support/command.ts";

const writes = (path: string, content: string) => turn(call("Write", { file_path: path, content }));
const source = readFileSync(PIPELINES, "utf8");

describe("sluice fork", () => {
  test("makes a new run with the past of a finished one, says where it is from and what it does not take back", async () => {
    const here = desk();
    const script = {
      first: [writes("one.txt", "1"), finishes()],
      second: [writes("two.txt", "2"), finishes("old end")],
    };
    const file = here.write("p.ts", source);
    const begun = ["run", `${file}#writing`, "write", "--model", here.script(script), "--output-format", "json"];
    const of = textAt(printed(await here.sluice(begun)), "runId");
    const before = await here.sluice(["audit", of, "--json"]);

    // Without --from, and with a wrong one, it lists the executions and creates nothing.
    const [bare, wrong] = await Promise.all([
      here.sluice(["fork", of]),
      here.sluice(["fork", of, "--from", "second", "--output-format", "json"]),
    ]);
    expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining("first#1, second#1")]);
    expect([wrong.code, textAt(printed(wrong), "error", "code")]).toEqual([2, "execution_unknown"]);
    expect(textAt(printed(wrong), "error", "message")).toContain("Did you mean second#1?");

    const model = here.script({ second: [finishes("new end")] });
    const forked = await here.sluice(["fork", of, "--from", "second#1", "--model", model, "--output-format", "json"]);
    const said = printed(forked);
    expect(said).toMatchObject({
      status: "completed",
      output: "new end",
      forkedFrom: { runId: of, execution: "second#1", changedSince: { files: ["two.txt"], unwatched: 0 } },
    });
    expect(forked.stderr).toContain(`files stay as they are now; later changes of ${of} are not rolled back: two.txt`);
    expect(readFileSync(join(here.folder, "two.txt"), "utf8")).toBe("2");

    const runId = textAt(said, "runId");
    const [shown, listed, audit, verified, report, after] = await Promise.all([
      here.sluice(["show", runId]),
      here.sluice(["runs"]),
      here.sluice(["audit", runId]),
      here.sluice(["audit", runId, "--verify"]),
      here.sluice(["report", runId, "-o", "fork.html"]),
      here.sluice(["audit", of, "--json"]),
    ]);
    expect(shown.stdout).toContain(`forked from ${of} before second#1`);
    expect(listed.stdout).toMatch(new RegExp(`${runId} .*\\(forked from ${of} before second#1\\)`));
    expect(audit.stdout).toMatch(new RegExp(`run\\.forked +from=${of} execution=second#1`));
    expect(verified.code).toBe(0);
    expect(report.code).toBe(0);
    expect(readFileSync(join(here.folder, "fork.html"), "utf8")).toContain(`forked from ${of} before second#1`);
    expect(after.stdout).toBe(before.stdout);
    // Only what is new is printed as it happens, and the fork is a run like any other: it can be forked and replayed.
    const again = await here.sluice(["fork", runId, "--from", "second#1", "--output-format", "stream-json"]);
    const types = lines(again).map((line) => textAt(line, "type"));
    expect(types.slice(0, 3)).toEqual(["run.started", "run.forked", "run.resumed"]);
    expect(at(lines(again).at(-1), "output")).toBe("new end");
    expect((await here.sluice(["replay", runId])).code).toBe(0);
  });

  test("forks a cancelled run, which cannot be resumed; and asks for trust and for leave as resume does", async () => {
    const here = desk();
    const file = here.write("p.ts", source);
    const script = here.script({ work: [writes("x", ""), finishes()] });
    const begun = ["run", `${file}#single`, "x", "--model", script, "--wait=1ms", "--output-format", "json"];
    const of = textAt(printed(await here.sluice(begun)), "runId");
    await here.sluice(["cancel", of]);
    const again = await here.sluice(["resume", of, "--output-format", "json"]);
    expect([again.code, textAt(printed(again), "status")]).toEqual([1, "cancelled"]);
    const fork = ["fork", of, "--from", "work#1", "--output-format", "json"];
    expect(printed(await here.sluice(fork))).toMatchObject({
      status: "completed",
      denied: [{ cause: "no_interactor" }],
    });

    here.write("p.ts", source.replace("turnCap: 4", "turnCap: 3"));
    expect(textAt(printed(await here.sluice(fork)), "error", "code")).toBe("pipeline_untrusted");
    const refused = await here.sluice([...fork, "--trust"]);
    expect(textAt(printed(refused), "error", "code")).toBe("pipeline_changed");
    expect(refused.stderr).toContain("  state work: turnCap changed from 4 to 3\n");
    expect(refused.stderr, "what does not happen is not printed").not.toContain("forks ");
    const allowed = await here.sluice([...fork, "--trust", "--allow-changed", "--mode", "yolo"]);
    expect(printed(allowed)).toMatchObject({ status: "completed" });
    const shown = await here.sluice(["show", textAt(printed(allowed), "runId"), "--output-format", "json"]);
    expect(printed(shown)).toMatchObject({ mode: "yolo", forkedFrom: { runId: of, execution: "work#1" } });
  });

  test("is for people: what a run started forks nothing", async () => {
    const here = desk();
    const { code, stderr } = await here.sluice(["fork", "r1", "--from", "a#1"], { env: { SLUICE_RUN: "r1" } });
    expect([code, stderr]).toEqual([2, expect.stringContaining("fork")]);
  });
});
