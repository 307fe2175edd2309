import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, parseDuration } from "../src/duration.js";

test("one unit is read", () => {
  assert.equal(parseDuration("250ms"), 250);
  assert.equal(parseDuration("1.5h"), 5_400_000);
});

test("what is no duration is refused", () => {
  assert.throws(() => parseDuration("soon"), RangeError);
});

test("a duration is written in whole units", () => {
  assert.equal(formatDuration(5_400_000), "1h 30m");
  assert.equal(formatDuration(0), "0ms");
});
