import type { Json } from "@sluice/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { digestOf } from "../../packages/core/src/base/canonical.ts";
import {
  type AllowedCall,
  authorizeCall,
  type PromptedCall,
  SealedCall,
} from "../../packages/core/src/gate/authorize-call.ts";
import { compileEnvelope } from "../../packages/core/src/gate/envelope.ts";
import { echoTool, judge, path, policyOf, scopeOf, toolCall, word } from "../support/gate.ts";

const RUNS = Number(process.env.SLUICE_TEST_CALLS ?? 1_000);
const inputs: readonly Json[] = [{}, { a: 1 }, { a: 2 }, { b: [1, { c: "x" }], a: 1 }];
const policies = [
  { envelope: compileEnvelope(["Echo"]) },
  { envelope: compileEnvelope([]) },
  { envelope: compileEnvelope([]) },
  { envelope: undefined, mode: "yolo" },
] as const;

const step = fc.record({
  do: fc.oneof(
    { arbitrary: fc.constantFrom("authorize", "answer", "run"), weight: 150 },
    { arbitrary: fc.constant("end"), weight: 1 },
  ),
  attempt: fc.integer({ min: 0, max: 1 }),
  id: fc.constantFrom("t1.c0", "t1.c1", "t2.c0"),
  input: fc.integer({ min: 0, max: inputs.length - 1 }),
  policy: fc.integer({ min: 0, max: policies.length - 1 }),
  approve: fc.boolean(),
  /** Whose digest and whose body the answer names: mostly those of the request itself. */
  digestOf: fc.option(fc.nat(), { freq: 2 }),
  bodyOf: fc.option(fc.nat(), { freq: 2 }),
  other: fc.nat(),
});

interface Asked {
  readonly call: SealedCall;
  readonly prompt: PromptedCall;
  answered: boolean;
}
interface Held {
  readonly call: SealedCall;
  readonly allowed: AllowedCall;
  runs: number;
}

test("in any order of requests, answers, runs and attempts, what runs was allowed for exactly this and runs once", async () => {
  const seen = { grant: 0, envelope: 0, mode: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 200, size: "max" }), async (steps) => {
      const ran: Json[] = [];
      const tool = echoTool({
        execute: async (input) => {
          ran.push(input);
          return { ok: true, output: null };
        },
      });
      const scopes = [scopeOf(1), scopeOf(2)] as const;
      const asked: Asked[] = [];
      const held: Held[] = [];
      const pick = <T>(items: readonly T[], index: number): T | undefined => items[index % Math.max(1, items.length)];

      for (const { do: action, attempt, id, input, policy, approve, digestOf: digest, bodyOf: body, other } of steps) {
        const scope = scopes[attempt === 0 ? 0 : 1];
        if (action === "end") {
          scope.end();
        } else if (action === "authorize") {
          const call = new SealedCall(scope, { id, tool: "Echo", input: inputs[input] ?? null });
          const authorization = await authorizeCall(call, policyOf(tool, policies[policy] ?? {}));
          if (authorization.kind === "prompt") asked.push({ call, prompt: authorization, answered: false });
          else if (authorization.kind === "allow") held.push({ call, allowed: authorization, runs: 0 });
          expect(authorization.kind).toBe(policies[policy]?.envelope?.allowedTools.length === 0 ? "prompt" : "allow");
        } else if (action === "answer") {
          const one = pick(asked, other);
          if (one === undefined) continue;
          const named = digest === null ? one : (pick(asked, digest) ?? one);
          const shown = body === null ? one : (pick(asked, body) ?? one);
          const counts = !one.answered && one.call.scope.isOpen() && named.prompt.digest === one.prompt.digest;
          const settled = await one.prompt
            .granted({ approve, digest: named.prompt.digest }, shown.prompt.body)
            .catch(() => undefined);
          const isSameCall = shown.call.id === one.call.id && shown.call.scope.attempt === one.call.scope.attempt;
          const fits = isSameCall && digestOf(shown.call.input ?? null) === one.call.argsDigest;
          expect(settled?.kind === "allow").toBe(counts && approve && fits);
          if (counts) one.answered = true;
          if (settled?.kind === "allow") held.push({ call: one.call, allowed: settled, runs: 0 });
        } else {
          const one = pick(held, other);
          if (one === undefined) continue;
          const [before, allowed] = [ran.length, approve ? one.allowed : { ...one.allowed }];
          const mayRun = one.runs === 0 && one.call.scope.isOpen();
          await allowed.execute(toolCall()).catch(() => undefined);
          expect(ran.length - before).toBe(mayRun ? 1 : 0);
          if (!mayRun) continue;
          one.runs += 1;
          expect(digestOf(ran.at(-1) ?? null)).toBe(one.call.argsDigest);
          seen[allowed.by] += 1;
        }
      }
    }),
    { numRuns: Math.ceil(0.3 * RUNS) },
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
    { numRuns: RUNS },
  );
});
