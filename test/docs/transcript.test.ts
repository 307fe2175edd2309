import { expect, test } from "vitest";
import { blocksOf, readPage, root, scratchInside, sluice } from "./pages.ts";

/** A line of the transcript as a pattern: … stands for anything, and as a whole line for any lines. */
function patternOf(line: string): RegExp {
  const parts = line.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}

test("the README's transcript is what the demo prints", () => {
  const block = blocksOf(readPage("README.md")).find(({ note }) => note.startsWith("the transcript"));
  const shown = block?.text.trimEnd().split("\n") ?? [];
  expect(shown.length).toBeGreaterThan(10);
  const { status, stdout } = sluice(["demo"], root, { TMPDIR: scratchInside() });
  expect(status).toBe(0);
  const printed = stdout.split("\n");
  let at = printed.findIndex((line) => patternOf(shown[0] ?? "").test(line));
  let skips = false;
  for (const line of shown) {
    if (line === "…") {
      skips = true;
      continue;
    }
    if (skips) at = printed.findIndex((candidate, index) => index >= at && patternOf(line).test(candidate));
    expect(printed[at]).toMatch(patternOf(line));
    skips = false;
    at += 1;
  }
});
