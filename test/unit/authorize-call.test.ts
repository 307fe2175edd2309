import { field, type Json, type JsonObject, type Subject, type ToolCall } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type AllowedCall,
  type Authorization,
  authorizeCall,
  type CallScope,
  type EarlierVerdict,
  type Policy,
  type PromptedCall,
  SealedCall,
} from "../../packages/core/src/gate/authorize-call.ts";
import { compileEnvelope } from "../../packages/core/src/gate/envelope.ts";
import type { Tool } from "../../packages/core/src/gate/tool.ts";
import { countCall, NO_CALLS } from "../../packages/core/src/gate/usage.ts";
import { echoTool, path, policyOf, scopeOf, sealed, toolCall } from "../support/gate.ts";

/** A tool that keeps what it ran with. */
function watched(spec: Parameters<typeof echoTool>[0] = {}) {
  const ran: Json[] = [];
  const execute = async (input: Json) => {
    ran.push(input);
    return { ok: true, output: "done" };
  };
  return { ran, tool: echoTool({ execute, ...spec }) };
}
const inside: Partial<Policy> = { envelope: compileEnvelope(["Echo"]) };

function allowedOf(authorization: Authorization): AllowedCall {
  return authorization.kind === "allow" ? authorization : expect.fail(JSON.stringify(authorization));
}
function promptOf(authorization: Authorization): PromptedCall {
  return authorization.kind === "prompt" ? authorization : expect.fail(JSON.stringify(authorization));
}
/** The request of a call outside the envelope. */
async function prompt(tool: Tool, input: Json = {}, scope?: CallScope, policy: Partial<Policy> = {}) {
  return promptOf(await authorizeCall(sealed({ input }, scope), policyOf(tool, policy)));
}
const yes = ({ digest }: PromptedCall) => ({ approve: true, digest });

test("a call whose paths hold a known secret is refused, and a reason that does is masked", async () => {
  const mask = (text: string): string => text.replaceAll("k3y", "[key]");
  const decided = async (...subjects: readonly Subject[]) => {
    const { tool } = watched({ subjects: () => subjects });
    return await authorizeCall(sealed({ input: {} }), policyOf(tool, { ...inside, mask }));
  };
  expect(await decided(path("/ws/src/a.ts", "read"))).toMatchObject({ kind: "allow" });
  expect(await decided(path("/ws/k3y/a.ts", "read"))).toMatchObject({
    kind: "deny",
    cause: "limit",
    output: { reason: expect.stringContaining("holds a known secret") },
    subjects: [{ kind: "refused" }],
  });
  expect(await decided({ kind: "opaque", reason: "it sends k3y" })).toMatchObject({
    kind: "prompt",
    why: "it sends [key]",
    subjects: [{ kind: "opaque", reason: "it sends [key]" }],
  });
});

test("no member can be put on the prototype of sealed calls", () => {
  expect(Reflect.set(SealedCall.prototype, "approved", true)).toBe(false);
});

