import { describe, expect, test } from "vitest";
import { isLoopbackHost, parseLoopback } from "../../packages/cli/src/commands/serve/loopback.ts";
import { createMetrics } from "../../packages/cli/src/commands/serve/metrics.ts";
import { timeWithCountdown } from "../../packages/cli/src/output/countdown.ts";

describe("a loopback address", () => {
  test.each([
    ["127.0.0.1:9464", { host: "127.0.0.1", port: 9464 }],
    ["127.8.9.10:1", { host: "127.8.9.10", port: 1 }],
    ["localhost:0", { host: "127.0.0.1", port: 0 }],
    ["[::1]:9464", { host: "::1", port: 9464 }],
  ])("%s is one", (text, address) => expect(parseLoopback(text)).toEqual(address));

  test.each([
    "0.0.0.0:9464",
    "127.0.0.1",
    "127.0.0.1:99999",
    "127.0.0.256:1",
    "127.1:80",
    "10.0.0.1:9464",
    "[::]:9464",
    "[::ffff:127.0.0.1]:9464",
    "localhost.example.com:9464",
    "127.0.0.1:9464@evil.example:1",
    "http://127.0.0.1:9464",
    "127.0.0.1:9464\n",
    "",
  ])("%j is none", (text) => expect(parseLoopback(text)).toBeUndefined());

  test.each([
    ["127.0.0.1:9464", true],
    ["127.0.0.1", true],
    ["localhost", true],
    ["[::1]", true],
    ["[::1]:80", true],
    ["evil.example", false],
    ["evil.example:9464", false],
    ["127.0.0.1.evil.example", false],
    ["localhost:1:2", false],
    ["", false],
    [undefined, false],
  ])("the Host header %j: %j", (header, is) => expect(isLoopbackHost(header)).toBe(is));
});

test("the histogram of lateness is cumulative, and counts only wakes that had a time", () => {
  const metrics = createMetrics(0);
  for (const lateMs of [0, 7, 249, 250, 251, 400_000]) metrics.woke(lateMs);
  metrics.woke(undefined);
  const text = metrics.text({ counts: undefined, active: 0, heldBack: 0, draining: true });
  const bucket = (le: string): number =>
    Number(new RegExp(`_bucket\\{le="${le.replace("+", "\\+")}"\\} (\\d+)`).exec(text)?.[1]);
  expect(["0.01", "0.25", "0.5", "300", "+Inf"].map(bucket)).toEqual([2, 4, 5, 5, 6]);
  expect(text).toContain("sluice_wake_lateness_seconds_count 6\n");
  expect(text).toContain("sluice_wakes_total 7\n");
  expect(text).toContain("sluice_up 0\n");
  expect(text, "a store that cannot be read has no counts").not.toContain("sluice_runs");
});

test.each([
  [-5_000, "due"],
  [1, "in 1s"],
  [90_000, "in 1m30s"],
  [3 * 86_400_000, "in 3d00h"],
])("a time that is %i ms away is shown as %s", (away, words) => {
  const now = Date.UTC(2027, 0, 1);
  expect(timeWithCountdown(now + away, now)).toMatch(/^20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ \(.*\)$/);
  expect(timeWithCountdown(now + away, now)).toContain(`(${words})`);
});
