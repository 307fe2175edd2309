import type { FileEdit, StateLimits, Subject, ToolSpec } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { authorizeCall, type EarlierVerdict, type Policy } from "../../packages/core/src/gate/authorize-call.ts";
import { compileEnvelope } from "../../packages/core/src/gate/envelope.ts";
import {
  type CallUsage,
  countAllowed,
  countCall,
  countResult,
  limitsEdits,
  NO_CALLS,
} from "../../packages/core/src/gate/usage.ts";
import { command, echoTool, type Judged, judge, path, policyOf, sealed, word } from "../support/gate.ts";

// The hard limits of a state that count. All calls are inside the widest envelope there is.

const edit = (real: string, removed: number, added: number): FileEdit => ({ real, removed, added });

/** `envelope`, or the reason for which a call of Write that would make these edits is beyond a limit. */
function verdictOn(limits: StateLimits, edits: readonly FileEdit[], used: Partial<CallUsage> = {}): string {
  return said({ limits, usage: { ...NO_CALLS, ...used }, tool: { measured: { ok: true, edits } } });
}

function said(given: Judged, tool = "Write"): string {
  const verdict = judge(tool, { allowedTools: ["*"], ...given });
  return verdict.kind === "deny" && verdict.cause === "limit" ? verdict.reason : word(verdict);
}

describe("what calls have used", () => {
  test("a call that is made again counts as a repetition, and another call starts a new count", () => {
    const once = countCall(NO_CALLS, { key: "a" });
    const twice = countCall(once, { key: "a" });
    expect([once, twice, countCall(twice, { key: "b" })]).toEqual([
      { ...NO_CALLS, last: "a", times: 1 },
      { ...NO_CALLS, last: "a", times: 2 },
      { ...NO_CALLS, last: "b", times: 1 },
    ]);
  });

  test("an allowed call counts once, with the larger of removed and added lines and each file once", () => {
    const before: CallUsage = { last: "a", times: 1, calls: 1, editLines: 2, files: ["/ws/a"], resultBytes: 5 };
    expect(countAllowed(before)).toEqual({ ...before, calls: 2 });
    expect(countAllowed(before, [edit("/ws/b", 3, 1), edit("/ws/a", 1, 4), edit("/ws/b", 0, 1)])).toEqual({
      ...before,
      calls: 2,
      editLines: 10,
      files: ["/ws/a", "/ws/b"],
    });
  });

  test("the bytes of results add up", () => {
    const before: CallUsage = { last: "a", times: 1, calls: 1, editLines: 2, files: ["/ws/a"], resultBytes: 5 };
    expect(countResult(before, 7)).toEqual({ ...before, resultBytes: 12 });
  });

  test("each limit on lines and files limits edits, and no other does", () => {
    expect([{ maxEditLines: 0 }, { maxLinesPerEdit: 0 }, { maxFiles: 0 }].map(limitsEdits)).toEqual([true, true, true]);
    expect([undefined, {}, { maxToolCalls: 1 }, { maxResultBytes: 1 }].map((one) => limitsEdits(one))).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });
});

describe("a call", () => {
  test("is beyond a limit on calls once as many were run", () => {
    const having = (calls: number, maxToolCalls = 2): string => verdictOn({ maxToolCalls }, [], { calls });
    expect([having(0), having(1)]).toEqual(["envelope", "envelope"]);
    expect(having(2)).toBe("this stage may run 2 tool calls, and 2 were run");
    expect(having(3)).toMatch(/and 3 were run/);
    expect(having(1, 1)).toBe("this stage may run 1 tool call, and 1 were run");
    expect(having(0, 0)).toBe("this stage may run 0 tool calls, and 0 were run");
  });

  test("is judged as the first one where nothing is known of others", () => {
    const measured = { ok: true, edits: [edit("/ws/a", 0, 3)] } as const;
    expect(said({ limits: { maxToolCalls: 1, maxEditLines: 3, maxFiles: 1 }, tool: { measured } })).toBe("envelope");
    expect(said({ limits: { maxToolCalls: 0 }, tool: { measured } })).toMatch(/may run 0 tool calls/);
  });

  test("may edit as many lines as are left for all calls, and no more", () => {
    const asks = (removed: number, added: number): string =>
      verdictOn({ maxEditLines: 10 }, [edit("/ws/a", removed, added), edit("/ws/b", 1, 0)], { editLines: 4 });
    expect([asks(5, 0), asks(1, 5)]).toEqual(["envelope", "envelope"]);
    expect(asks(1, 6)).toBe("this stage may edit 10 lines: 4 are used, and this call would edit 7");
    expect(asks(6, 1)).toBe("this stage may edit 10 lines: 4 are used, and this call would edit 7");
  });

  test("may edit as many lines as one call may, whatever others did", () => {
    const asks = (added: number): string =>
      verdictOn({ maxLinesPerEdit: 1 }, [edit("/ws/a", 0, added)], { editLines: 100 });
    expect(asks(1)).toBe("envelope");
    expect(asks(2)).toBe("one call may edit 1 line in this stage, and this call would edit 2; make smaller edits");
  });

  test("may edit as many files as are left, and those again that were edited before", () => {
    const asks = (...files: readonly string[]): string =>
      verdictOn(
        { maxFiles: 3 },
        files.map((real) => edit(real, 0, 1)),
        { files: ["/ws/a", "/ws/b"] },
      );
    expect([asks("/ws/a", "/ws/b"), asks("/ws/c"), asks("/ws/c", "/ws/c", "/ws/a")]).toEqual([
      "envelope",
      "envelope",
      "envelope",
    ]);
    expect(asks("/ws/c", "/ws/d")).toBe("this stage may edit 3 files: 2 are used, and this call would edit 2 more");
  });
});