describe("a sealed call", () => {
  const sealedIn = (input: Json) => sealed({ input });

  test("is bound to run, execution, attempt, id, tool and the digest of its arguments", () => {
    const call = sealed({ id: "t3.c0", input: { b: 1, a: 2 } });
    expect(call).toMatchObject({
      scope: { runId: "r1", executionId: "plan#1", attempt: 1 },
      id: "t3.c0",
      tool: "Echo",
    });
    expect(sealedIn({ a: 2, b: 1 }).argsDigest).toBe(call.argsDigest);
    expect(sealedIn({ a: 2, b: 2 }).argsDigest).not.toBe(call.argsDigest);
  });

  test("keeps its own list of the media types that its model reads, if there is one", () => {
    const takes = ["image/png"];
    const call = sealed({ input: {}, takes });
    takes.push("text/html");
    expect([call.takes, sealedIn({}).takes]).toEqual([["image/png"], undefined]);
  });

  test("cannot be changed afterwards, from outside or from inside", () => {
    const input = { list: [1], deep: { a: "x" } };
    const call = sealedIn(Object.freeze(input));
    input.list.push(2);
    input.deep.a = "y";
    expect(call.input).toEqual({ list: [1], deep: { a: "x" } });
    expect(() => Object.assign(Object(field(call.input, "deep")), { a: "z" })).toThrow(TypeError);
    for (const key of ["input", "tool", "argsDigest", "scope"]) expect(Reflect.set(call, key, "other")).toBe(false);
  });

  test("whose arguments are not JSON says so and is never allowed", async () => {
    let asked = 0;
    const { ran, tool } = watched({
      input: z.any(),
      subjects: () => {
        asked += 1;
        return [];
      },
    });
    const call = sealedIn(Number.NaN);
    expect(call).toMatchObject({ inputFault: expect.stringContaining("not a JSON number") });
    for (const call of [
      sealedIn(Number.NaN),
      sealed({}),
      sealed({ inputFault: { code: "invalid_tool_input", message: "no" } }),
    ]) {
      expect(call.input).toBeUndefined();
      expect(call.inputFault).toMatch(/./);
      const denied = await authorizeCall(call, policyOf(tool, inside));
      expect(denied).toMatchObject({ kind: "deny", output: { code: "invalid_tool_input" } });
    }
    expect(asked).toBe(0);
    expect(ran).toEqual([]);
  });

  test("of a text that reads like a fault is another call than the faulty one", () => {
    const faulty = sealed({ inputFault: { code: "invalid_tool_input", message: "not JSON" } });
    const text = sealedIn("not JSON");
    expect(text.argsDigest).toBe(faulty.argsDigest);
    expect([text.input, text.inputFault, faulty.input]).toEqual(["not JSON", undefined, undefined]);
  });

  test("is not made of a fault of the code that hands arguments over", () => {
    const broken = {
      get a(): Json {
        throw new Error("a getter that fails");
      },
    };
    expect(() => sealedIn(broken)).toThrow("a getter that fails");
  });

  test("cannot be copied or made up: nothing else is authorized", async () => {
    const { tool } = watched();
    const call = sealed({ input: {} });
    const forged: readonly SealedCall[] = [
      Object.assign(Object.create(SealedCall.prototype), call),
      Object(JSON.parse(JSON.stringify(Object.assign({ input: {} }, call)))),
      new Proxy(call, {}),
      new (class extends SealedCall {
        override get input(): Json {
          return { other: true };
        }
      })(scopeOf(), { id: "t1.c0", tool: "Echo", input: {} }),
    ];
    for (const one of forged)
      await expect(authorizeCall(one, policyOf(tool, inside))).rejects.toMatchObject({
        class: "Host",
        code: "call_not_sealed",
      });
  });
});

