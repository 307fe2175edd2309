import { field, isSluiceError, type Json, type ToolCall, type ToolResult } from "@sluice/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { createGrants, type Grants, type Permit, type Proposal } from "../../packages/core/src/gate/grants.ts";
import type { Tool } from "../../packages/core/src/gate/tool.ts";
import { attempt, bound, echoTool, toolCall } from "../support/gate.ts";

const echo = echoTool();

async function admitted(
  grants: Grants,
  proposal: Proposal,
  by: "envelope" | "grant" | "mode",
  tool: Tool = echo,
): Promise<Permit | undefined> {
  return grants.admit(proposal, await bound(tool, proposal.input ?? null), by);
}
function open(
  grants: Grants,
  input: Json = {},
  id = "t1.c0",
): { readonly proposal: Proposal; readonly requestId: string } {
  const proposal = grants.propose({ id, tool: "Echo", input });
  return { proposal, requestId: grants.request(proposal) };
}
function mint(grants: Grants, input: Json = {}, id = "t1.c0"): Proposal {
  const { proposal, requestId } = open(grants, input, id);
  expect(grants.answer(requestId, { approve: true, digest: proposal.argsDigest })).toBe(true);
  return proposal;
}
function code(fn: () => unknown): string | undefined {
  try {
    fn();
  } catch (thrown) {
    return isSluiceError(thrown) ? thrown.code : "another error";
  }
  return undefined;
}
async function run(grants: Grants, permit: Permit | undefined, proposal: Proposal): Promise<ToolResult | undefined> {
  return permit === undefined ? undefined : grants.redeem(permit, proposal)?.execute(toolCall());
}

test("a proposal is bound to run, execution, attempt, id, tool and the digest of its arguments", () => {
  const proposal = createGrants(attempt).propose({ id: "t3.c0", tool: "Echo", input: { b: 1, a: 2 } });
  expect(proposal).toMatchObject({ runId: "r1", executionId: "plan#1", attempt: 1, id: "t3.c0", tool: "Echo" });
  const reordered = createGrants(attempt).propose({ id: "t3.c0", tool: "Echo", input: { a: 2, b: 1 } });
  expect(reordered.argsDigest).toBe(proposal.argsDigest);
  const other = createGrants(attempt).propose({ id: "t3.c0", tool: "Echo", input: { a: 2, b: 2 } });
  expect(other.argsDigest).not.toBe(proposal.argsDigest);
});

test("what was digested cannot be changed afterwards, from outside or from inside", () => {
  const input = { list: [1], deep: { a: "x" } };
  const proposal = createGrants(attempt).propose({ id: "t1.c0", tool: "Echo", input: Object.freeze(input) });
  input.list.push(2);
  input.deep.a = "y";
  expect(proposal.input).toEqual({ list: [1], deep: { a: "x" } });
  const deep = field(proposal.input, "deep");
  expect(() => Object.assign(Object(deep), { a: "z" })).toThrow(TypeError);
});

test("arguments that are not JSON make a proposal that says so and can never be admitted", async () => {
  const grants = createGrants(attempt);
  const proposal = grants.propose({ id: "t1.c0", tool: "Echo", input: Number.NaN });
  expect(proposal).toMatchObject({ inputFault: expect.stringContaining("not a JSON number") });
  expect(grants.admit(proposal, await bound(echo, {}), "envelope")).toBeUndefined();
});

test("a call without arguments, or with a fault, is a proposal of its own kind", async () => {
  const grants = createGrants(attempt);
  const missing = grants.propose({ id: "t1.c0", tool: "Echo" });
  expect(missing.input).toBeUndefined();
  expect(missing.inputFault).toMatch(/./);
  // A text that reads like the fault has the same digest, and is another call.
  const faulty = grants.propose({ id: "t1.c1", tool: "Echo", inputFault: "not JSON" });
  expect(grants.propose({ id: "t1.c1", tool: "Echo", inputFault: "not JSON" })).toBe(faulty);
  expect(code(() => grants.propose({ id: "t1.c1", tool: "Echo", input: "not JSON" }))).toBe("proposal_conflict");
  const text = grants.propose({ id: "t1.c2", tool: "Echo", input: "not JSON" });
  expect(text.argsDigest).toBe(faulty.argsDigest);
  expect(code(() => grants.propose({ id: "t1.c2", tool: "Echo", inputFault: "not JSON" }))).toBe("proposal_conflict");
});