describe("where edits are limited", () => {
  const limits: StateLimits = { maxEditLines: 10 };
  const line: Subject = { kind: "line", text: "ls" };
  const judged = (subjects: readonly Subject[], tool: Judged["tool"] = { effect: "read" }): string =>
    said({ limits, subjects, tool }, "Bash");

  test("a call whose tool could not measure it is refused with the reason", () => {
    expect(judged([], { effect: "write", measured: { ok: false, reason: "no measure" } })).toBe("no measure");
  });

  test("a call that may not write needs no measure", () => {
    expect(judged([path("/ws/a")])).toBe("envelope");
    expect(judged([line, command("ls", { readOnly: true })])).toBe("envelope");
    expect(judged([path("/ws/a")], { effect: "ask" })).toBe("envelope");
  });

  test("a call that may write needs one, whichever of its facts says so", () => {
    const unmeasured = "this stage limits what its calls edit, and Bash does not report what its calls change";
    expect(judged([], { effect: "write" })).toBe(unmeasured);
    expect(judged([path("/ws/a", "write")])).toBe(unmeasured);
    expect(judged([path("/ws/b"), path("/ws/a", "write")])).toBe(unmeasured);
    expect(judged([command("make")])).toMatch(/commands may only read: make is not known to only read$/);
  });

  test("a command that is known to only read runs without one", () => {
    const reads = command("ls src", { readOnly: true });
    expect(judged([line, reads], { effect: "write" })).toBe("envelope");
    expect(judged([line, reads, path("/ws/src")], { effect: "write" })).toBe("envelope");
    expect(judged([reads], { effect: "write" })).toBe("envelope");
  });

  test("a command that does more is refused, with what it does and at most 120 characters of it", () => {
    const reads = command("ls", { readOnly: true });
    expect(judged([line, reads, command("sed -i x", { why: "-i edits in place" })], { effect: "write" })).toBe(
      "this stage limits what its calls edit, so commands may only read: sed -i x does more (-i edits in place)",
    );
    const long = judged([line, command(`make ${"x".repeat(200)}`)], { effect: "write" });
    expect(long).toBe(
      `this stage limits what its calls edit, so commands may only read: make ${"x".repeat(115)}… is not known to only read`,
    );
  });

  test("a line that may do more than its reading commands is refused", () => {
    const reads = command("ls", { readOnly: true });
    const more = "this stage limits what its calls edit, so commands may only read, and this line may do more";
    expect(judged([line], { effect: "write" })).toBe(more);
    expect(judged([line, reads, path("/ws/a", "write")], { effect: "write" })).toBe(more);
    expect(judged([line, reads, { kind: "opaque", reason: "a variable" }], { effect: "write" })).toBe(more);
    expect(judged([line, reads, { kind: "host", host: "a.example" }], { effect: "write" })).toBe(more);
  });

  test("a command in a sandbox needs no measure: the sandbox lets it write nothing", () => {
    expect(judged([line, { kind: "sandboxed", by: "bwrap" }, command("make")], { effect: "write" })).toBe("envelope");
  });
});