describe("an allowed call", () => {
  test("runs once, with the arguments that were digested, also when the caller keeps it", async () => {
    const { ran, tool } = watched();
    const allowed = allowedOf(await authorizeCall(sealed({ input: { a: 1 } }), policyOf(tool, inside)));
    expect(await allowed.execute(toolCall())).toEqual({ ok: true, output: "done" });
    const kept = { ...allowed };
    for (const again of [allowed, kept])
      await expect(again.execute(toolCall())).rejects.toMatchObject({ class: "Host", code: "approval_void" });
    expect(ran).toEqual([{ a: 1 }]);
  });

  test("that failed has run", async () => {
    const { tool } = watched({ execute: () => Promise.reject(new Error("disk full")) });
    const allowed = allowedOf(await authorizeCall(sealed({ input: {} }), policyOf(tool, inside)));
    await expect(allowed.execute(toolCall())).rejects.toThrow("disk full");
    await expect(allowed.execute(toolCall())).rejects.toMatchObject({ code: "approval_void" });
  });

  test("does not run after its attempt", async () => {
    const { ran, tool } = watched();
    const scope = scopeOf();
    const allowed = allowedOf(await authorizeCall(sealed({ input: {} }, scope), policyOf(tool, inside)));
    scope.end();
    await expect(allowed.execute(toolCall())).rejects.toMatchObject({ code: "approval_void" });
    expect(ran).toEqual([]);
  });

  test("names what allowed it and what it may touch, and prepares only where its tool does", async () => {
    const prepared: ToolCall[] = [];
    const touched = [path("/ws/a.ts", "write")];
    const prepare = (_: Json, call: ToolCall) => {
      prepared.push(call);
      return { before: "hash" };
    };
    const { tool } = watched({ prepare, subjects: () => touched });
    const by = async (policy: Partial<Policy>) =>
      allowedOf(await authorizeCall(sealed({ input: {} }), policyOf(tool, policy)));
    const allowed = await by(inside);
    expect(allowed).toMatchObject({ by: "envelope", subjects: touched });
    expect(await allowed.prepare?.(toolCall())).toEqual({ before: "hash" });
    expect(prepared).toHaveLength(1);
    expect(await by({ envelope: undefined, mode: "yolo" })).toMatchObject({ by: "mode" });
    expect(allowedOf(await authorizeCall(sealed({ input: {} }), policyOf(watched().tool, inside)))).not.toHaveProperty(
      "prepare",
    );
  });
});

