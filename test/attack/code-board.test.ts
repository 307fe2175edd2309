import { Readable, Writable } from "node:stream";
import type { OpenRequest } from "@sluice/core";
import { expect, test } from "vitest";
import type { Terminal } from "../../packages/cli/src/output/terminal.ts";
import { createCodeBoard } from "../../packages/cli/src/runs/code-board.ts";

test("the line with a request's code stands below all of the request, not redacted", () => {
  let said = "";
  const terminal: Terminal = {
    out: () => undefined,
    err: () => undefined,
    paint: (_stream, _tone, text) => text,
    interactive: false,
    input: Readable.from([]),
    prompts: new Writable(),
    controlling: () => ({
      say: (text) => {
        said += text;
      },
      close: () => undefined,
    }),
    facts: () => ({ stdin: true, stdout: true, stderr: true, columns: 60, rows: 24, colourBits: 1 }),
    flush: async () => undefined,
  };
  const command = `echo '"token":"' ; touch PWNED ; echo '"'${" ".repeat(300)};rm -rf src`;
  const body = { executionId: "work#1", tool: "Bash", input: { command }, why: "it is not in the envelope" };
  const about = { runId: "r1", requestId: "x", digest: "d".repeat(64), openedAt: 0 };
  const request: OpenRequest = { ...about, kind: "grantStageTool", body };
  createCodeBoard(terminal, (words) => words.join(" ")).show(request, "CODE");
  const [card = "", line = ""] = said.split("sluice: ");
  const whole = card.replaceAll(/\n *[│┆] /g, "");
  expect(whole).toContain("touch PWNED");
  expect(whole).toContain(";rm -rf src");
  expect(line).toContain("--code CODE approve");
});