describe("a call of a tool that measures", () => {
  const inside: Partial<Policy> = { envelope: compileEnvelope(["*"]), limits: { maxEditLines: 10 } };
  const subjects = [path("/ws/a", "write")];
  const measuring = (measure?: ToolSpec["measure"]) =>
    echoTool({ subjects: () => subjects, ...(measure === undefined ? {} : { measure }) });
  const authorized = async (measure: ToolSpec["measure"], more: Partial<Policy> = {}, earlier?: EarlierVerdict) =>
    await authorizeCall(
      sealed({ input: { text: "x" } }),
      policyOf(measuring(measure), { ...inside, ...more }),
      earlier,
    );
  const ten = async () => [edit("/ws/a", 0, 10)];
  const eleven = async () => [edit("/ws/a", 0, 11)];
  const beyond = { kind: "deny", cause: "limit" } as const;

  test("is allowed with the edits that were counted", async () => {
    expect(await authorized(ten)).toMatchObject({ kind: "allow", edits: [edit("/ws/a", 0, 10)] });
    expect(await authorized(eleven)).toMatchObject(beyond);
  });

  test("keeps of its edits only the file and the lines", async () => {
    const more = async () => [{ ...edit("/ws/a", 1, 2), text: "secret" }];
    expect(await authorized(more)).toHaveProperty("edits", [edit("/ws/a", 1, 2)]);
  });

  test("is denied as what it is where its arguments are unreadable or its tool is unknown", async () => {
    const policy = policyOf(measuring(ten), inside);
    expect(await authorizeCall(sealed({}), policy)).toMatchObject({ output: { code: "invalid_tool_input" } });
    expect(await authorizeCall(sealed({ tool: "Nope", input: {} }), policy)).toMatchObject({
      output: { code: "unknown_tool" },
    });
  });

  test("is not measured in a state without limits on edits", async () => {
    let measured = 0;
    const counting = async () => {
      measured += 1;
      return [];
    };
    for (const limits of [undefined, {}, { maxToolCalls: 3 }])
      expect(await authorized(counting, { limits })).not.toHaveProperty("edits");
    expect(measured).toBe(0);
  });

  test("is measured with its input, the workspace, and the subjects that were judged", async () => {
    const seen: unknown[] = [];
    const notes = { mine: true };
    const noting: ToolSpec["measure"] = async (input, scene) => {
      seen.push(input, scene);
      return [];
    };
    await authorized(noting, { notes });
    await authorized(noting);
    const scene = { workspace: { root: "/ws", store: "/ws/.sluice/store" }, judged: subjects };
    expect(seen).toEqual([{ text: "x" }, { ...scene, notes }, { text: "x" }, { ...scene, notes: {} }]);
  });

  test.each<[string, unknown]>([
    ["no list", { real: "/ws/a", removed: 0, added: 1 }],
    ["nothing", undefined],
    ["a list of something else", [undefined]],
    ["one edit without a path beside others", [edit("/ws/a", 0, 1), { removed: 0, added: 1 }]],
    ["a relative path", [edit("a", 0, 1)]],
    ["less than no lines removed", [edit("/ws/a", -1, 1)]],
    ["less than no lines added", [edit("/ws/a", 1, -1)]],
    ["half a line removed", [edit("/ws/a", 0.5, 1)]],
    ["half a line added", [edit("/ws/a", 1, 0.5)]],
  ])("is denied where the measure is %s", async (_what, edits) => {
    const broken = async (): Promise<readonly FileEdit[]> => JSON.parse(JSON.stringify(edits ?? null));
    expect(await authorized(broken)).toMatchObject({
      ...beyond,
      output: { reason: "Echo did not report what this call would change as a list of edits" },
    });
  });

  test("is denied where the measure throws, with what it said", async () => {
    const broken = async () => {
      throw new Error("the file is gone");
    };
    expect(await authorized(broken)).toMatchObject({
      ...beyond,
      output: { reason: "Echo failed to determine what this call would change: the file is gone" },
    });
  });

  test("may edit nothing, and then nothing is counted", async () => {
    expect(await authorized(async () => [])).toMatchObject({ kind: "allow", edits: [] });
    expect(await authorized(async () => [edit("/ws/a", 0, 0)], { limits: { maxEditLines: 0 } })).toMatchObject({
      kind: "allow",
    });
  });

  test("that a process decided about before is held to what was recorded of it", async () => {
    const earlier: EarlierVerdict = { kind: "allow", by: "envelope", subjects, edits: [edit("/ws/a", 0, 3)] };
    expect(await authorized(eleven, {}, earlier)).toMatchObject({ kind: "allow", edits: [edit("/ws/a", 0, 3)] });
    expect(await authorized(ten, {}, { ...earlier, edits: [edit("/ws/a", 0, 11)] })).toMatchObject(beyond);
    expect(await authorized(eleven, {}, { ...earlier, edits: [] })).toMatchObject({ kind: "allow", edits: [] });
  });

  test("that a replay repeats has the edits of the replay", async () => {
    expect(await authorized(eleven, { edits: [edit("/ws/b", 0, 2)] })).toMatchObject({
      kind: "allow",
      edits: [edit("/ws/b", 0, 2)],
    });
    // Of a tool that measures nothing, an empty list says nothing.
    expect(await authorized(undefined, { edits: [] })).toMatchObject(beyond);
    expect(await authorized(undefined, { edits: [edit("/ws/b", 0, 2)] })).toMatchObject({ kind: "allow" });
  });

  test("and that a person has to grant is granted with the edits that were counted", async () => {
    const call = sealed({ input: { text: "x" } });
    const asked = await authorizeCall(call, policyOf(measuring(ten), { ...inside, envelope: compileEnvelope([]) }));
    if (asked.kind !== "prompt") throw new Error(`it is ${asked.kind}`);
    expect(asked.edits).toEqual([edit("/ws/a", 0, 10)]);
    const granted = await asked.granted({ approve: true, digest: call.argsDigest }, asked.body);
    expect(granted).toMatchObject({ kind: "allow", by: "grant", edits: [edit("/ws/a", 0, 10)] });
  });
});