test("arguments that could not be read admit no call, not even one that was bound from nothing", async () => {
  const grants = createGrants(attempt);
  const proposal = grants.propose({ id: "t1.c0", tool: "Echo", inputFault: "not JSON" });
  const nothing: Json = Reflect.get({}, "nothing");
  const call = await bound(echoTool({ input: z.any() }), nothing);
  expect(call.given).toBeUndefined();
  expect(grants.admit(proposal, call, "envelope")).toBeUndefined();
});

test("a fault of the code that hands arguments over is not taken for a fault of theirs", () => {
  const broken = {
    get a(): Json {
      throw new Error("a getter that fails");
    },
  };
  expect(() => createGrants(attempt).propose({ id: "t1.c0", tool: "Echo", input: broken })).toThrow(
    "a getter that fails",
  );
});

test("who misuses the gate meets an error of the host, which no model is told", () => {
  const grants = createGrants(attempt);
  grants.propose({ id: "t1.c0", tool: "Echo", input: 1 });
  expect(() => grants.propose({ id: "t1.c0", tool: "Echo", input: 2 })).toThrow(
    expect.objectContaining({ class: "Host", message: expect.stringContaining("t1.c0") }),
  );
});

test("an id stands for one call: the same again is the same proposal, another call is refused", () => {
  const grants = createGrants(attempt);
  const proposal = grants.propose({ id: "t1.c0", tool: "Echo", input: { a: 1 } });
  expect(grants.propose({ id: "t1.c0", tool: "Echo", input: { a: 1 } })).toBe(proposal);
  expect(code(() => grants.propose({ id: "t1.c0", tool: "Echo", input: { a: 2 } }))).toBe("proposal_conflict");
  expect(code(() => grants.propose({ id: "t1.c0", tool: "Other", input: { a: 1 } }))).toBe("proposal_conflict");
});

test("a granted call runs once, with the arguments that were digested", async () => {
  const ran: Json[] = [];
  const tool = echoTool({
    execute: async (input) => {
      ran.push(input);
      return { ok: true, output: "done" };
    },
  });
  const grants = createGrants(attempt);
  const proposal = mint(grants, { a: 1 });
  const permit = await admitted(grants, proposal, "grant", tool);
  expect(await run(grants, permit, proposal)).toEqual({ ok: true, output: "done" });
  expect(await run(grants, permit, proposal)).toBeUndefined();
  expect(await admitted(grants, proposal, "grant", tool)).toBeUndefined();
  expect(ran).toEqual([{ a: 1 }]);
});

test("a call handed out runs once, also when somebody kept it", async () => {
  const grants = createGrants(attempt);
  const proposal = mint(grants);
  const permit = await admitted(grants, proposal, "grant");
  const work = permit && grants.redeem(permit, proposal);
  await work?.execute(toolCall());
  await expect(work?.execute(toolCall())).rejects.toMatchObject({ code: "permit_spent" });
});

test("preparing a call is part of what the permit hands out", async () => {
  const prepared: ToolCall[] = [];
  const tool = echoTool({
    prepare: (_, call) => {
      prepared.push(call);
      return { before: "hash" };
    },
  });
  const grants = createGrants(attempt);
  const proposal = grants.propose({ id: "t1.c0", tool: "Echo", input: {} });
  const permit = await admitted(grants, proposal, "envelope", tool);
  const work = permit && grants.redeem(permit, proposal);
  expect(await work?.prepare?.(toolCall())).toEqual({ before: "hash" });
  expect(prepared).toHaveLength(1);
});