describe("a call that a person has to grant", () => {
  test("runs once by an approval of its digest, with the arguments that were shown", async () => {
    const { ran, tool } = watched();
    const asked = await prompt(tool, { a: 1 });
    expect(asked.body).toMatchObject({ proposalId: "t1.c0", input: { a: 1 }, argsDigest: asked.digest });
    expect(asked.body).not.toHaveProperty("proposed");
    const granted = allowedOf(await asked.granted(yes(asked), asked.body));
    expect(granted.by).toBe("grant");
    await granted.execute(toolCall());
    await expect(granted.execute(toolCall())).rejects.toMatchObject({ code: "approval_void" });
    await expect(asked.granted(yes(asked), asked.body)).rejects.toMatchObject({ code: "approval_void" });
    expect(ran).toEqual([{ a: 1 }]);
  });

  test("holds nothing that runs it, and neither does a denied one", async () => {
    const { ran, tool } = watched();
    const asked = await prompt(tool);
    const denied = await authorizeCall(sealed({ tool: "Other", input: {} }), policyOf(tool));
    for (const holder of [asked, denied]) {
      for (const key of Reflect.ownKeys(holder)) {
        const member: unknown = Reflect.get(holder, key);
        if (typeof member === "function")
          await Promise.resolve(Reflect.apply(member, holder, [{}, {}])).catch(() => undefined);
      }
      expect(holder).not.toHaveProperty("execute");
    }
    expect(ran).toEqual([]);
  });

  test("is not granted by an answer about other arguments, which does not use up the request", async () => {
    const { tool } = watched();
    const asked = await prompt(tool, { a: 1 });
    for (const digest of ["0".repeat(64), "", sealed({ input: { a: 2 } }).argsDigest])
      expect(await asked.granted({ approve: true, digest }, asked.body)).toMatchObject({
        kind: "deny",
        cause: "denied",
        output: { reason: expect.stringContaining("different arguments") },
      });
    expect((await asked.granted(yes(asked), asked.body)).kind).toBe("allow");
  });

  test("is not granted once it was denied: the first answer stands", async () => {
    const { tool } = watched();
    const asked = await prompt(tool);
    expect(await asked.granted({ ...yes(asked), approve: false }, asked.body)).toMatchObject({
      kind: "deny",
      cause: "denied",
    });
    await expect(asked.granted(yes(asked), asked.body)).rejects.toMatchObject({ code: "approval_void" });
  });

  test("is not granted by what only looks like an approval", async () => {
    const { tool } = watched();
    for (const approve of ["yes", 1, {}, null]) {
      const asked = await prompt(tool);
      const answer = Object.assign(yes(asked), { approve });
      expect(await asked.granted(answer, asked.body)).toMatchObject({ kind: "deny" });
    }
  });

  test("is not granted for arguments that were not shown", async () => {
    const { tool } = watched();
    for (const other of [{ input: { a: 2 } }, { input: undefined }, { input: null }]) {
      const asked = await prompt(tool, { a: 1 });
      const body: JsonObject = JSON.parse(JSON.stringify({ ...asked.body, ...other }));
      expect(await asked.granted(yes(asked), body)).toMatchObject({
        kind: "deny",
        cause: "limit",
        output: { reason: expect.stringMatching(/no longer valid: its tool now transforms these arguments/) },
      });
    }
    const asked = await prompt(tool, { a: 1, b: -0 });
    const body = { ...asked.body, input: { b: 0, a: 1 } };
    expect(await asked.granted(yes(asked), body)).toMatchObject({ kind: "allow" });
  });

  test("is not granted by what was shown of another call with the same arguments", async () => {
    const { tool } = watched();
    for (const other of [
      { tool: "Other" },
      { proposalId: "t1.c1" },
      { attempt: 2 },
      { executionId: "plan#2" },
      { argsDigest: "0".repeat(64) },
    ]) {
      const asked = await prompt(tool, { a: 1 });
      const body = { ...asked.body, ...other };
      expect(await asked.granted(yes(asked), body)).toMatchObject({ kind: "deny", cause: "limit" });
      const earlier: EarlierVerdict = { kind: "prompt", body, subjects: asked.subjects };
      const again = await authorizeCall(sealed({ input: { a: 1 } }), policyOf(tool), earlier);
      expect(again).toMatchObject({ kind: "deny", cause: "limit" });
    }
  });

  test("is granted for itself only, not for its twin", async () => {
    const { tool } = watched();
    const policy = policyOf(tool);
    const first = promptOf(await authorizeCall(sealed({ id: "t1.c0", input: { a: 1 } }), policy));
    const twin = promptOf(await authorizeCall(sealed({ id: "t1.c1", input: { a: 1 } }), policy));
    allowedOf(await first.granted(yes(first), first.body));
    expect(await twin.granted({ ...yes(first), approve: false }, first.body)).toMatchObject({ kind: "deny" });
  });

  test("is neither granted nor run after its attempt", async () => {
    const { ran, tool } = watched();
    const scope = scopeOf();
    const [asked, other] = [await prompt(tool, {}, scope), await prompt(tool, {}, scope)];
    const granted = allowedOf(await other.granted(yes(other), other.body));
    scope.end();
    await expect(asked.granted(yes(asked), asked.body)).rejects.toMatchObject({ code: "approval_void" });
    await expect(granted.execute(toolCall())).rejects.toMatchObject({ code: "approval_void" });
    expect(ran).toEqual([]);
  });

  test("can still be vetoed by a hook, which sees the call as it will run", async () => {
    const { ran, tool } = watched({ input: z.object({ a: z.number().default(7) }) });
    const seen: unknown[] = [];
    const hooks: Policy["hooks"] = async (call) => {
      seen.push(call);
      return { vetoed: { hook: "session", reason: "not on Fridays" } };
    };
    const asked = await prompt(tool, {}, undefined, { hooks });
    expect(seen).toEqual([]);
    const denied = await asked.granted(yes(asked), asked.body);
    expect(denied).toMatchObject({
      kind: "deny",
      cause: "hook",
      vetoed: { hook: "session", reason: "not on Fridays" },
    });
    expect(seen).toEqual([
      {
        tool: "Echo",
        input: { a: 7 },
        executionId: "plan#1",
        attempt: 1,
        proposalId: "t1.c0",
        argsDigest: asked.digest,
        approvedBy: "grant",
      },
    ]);
    expect(ran).toEqual([]);
  });
});

