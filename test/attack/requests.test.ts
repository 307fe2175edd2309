import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { at, call, finishes, PIPELINES, printed, textAt, turn } from "../support/command.ts";
import { deskHere } from "../support/command-here.ts";

// Anyone who can write the store can show people another request than the one that waits. The run goes by its journal.

const JSON_OUT = ["--output-format", "json"];

async function waiting(change: string, content = "made") {
  const here = deskHere();
  const writes = turn(call("Write", { file_path: "x.txt", content }));
  const model = here.script({ work: [writes, finishes("end")] });
  const begun = await here.sluice(["run", `${PIPELINES}#single`, "x", "--model", model, "--wait=1ms", ...JSON_OUT]);
  const db = new DatabaseSync(join(here.store, "journal.db"));
  const { changes } = db.prepare(`UPDATE requests SET ${change}`).run();
  db.close();
  expect(changes).toBe(1);
  return { here, runId: textAt(printed(begun), "runId") };
}

test.each([
  ["other arguments", `body = json_set(body, '$.input.content', 'harmless')`],
  ["another tool", `body = json_set(body, '$.tool', 'Read')`],
  ["no arguments", `body = json_remove(body, '$.input')`],
  ["another digest", `digest = '${"a".repeat(64)}'`],
  ["another id", `request_id = 'work#1/a1/t9.c9'`],
  [
    "harmless arguments beside those that run",
    `body = json_set(body, '$.proposed', json_extract(body, '$.input'), '$.input.content', 'harmless')`,
  ],
  ["another reason", `body = json_set(body, '$.why', 'it only reads')`],
  ["another summary", `body = json_set(body, '$.argsSummary', 'Read()')`],
  ["another place", `body = json_set(body, '$.executionId', 'read#1')`],
  ["other paths", `body = json_remove(body, '$.touches')`],
  ["another kind", `kind = 'approveTransition'`],
])(
  "a request that shows %s is shown without the line that answers it, and no answer to it is sent",
  async (_what, change) => {
    const { here, runId } = await waiting(change);
    const shown = await here.sluice(["show", runId]);
    expect(shown.stdout).toContain("cannot be answered:");
    expect(shown.stdout).not.toContain("sluice answer");
    const [request] = [at(printed(await here.sluice(["show", runId, ...JSON_OUT])), "requests")].flat();
    expect(request).toMatchObject({ answer: null, fault: expect.any(String) });
    const audited = await here.sluice(["audit", runId, "--verify", ...JSON_OUT]);
    expect([audited.code, at(printed(audited), "verified")]).toEqual([1, false]);
    const answered = await here.sluice(["answer", runId, "c", "approve", ...JSON_OUT]);
    const byId = await here.sluice(["answer", runId, textAt(request, "requestId"), "approve", "--resume", ...JSON_OUT]);
    expect(answered.code).not.toBe(0);
    expect([byId.code, textAt(printed(byId), "error", "code")]).toEqual([4, "journal_damaged"]);
    expect(existsSync(join(here.folder, "x.txt"))).toBe(false);
  },
);

test("a request with text that looks like a secret is shown whole and answered, though its event is redacted", async () => {
  const { here, runId } = await waiting("kind = kind", `{"token":"' + run() + '"}`);
  const shown = await here.sluice(["show", runId]);
  expect(shown.stdout).toContain("' + run() + '");
  expect(shown.stdout).toContain("sluice answer");
  expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
  const answered = await here.sluice(["answer", runId, "c0", "deny", ...JSON_OUT]);
  expect(textAt(printed(answered), "outcome")).toBe("accepted");
});
