import type { JsonObject } from "@sluice/core";
import { startedUnsandboxed } from "@sluice/core/gate";
import { describe, expect, test } from "vitest";

describe("what the record says of walls", () => {
  const event = (type: "run.started" | "run.resumed" | "call.started" | "call.finished", data: JsonObject) => ({
    id: "r1:1.0",
    runId: "r1",
    type,
    at: 0,
    data,
  });
  const started = (sandbox?: JsonObject) => event("run.started", sandbox === undefined ? {} : { sandbox });
  const none = { wall: "none", unsandboxedServers: [] };
  const walled = { wall: "bubblewrap", unsandboxedServers: [] };
  test.each([
    ["nothing", [started(), event("call.started", { tool: "Read" })], false, false],
    ["a call without a wall", [started(walled), event("call.started", { wall: "none" })], true, true],
    ["a call that said so itself", [started(), event("call.finished", { facts: { wall: "none" } })], true, true],
    ["calls behind a wall", [started(walled), event("call.started", { wall: "bubblewrap" })], false, false],
    ["a server without a wall", [started({ ...walled, unsandboxedServers: ["files"] })], true, true],
    [
      "one that was started on resume",
      [started(), event("run.resumed", { sandbox: { unsandboxedServers: ["x"] } })],
      true,
      true,
    ],
    ["a process without a wall that may not have recorded all", [started(none)], false, true],
    ["one of those before the last", [started(none), event("run.resumed", { sandbox: walled })], true, true],
    ["a fork of such a run", [event("run.started", { unsandboxed: true })], true, true],
  ])("%s", (_, events, atWork, left) => {
    expect([startedUnsandboxed(events, true), startedUnsandboxed(events, false)]).toEqual([atWork, left]);
  });
});