describe("a call that does not get as far as its tool", () => {
  const unbound = echoTool({ subjects: () => expect.fail("asked what it would touch") });

  test("is one that was made three times in a row, and at six times its state is stuck", async () => {
    const policy = policyOf(unbound, inside);
    const kinds: string[] = [];
    let usage = NO_CALLS;
    for (let times = 1; times <= 6; times += 1) {
      const call = sealed({ id: `t${times}.c0`, input: { a: 1 } });
      usage = countCall(usage, call);
      const late = usage.times < 3 ? "no time is left" : undefined;
      const answer = await authorizeCall(call, { ...policy, usage, late });
      kinds.push(
        answer.kind === "deny" ? `${String(field(answer.output, "code"))} ${answer.stuck ?? false}` : answer.kind,
      );
    }
    expect(kinds).toEqual([
      ...["tool_call_denied false", "tool_call_denied false", "repeated_call false", "repeated_call false"],
      ...["repeated_call false", "repeated_call true"],
    ]);
    expect(countCall(usage, sealed({ input: { a: 2 } })).times).toBe(1);
    expect(countCall(usage, sealed({ tool: "Other", input: { a: 1 } })).times).toBe(1);
  });

  test("is one that the output limit cut off, and one after a time cap", async () => {
    const cut = sealed({ inputFault: { code: "truncated_call", message: "cut", raw: "{" } });
    expect(await authorizeCall(cut, policyOf(unbound, inside))).toMatchObject({
      kind: "deny",
      output: { code: "truncated_call" },
    });
    const late = { ...inside, late: "the time is over" };
    expect(await authorizeCall(sealed({ input: {} }), policyOf(unbound, late))).toMatchObject({
      cause: "limit",
      output: { reason: "the time is over" },
    });
  });

  test("unreadable arguments are the same only if their raw text is", () => {
    const unreadable = (raw?: string) =>
      sealed({
        inputFault: { code: "invalid_tool_input", message: "not JSON", ...(raw === undefined ? {} : { raw }) },
      });
    const times = (...calls: readonly SealedCall[]) =>
      calls.reduce((usage, call) => countCall(usage, call), NO_CALLS).times;
    expect(times(unreadable("{a"), unreadable("{a"))).toBe(2);
    expect(times(unreadable("{a"), unreadable("{b"))).toBe(1);
  });
});