test("a call that needs no grant is admitted once, and its approval is no answer to a request", async () => {
  for (const by of ["envelope", "mode"] as const) {
    const grants = createGrants(attempt);
    const proposal = grants.propose({ id: "t1.c0", tool: "Echo", input: {} });
    const permit = await admitted(grants, proposal, by);
    expect(await admitted(grants, proposal, by)).toBeUndefined();
    expect(await run(grants, permit, proposal)).toMatchObject({ ok: true });
    expect(await admitted(grants, proposal, by)).toBeUndefined();
    const requestId = grants.request(proposal);
    expect(grants.stateOf(requestId)).toBe("requested");
    expect(grants.expireAll()).toEqual([requestId]);
  }
});

test("without an approval there is nothing to consume", async () => {
  const grants = createGrants(attempt);
  const { proposal } = open(grants);
  expect(await admitted(grants, proposal, "grant")).toBeUndefined();
});

test("a call that was asked about gets in by the grant and by nothing else", async () => {
  const grants = createGrants(attempt);
  const { proposal, requestId } = open(grants);
  expect(await admitted(grants, proposal, "envelope")).toBeUndefined();
  expect(await admitted(grants, proposal, "mode")).toBeUndefined();
  grants.answer(requestId, { approve: false, digest: proposal.argsDigest });
  expect(await admitted(grants, proposal, "envelope")).toBeUndefined();
  expect(await admitted(grants, proposal, "grant")).toBeUndefined();
});

test("an answer about other arguments mints nothing and does not use up the request", () => {
  const grants = createGrants(attempt);
  const { proposal, requestId } = open(grants);
  expect(grants.answer(requestId, { approve: true, digest: "0".repeat(64) })).toBe(false);
  expect(grants.stateOf(requestId)).toBe("requested");
  expect(grants.answer(requestId, { approve: true, digest: proposal.argsDigest })).toBe(true);
  expect(grants.stateOf(requestId)).toBe("minted");
});

test("an answer to another request mints nothing", () => {
  const grants = createGrants(attempt);
  const { proposal } = open(grants);
  expect(grants.answer("plan#1/a1/t9.c9", { approve: true, digest: proposal.argsDigest })).toBe(false);
  expect(grants.stateOf("plan#1/a1/t9.c9")).toBeUndefined();
});

test("the first answer stands: nothing is minted after a denial, nor twice", () => {
  const grants = createGrants(attempt);
  const denied = open(grants, { a: 1 }, "t1.c0");
  const approve = { approve: true, digest: denied.proposal.argsDigest };
  expect(grants.answer(denied.requestId, { ...approve, approve: false })).toBe(false);
  expect(grants.answer(denied.requestId, approve)).toBe(false);
  expect(grants.stateOf(denied.requestId)).toBe("denied");
  const granted = open(grants, { a: 2 }, "t1.c1");
  const again = { approve: true, digest: granted.proposal.argsDigest };
  expect([grants.answer(granted.requestId, again), grants.answer(granted.requestId, again)]).toEqual([true, false]);
});

test("asking again for the same proposal opens no second request and revives no consumed token", async () => {
  const grants = createGrants(attempt);
  const proposal = mint(grants);
  await admitted(grants, proposal, "grant");
  const requestId = grants.request(proposal);
  expect(grants.stateOf(requestId)).toBe("consumed");
  expect(grants.answer(requestId, { approve: true, digest: proposal.argsDigest })).toBe(false);
});

test("a grant for one proposal admits no other with the same arguments", async () => {
  const grants = createGrants(attempt);
  mint(grants, { a: 1 }, "t1.c0");
  const twin = grants.propose({ id: "t1.c1", tool: "Echo", input: { a: 1 } });
  expect(await admitted(grants, twin, "grant")).toBeUndefined();
});

