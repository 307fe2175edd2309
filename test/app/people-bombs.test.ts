import { expect, test } from "vitest";
import { changeLines } from "../../packages/tui/src/cards/change.ts";
import { HIDES_NOTHING } from "../support/desk.ts";

test("an edit that would make gigabytes of a file is shown as what it replaces, and makes nothing of that size", () => {
  const now = "b".repeat(90_000);
  const input = { file_path: "/w/a.txt", old_string: "a", new_string: now, replace_all: true };
  const lines =
    changeLines("Edit", input, { kind: "text", text: "a".repeat(900_000), hiding: HIDES_NOTHING }, 80) ?? [];
  const shown = lines.map((line) => line.map(({ text }) => text).join(""));
  expect(shown.join("\n")).toContain("not compared with the file");
  expect(shown.join("").match(/b/g)?.length).toBeGreaterThanOrEqual(now.length);
});