describe("a call that an earlier process decided about", () => {
  const file = path("/ws/src/a.ts", "write");
  const before: EarlierVerdict = { kind: "allow", by: "envelope", subjects: [file] };
  const { executionId, attempt } = scopeOf();
  const { id: proposalId, tool: name, argsDigest } = sealed({ input: {} });
  const body = { executionId, attempt, proposalId, tool: name, argsDigest, input: {} };
  const asked: EarlierVerdict = { kind: "prompt", body, subjects: [file] };
  const touching = (...subjects: readonly (typeof file)[]) => watched({ subjects: () => subjects });
  const scoped = (rule: string): Partial<Policy> => ({ envelope: compileEnvelope([rule]) });
  const again = async (tool: Tool, earlier: EarlierVerdict, policy: Partial<Policy>) =>
    await authorizeCall(sealed({ input: {} }), policyOf(tool, policy), earlier);

  test("may run as it was recorded where nothing changed, however often it was repeated", async () => {
    const usage = { ...NO_CALLS, times: 9 };
    const allowed = await again(touching(file).tool, before, { ...scoped("Echo(src/**)"), usage, late: "over" });
    expect(allowed).toMatchObject({ kind: "allow", by: "envelope", subjects: [file] });
  });

  test("may run only with the arguments that were decided about, where they are known", async () => {
    const { tool } = touching(file);
    expect(await again(tool, { ...before, argsDigest }, inside)).toMatchObject({ kind: "allow" });
    expect(await again(tool, { ...before, argsDigest: "0".repeat(64) }, inside)).toMatchObject({
      kind: "deny",
      cause: "limit",
      output: { reason: expect.stringContaining("it was for another call") },
    });
  });

  test.each([
    ["no tool has its name", touching(file).tool, { ...inside, tools: new Map() }, "no live tool"],
    [
      "its tool takes other arguments",
      watched({ input: z.object({ to: z.string() }) }).tool,
      inside,
      "no longer accepts",
    ],
    [
      "the envelope no longer holds what it touched",
      touching(path("/ws/docs/a.md", "write")).tool,
      scoped("Echo(docs/**)"),
      "src/a.ts is outside",
    ],
    [
      "the envelope does not hold what it touches now",
      touching(path("/ws/docs/a.md", "write")).tool,
      scoped("Echo(src/**)"),
      "docs/a.md is outside",
    ],
    [
      "it would touch what is protected by now",
      touching(file).tool,
      { ...inside, protectedPaths: ["/ws/src/a.ts"] },
      "is protected",
    ],
    ["it would have to be granted", touching(file).tool, scoped("Read"), "Echo is not in the envelope"],
  ])("is denied where %s", async (_, tool, policy, why) => {
    const denied = await again(tool, before, policy);
    expect(denied).toMatchObject({ kind: "deny", cause: "limit", subjects: [file] });
    expect(denied.kind === "deny" && field(denied.output, "reason")).toMatch(
      new RegExp(`^this call was approved before the run was resumed, and .* no longer valid: .*${why}`),
    );
  });

  test("that a person was asked about is never allowed by a wider envelope, and the person's answer still counts", async () => {
    const { ran, tool } = touching(file);
    const prompted = promptOf(await again(tool, asked, inside));
    expect(prompted).toMatchObject({ digest: sealed({ input: {} }).argsDigest, why: "" });
    const granted = allowedOf(await prompted.granted(yes(prompted), body));
    expect(granted.by).toBe("grant");
    await granted.execute(toolCall());
    expect(ran).toEqual([{}]);
  });

  test("that a person was asked about is denied where it touches something else by now; a built-in tool opens what was shown", async () => {
    const { tool } = touching(path("/ws/src/b.ts", "write"));
    expect(await again(tool, asked, inside)).toMatchObject({ kind: "deny", cause: "limit" });
    const builtins = { ...inside, builtins: new Set(["Echo"]) };
    expect(await again(tool, asked, builtins)).toMatchObject({ kind: "prompt", subjects: [file] });
    const elsewhere = touching(path("/etc/passwd", "write")).tool;
    expect(await again(elsewhere, asked, builtins)).toMatchObject({ kind: "prompt", subjects: [file] });
    expect(await again(elsewhere, before, builtins)).toMatchObject({ kind: "allow", subjects: [file] });
  });

  test("is denied where its tool makes other arguments of it than were shown", async () => {
    const { tool } = watched({ subjects: () => [file], input: z.object({ force: z.boolean().default(true) }) });
    const shown = { ...asked, body: { ...body, input: { force: false } } };
    expect(await again(tool, shown, inside)).toMatchObject({ kind: "deny", cause: "limit" });
    expect(await again(tool, { ...shown, body: { ...body, input: { force: true } } }, inside)).toMatchObject({
      kind: "prompt",
    });
  });

  test("is put before the guard hooks again", async () => {
    const hooks: Policy["hooks"] = async () => ({ vetoed: { hook: "state", reason: "no" } });
    expect(await again(touching(file).tool, before, { ...inside, hooks })).toMatchObject({
      kind: "deny",
      cause: "hook",
    });
  });
});