test("a call is admitted only for the value that was digested and for its own tool", async () => {
  const grants = createGrants(attempt);
  const proposal = grants.propose({ id: "t1.c0", tool: "Echo", input: { a: 1 } });
  expect(grants.admit(proposal, await bound(echo, { a: 2 }), "envelope")).toBeUndefined();
  expect(grants.admit(proposal, await bound(echo, { a: 1 }), "envelope")).toBeUndefined();
  expect(await admitted(grants, proposal, "envelope", echoTool({ name: "Other" }))).toBeUndefined();
  expect(await admitted(grants, proposal, "envelope")).toBeDefined();
});

test("a proposal of another attempt, or a copy of one of ours, has no standing", async () => {
  const grants = createGrants(attempt);
  const ours = grants.propose({ id: "t1.c0", tool: "Echo", input: {} });
  const call = await bound(echo, ours.input ?? null);
  const foreign = createGrants({ ...attempt, attempt: 2 }).propose({ id: "t1.c0", tool: "Echo", input: {} });
  for (const proposal of [foreign, { ...ours }]) {
    expect(code(() => grants.request(proposal))).toBe("proposal_unknown");
    expect(code(() => grants.admit(proposal, call, "envelope"))).toBe("proposal_unknown");
  }
});

test("a permit that was copied, made elsewhere or belongs to another proposal opens nothing", async () => {
  const grants = createGrants(attempt);
  const proposal = mint(grants);
  const permit = await admitted(grants, proposal, "grant");
  if (permit === undefined) throw new Error("not admitted");
  const other = grants.propose({ id: "t1.c1", tool: "Echo", input: {} });
  expect(grants.redeem({ ...permit }, proposal)).toBeUndefined();
  expect(grants.redeem({ proposal, by: "grant" }, proposal)).toBeUndefined();
  expect(grants.redeem(permit, other)).toBeUndefined();
  expect(createGrants(attempt).redeem(permit, proposal)).toBeUndefined();
  expect(grants.redeem(permit, proposal)).toBeDefined();
});

test("when the attempt ends, requests, tokens and permits are void", async () => {
  const grants = createGrants(attempt);
  const requested = open(grants, {}, "t1.c0");
  const minted = mint(grants, {}, "t1.c1");
  const consumed = mint(grants, {}, "t1.c2");
  const permit = await admitted(grants, consumed, "grant");
  const free = grants.propose({ id: "t1.c3", tool: "Echo", input: {} });
  expect(grants.expireAll()).toEqual([requested.requestId, "plan#1/a1/t1.c1"]);
  expect(grants.stateOf("plan#1/a1/t1.c2")).toBe("consumed");
  expect(grants.stateOf(requested.requestId)).toBe("expired");
  expect(grants.stateOf("plan#1/a1/t1.c1")).toBe("expired");
  expect(grants.answer(requested.requestId, { approve: true, digest: requested.proposal.argsDigest })).toBe(false);
  expect(await admitted(grants, minted, "grant")).toBeUndefined();
  expect(await run(grants, permit, consumed)).toBeUndefined();
  expect(await admitted(grants, free, "envelope")).toBeUndefined();
  expect(code(() => grants.request(free))).toBe("grants_closed");
  expect(grants.expireAll()).toEqual([]);
});

test("a granted call that an earlier process ran has spent its token: nothing runs by it, and it does not expire", async () => {
  const grants = createGrants(attempt);
  const proposal = mint(grants);
  grants.spend(proposal);
  expect(grants.stateOf(grants.request(proposal))).toBe("consumed");
  for (const by of ["grant", "envelope", "mode"] as const) {
    expect(await admitted(grants, proposal, by)).toBeUndefined();
  }
  expect(grants.expireAll()).toEqual([]);
});

test("a call cannot spend what nobody minted", () => {
  const grants = createGrants(attempt);
  const { proposal, requestId } = open(grants);
  grants.spend(proposal);
  expect(grants.stateOf(requestId)).toBe("requested");
  expect(grants.expireAll()).toEqual([requestId]);
});
