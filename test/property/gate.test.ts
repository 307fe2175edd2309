import type { Json } from "@sluice/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { digestOf } from "../../packages/core/src/base/canonical.ts";
import { createGrants, type Grants, type Permit, type Proposal } from "../../packages/core/src/gate/grants.ts";
import { bound, echoTool, attempt as first, judge, path, toolCall, word } from "../support/gate.ts";

const ids = Array.from({ length: 8 }, (_, at) => `t${at >> 1}.c${at & 1}`);
const inputs: readonly Json[] = [{}, { a: 1 }, { a: 2 }, { b: [1, { c: "x" }], a: 1 }];
const wrongDigest = "0".repeat(64);

const step = fc.record({
  do: fc.oneof(
    { arbitrary: fc.constantFrom("propose", "request", "answer", "admit", "redeem", "run"), weight: 150 },
    { arbitrary: fc.constant("expire"), weight: 1 },
  ),
  attempt: fc.integer({ min: 0, max: 1 }),
  id: fc.constantFrom(...ids),
  input: fc.integer({ min: 0, max: inputs.length - 1 }),
  approve: fc.boolean(),
  rightDigest: fc.boolean(),
  by: fc.constantFrom("envelope", "grant", "grant", "grant", "mode"),
  other: fc.nat(),
  straight: fc.integer({ min: 0, max: 3 }).map((dice) => dice > 0),
});

interface Approval {
  readonly proposal: Proposal;
  answer: "approved" | "denied" | undefined;
}

test("in any order of requests, answers, permits and attempts, what runs was approved for exactly this and runs once", async () => {
  const seen = { grant: 0, envelope: 0, mode: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 200, size: "max" }), async (steps) => {
      const ran: Json[] = [];
      const echo = echoTool({
        execute: async (input) => {
          ran.push(input);
          return { ok: true, output: null };
        },
      });
      const registries: readonly Grants[] = [createGrants(first), createGrants({ ...first, attempt: 2 })];
      const ended = new Set<Grants>();
      const proposals: Proposal[] = [];
      const permits: Permit[] = [];
      const works: { readonly permit: Permit; readonly run: () => Promise<unknown> }[] = [];
      const requests = new Map<Proposal, Approval>();
      const executed = new Map<Proposal, number>();

      for (const { do: action, attempt, id, input, approve, rightDigest, by, other, straight } of steps) {
        const proposal = proposals[other % Math.max(1, proposals.length)];
        const permit = permits[other % Math.max(1, permits.length)];
        const subject = action === "redeem" ? permit?.proposal : proposal;
        // Mostly where it belongs, sometimes anywhere.
        const at = straight && action !== "propose" && subject !== undefined ? subject.attempt - 1 : attempt;
        const grants = registries[at] ?? createGrants(first);
        try {
          if (action === "propose") {
            const made = grants.propose({ id, tool: "Echo", input: inputs[input] ?? null });
            expect(made.argsDigest).toBe(digestOf(inputs[input] ?? null));
            proposals.push(made);
          } else if (action === "expire") {
            grants.expireAll();
            ended.add(grants);
          } else if (action === "request" && proposal !== undefined) {
            grants.request(proposal);
            if (!requests.has(proposal)) requests.set(proposal, { proposal, answer: undefined });
          } else if (action === "answer" && proposal !== undefined) {
            const request = requests.get(proposal);
            const requestId = `plan#1/a${proposal.attempt}/${proposal.id}`;
            const minted = grants.answer(requestId, {
              approve,
              digest: rightDigest ? proposal.argsDigest : wrongDigest,
            });
            const inTime = !ended.has(grants) && proposal.attempt === at + 1;
            const counts = inTime && request !== undefined && request.answer === undefined && rightDigest;
            expect(minted).toBe(counts && approve);
            if (counts) request.answer = approve ? "approved" : "denied";
          } else if (action === "admit" && proposal !== undefined) {
            const made = grants.admit(proposal, await bound(echo, proposal.input ?? null), by);
            if (made === undefined) continue;
            expect(proposal.attempt).toBe(at + 1);
            expect(ended.has(grants)).toBe(false);
            if (by === "grant") expect(requests.get(proposal)?.answer).toBe("approved");
            else expect(requests.has(proposal)).toBe(false);
            permits.push(made);
          } else if (action === "redeem" && proposal !== undefined && permit !== undefined) {
            const about = straight ? permit.proposal : proposal;
            const work = grants.redeem(approve ? permit : { ...permit }, about);
            if (work === undefined) continue;
            expect([approve, permit.proposal]).toEqual([true, about]);
            works.push({ permit, run: () => work.execute(toolCall()) });
          } else if (action === "run") {
            const work = works[other % Math.max(1, works.length)];
            if (work === undefined) continue;
            const before = ran.length;
            await work.run().catch(() => undefined);
            if (ran.length === before) continue;
            const { proposal: approved, by: approvedBy } = work.permit;
            executed.set(approved, (executed.get(approved) ?? 0) + 1);
            expect(digestOf(ran.at(-1) ?? null)).toBe(approved.argsDigest);
            seen[approvedBy] += 1;
          }
        } catch (thrown) {
          expect(thrown).toMatchObject({
            code: expect.stringMatching(/^(proposal_conflict|proposal_unknown|grants_closed)$/),
          });
        }
      }
      for (const times of executed.values()) expect(times).toBe(1);
      expect(ran).toHaveLength(executed.size);
    }),
    { numRuns: 300 },
  );
  // Otherwise the property would hold because nothing ever ran.
  expect(Math.min(seen.grant, seen.envelope, seen.mode)).toBeGreaterThan(0);
});

test("no mode and no allowlist ever approves what is outside an envelope", () => {
  const rules = ["Read", "Edit", "Edit(src/**)", "Bash", "Bash(npm test *)", "mcp__x", "Grep(docs/*)"];
  const tools = ["Read", "Edit", "Bash", "mcp__x", "Grep", "Other"];
  const paths = ["/ws/src/a.ts", "/ws/docs/a.md", "/ws/.git/config", "/etc/passwd", "/ws"];
  fc.assert(
    fc.property(
      fc.record({
        allowedTools: fc.subarray(rules),
        allow: fc.subarray(["*", ...rules]),
        tool: fc.constantFrom(...tools),
        mode: fc.constantFrom("ask", "allowlist", "yolo"),
        effect: fc.constantFrom("read", "write", "ask"),
        builtin: fc.boolean(),
        touched: fc.array(fc.tuple(fc.constantFrom(...paths), fc.constantFrom("read", "write")), { maxLength: 3 }),
      }),
      ({ allowedTools, allow, tool, mode, effect, builtin, touched }) => {
        const subjects = touched.map(([real, access]) => path(real, access));
        const inside = { allowedTools, subjects, tool: { effect, builtin } };
        const verdict = word(judge(tool, { ...inside, mode, allow }));
        // The answer under an envelope is the same whatever the mode is, and no mode is ever what approved.
        expect(verdict).toBe(word(judge(tool, { ...inside, mode: "ask" })));
        expect(verdict).not.toBe("mode");
        const outside = touched.some(
          ([real, access]) =>
            real === "/etc/passwd" || (access === "write" && (real === "/ws" || real.includes(".git"))),
        );
        expect(verdict === "limit").toBe(outside);
        if (outside) expect(word(judge(tool, { ...inside, allowedTools: undefined, mode: "yolo" }))).toBe("limit");
        if (verdict === "envelope") expect(allowedTools.some((rule) => rule.split("(")[0] === tool)).toBe(true);
      },
    ),
    { numRuns: 1_000 },
  );
});
