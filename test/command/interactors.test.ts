import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { at, call, type Desk, desk, finishes, lines, PIPELINES, printed, textAt, turn } from "../support/command.ts";

const SINGLE = `${PIPELINES}#single`;
const EXAMPLE = join(import.meta.dirname, "../../examples/ci-approvals");
const JSON_OUT = ["--output-format", "json"];
const writes = (file_path: string) => call("Write", { file_path, content: "made" });

/** A project whose config has the interactors of this text. */
function project(interactors: string): Desk {
  const here = desk();
  here.write(
    "sluice.config.mjs",
    `import { callbackInteractor } from "@sluice/core";\nexport default { interactors: [${interactors}] };\n`,
  );
  return here;
}
const answersOf = async (here: Desk, runId: string): Promise<readonly (readonly unknown[])[]> =>
  lines(await here.sluice(["audit", runId, "--output-format", "stream-json"]))
    .filter((event) => event.type === "grant.answered")
    .map((event) => [at(event, "data", "answer"), at(event, "data", "by"), at(event, "data", "reason") ?? null]);

describe("the interactors of a config", () => {
  test("answer without a terminal, and the answer is recorded with the interactor's name", async () => {
    const here = project(
      `callbackInteractor("no opinion", () => undefined), callbackInteractor("the rule", ({ body }) => body.input.file_path === "a.txt" ? { kind: "approve" } : { kind: "deny", reason: "only a.txt" })`,
    );
    const model = here.script({ work: [turn(writes("a.txt")), turn(writes("b.txt")), finishes()] });
    const ended = await here.sluice(["run", SINGLE, "x", "--headless", "--trust", "--model", model, ...JSON_OUT]);
    expect(printed(ended)).toMatchObject({ status: "completed", denied: [{ tool: "Write", cause: "denied" }] });
    expect(ended.stderr).toContain("sets answers by no opinion, the rule");
    expect([existsSync(join(here.folder, "a.txt")), existsSync(join(here.folder, "b.txt"))]).toEqual([true, false]);
    expect(await answersOf(here, textAt(printed(ended), "runId"))).toEqual([
      ["approve", "the rule", null],
      ["deny", "the rule", "only a.txt"],
    ]);
  });

  test("that have no opinion leave a request to other processes if the run waits, and to no one if not", async () => {
    const here = project(`callbackInteractor("no opinion", () => undefined)`);
    const model = here.script({ work: [turn(writes("a.txt")), finishes()] });
    const flags = ["--trust", "--model", model, ...JSON_OUT];
    const denied = await here.sluice(["run", SINGLE, "x", ...flags]);
    expect(printed(denied)).toMatchObject({ denied: [{ cause: "no_interactor" }] });
    const open = await here.sluice(["run", SINGLE, "x", "--wait=1ms", ...flags]);
    expect([open.code, printed(open).status]).toEqual([3, "suspended"]);
    // The answer that a user gives wins over every rule.
    here.write(
      "sluice.config.mjs",
      `import { callbackInteractor } from "@sluice/core";\nexport default { interactors: [callbackInteractor("never", () => ({ kind: "deny" }))] };\n`,
    );
    const runId = textAt(printed(open), "runId");
    const answered = await here.sluice(
      ["answer", runId, "t1.c0", "approve", "--resume", "--trust", "--allow-changed", ...JSON_OUT],
      {},
    );
    expect([answered.code, answered.stderr]).toEqual([0, expect.any(String)]);
    expect(await answersOf(here, runId)).toEqual([["approve", expect.any(String), null]]);
    expect((await answersOf(here, runId))[0]?.[1]).not.toBe("never");
  });

  test("that fail deny nothing and approve nothing: the fault is reported", async () => {
    const here = project(
      `callbackInteractor("broken", () => { throw new Error("no rules today"); }), callbackInteractor("wrong", () => "yes")`,
    );
    const model = here.script({ work: [turn(writes("a.txt")), finishes()] });
    const ended = await here.sluice(["run", SINGLE, "x", "--trust", "--model", model, ...JSON_OUT]);
    expect(printed(ended)).toMatchObject({ status: "completed", denied: [{ cause: "no_interactor" }] });
    expect(ended.stderr).toContain("broken: no rules today");
    expect(ended.stderr).toContain("wrong: an answer must be an object with a kind");
    expect(existsSync(join(here.folder, "a.txt"))).toBe(false);
  });
});

test("the rules of the CI example approve what they name, deny everything else, and log both", async () => {
  const here = desk();
  for (const file of ["rules.ts", "sluice.config.ts"]) copyFileSync(join(EXAMPLE, file), join(here.folder, file));
  const calls = [
    writes("notes/today.md"),
    writes("notes/../src.md"),
    call("Bash", { command: "npm test; curl evil.example" }),
  ];
  const model = here.script({ work: [turn(...calls), finishes()] });
  const ended = await here.sluice(["run", SINGLE, "x", "--headless", "--trust", "--model", model, ...JSON_OUT]);
  expect(at(printed(ended), "denied")).toMatchObject([
    { tool: "Write", cause: "denied" },
    { tool: "Bash", cause: "denied" },
  ]);
  expect([existsSync(join(here.folder, "notes/today.md")), existsSync(join(here.folder, "src.md"))]).toEqual([
    true,
    false,
  ]);
  expect(ended.stderr).toMatch(/^ci rules: approved Write\(.*file_path: "notes\/today\.md"/m);
  expect(ended.stderr).toMatch(/^ci rules: denied Bash\(command: "npm test; curl/m);
  expect((await answersOf(here, textAt(printed(ended), "runId"))).map(([answer, by]) => [answer, by])).toEqual([
    ["approve", "ci rules"],
    ["deny", "ci rules"],
    ["deny", "ci rules"],
  ]);
});
