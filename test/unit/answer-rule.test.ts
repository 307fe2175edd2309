import type { JsonObject } from "@sluice/core";
import { startedUnsandboxed } from "@sluice/core/gate";
import { describe, expect, test } from "vitest";

describe("what the record says of walls", () => {
  const event = (
    type: "run.started" | "run.resumed" | "run.forked" | "call.started" | "call.finished",
    data: JsonObject,
  ) => ({
    id: "r1:1.0",
    runId: "r1",
    type,
    at: 0,
    data,
  });
  const advisory = { agents: [{ name: "agent", class: "advisory" }] };
  const ofChild = (data: JsonObject) => ({ ...event("run.started", data), runId: "r1/a#1:a1:go/k" });
  const started = (sandbox?: JsonObject) => event("run.started", sandbox === undefined ? {} : { sandbox });
  const forked = (sandbox?: JsonObject) =>
    event("run.started", { forkedFrom: {}, ...(sandbox === undefined ? {} : { sandbox }) });
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
    ["an agent of class advisory", [event("run.started", advisory)], true, true],
    ["one of class hard", [event("run.started", { agents: [{ name: "agent", class: "hard" }] })], false, false],
    ["one that a resume starts", [started(), event("run.resumed", advisory)], true, true],
    ["one in a child's pipeline", [started(), ofChild(advisory)], true, true],
    ["a child's sandbox", [started(), ofChild({ sandbox: none })], false, false],
    [
      "a fork that its own process begins",
      [forked(none), event("run.forked", {}), event("run.resumed", {})],
      false,
      true,
    ],
    [
      "a fork that another process continues",
      [forked(none), event("run.forked", {}), event("run.resumed", {}), event("run.resumed", { sandbox: walled })],
      true,
      true,
    ],
    [
      "a fork that is begun with a server without a wall",
      [forked(), event("run.forked", {}), event("run.resumed", { sandbox: { unsandboxedServers: ["x"] } })],
      true,
      true,
    ],
    [
      "a fork with a copied resume",
      [forked(none), event("run.resumed", { sandbox: walled }), event("run.forked", {}), event("run.resumed", {})],
      false,
      true,
    ],
    ["a fork of such a run", [event("run.started", { unsandboxed: true })], true, true],
  ])("%s", (_, events, atWork, left) => {
    expect([startedUnsandboxed(events, true), startedUnsandboxed(events, false)]).toEqual([atWork, left]);
  });
});