test("reasons are masked, in denials, requests and subjects", async () => {
  const mask = (text: string) => text.replaceAll("hunter2", "[redacted:key]");
  const refusing = echoTool({ subjects: () => [{ kind: "refused", reason: "hunter2 is not for you" }] });
  const denied = await authorizeCall(sealed({ input: {} }), policyOf(refusing, { mask }));
  const reason = "[redacted:key] is not for you";
  expect(denied).toMatchObject({ kind: "deny", subjects: [{ kind: "refused", reason }], output: { reason } });
  expect(JSON.stringify(denied)).not.toContain("hunter2");
  const asked = await prompt(echoTool(), {}, undefined, { mask, envelope: compileEnvelope(["Read(hunter2/**)"]) });
  expect(JSON.stringify([asked.why, asked.body])).not.toContain("hunter2");
  expect(asked.why).toContain("[redacted:key]");
});

test("subjects that are not JSON are a hard limit", async () => {
  const tool = echoTool({ subjects: () => [Object({ kind: "path", real: "/ws/a", access: "read", size: 1n })] });
  const reason = expect.stringContaining("the subjects that Echo returned for this call are not JSON");
  expect(await authorizeCall(sealed({ input: {} }), policyOf(tool, inside))).toMatchObject({
    kind: "deny",
    cause: "limit",
    subjects: [{ kind: "refused", reason }],
    output: { reason },
  });
});

test("a replay's subjects stand for those of the tool, which is not asked", async () => {
  const tool = echoTool({ subjects: () => [path("/etc/passwd")] });
  const subjects = [path("/ws/src/a.ts", "write")];
  expect(await authorizeCall(sealed({ input: {} }), policyOf(tool, { ...inside, subjects }))).toMatchObject({
    kind: "allow",
    subjects,
  });
});

test("a built-in tool's first call is checked as that of any other", async () => {
  const policy = { ...inside, builtins: new Set(["Echo"]) };
  const touching = async (real: string) =>
    await authorizeCall(sealed({ input: {} }), policyOf(echoTool({ subjects: () => [path(real)] }), policy));
  expect(await touching("/etc/passwd")).toMatchObject({
    kind: "deny",
    cause: "limit",
    subjects: [path("/etc/passwd")],
  });
  expect(await touching("/ws/a.ts")).toMatchObject({ kind: "allow", subjects: [path("/ws/a.ts")] });
});

test("a denial says what is wrong with the call: its tool, its arguments, or the session's list", async () => {
  const policy = policyOf(echoTool({ input: z.object({ to: z.string() }) }), inside);
  expect(await authorizeCall(sealed({ tool: "Ecko", input: {} }), policy)).toMatchObject({
    kind: "deny",
    output: { code: "unknown_tool", reason: expect.stringContaining("Echo") },
    subjects: [],
  });
  expect(await authorizeCall(sealed({ input: { to: 1 } }), policy)).toMatchObject({
    kind: "deny",
    output: { code: "invalid_tool_input", issues: [{ path: "$.to" }] },
  });
  const listed: Partial<Policy> = { envelope: undefined, mode: "allowlist", allow: compileEnvelope(["Read"]) };
  expect(await authorizeCall(sealed({ input: {} }), policyOf(echoTool(), listed))).toMatchObject({
    kind: "deny",
    cause: "mode",
    output: { cause: "mode", reason: expect.stringContaining("Echo is not in the envelope (Read)") },
  });
});

test("hooks that veto nothing let a call through", async () => {
  const hooks = async () => ({});
  expect(await authorizeCall(sealed({ input: {} }), policyOf(echoTool(), { ...inside, hooks }))).toMatchObject({
    kind: "allow",
    by: "envelope",
  });
});

test.each([
  [["t1.c0"], "Echo"],
  [undefined, "Echo"],
  ["t1.c0", ["Echo"]],
])("a call with the id %j of the tool %j cannot be sealed: what is no text reads differently each time", (id, tool) => {
  const request = Object({ id, tool, input: {} });
  expect(() => sealed(request)).toThrow("the id and the tool of a call are texts");
});
