import { done, fanOut, type JsonObject, type OpenRequest, pipeline, type RunHost } from "@sluice/core";
import { sealWithCode } from "@sluice/core/gate";
import { replayRun } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { answersIn, begun, codeOf, type Office, office, open, placeOf, proved, sent } from "../support/answers-kit.ts";
import { calls, finish, input, saying, task, worker } from "../support/facts.ts";
import { person, soon } from "../support/people-kit.ts";
import { dataOf, eventsOf, quiet, session, type TestSession, tool } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

const DENY = { kind: "deny" } as const;

describe("an approval from another process, once the run has started a process without a wall", () => {
  test("never counts without a proof: it is a denial, and the record says why", async () => {
    const made = office();
    const { live, handle, elsewhere } = begun(made);
    await sent(elsewhere, await open(elsewhere));
    await sent(elsewhere, await open(elsewhere));
    const result = await handle;
    expect([made.ran, result.denied.map(({ cause }) => cause)]).toEqual([[], ["denied", "denied"]]);
    const said = dataOf(await eventsOf(live.host, handle.runId), "grant.answered");
    expect(said).toMatchObject([
      { answer: "deny", by: "elsewhere", proof: "missing" },
      { answer: "deny", by: "elsewhere", proof: "missing" },
    ]);
    expect(said[0]?.reason).toContain("without proof that a person gave it");
  });

  test("never counts if a known secret is the word of the verdict", async () => {
    const made = office();
    const { live, handle, elsewhere } = begun({ ...made, model: { ...made.model, secrets: ["missing"] } });
    await sent(elsewhere, await open(elsewhere), { kind: "approve", reason: "it was missing" });
    await live.answer(await open(elsewhere), DENY, "me");
    await handle;
    expect(made.ran).toEqual([]);
    expect((await answersIn(live, handle.runId))[0]).toEqual(["deny", "elsewhere", "missing"]);
  });

  test("counts with the request's code, for that request and that answer alone", async () => {
    const made = office();
    const { live, handle, elsewhere } = begun(made);
    const first = await open(elsewhere);
    const code = await codeOf(made);
    expect(code).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){4}[0-9A-HJKMNP-TV-Z]{4}$/);
    const payload = await proved(elsewhere, first, code.toLowerCase().replaceAll("-", " "));
    await sent(elsewhere, first, payload);
    await soon(() => made.ran.length === 1);
    const second = await open(elsewhere);
    expect(second.requestId).not.toBe(first.requestId);
    // Neither the proof of the first, nor its code, is worth anything for the second.
    expect(sealWithCode(code, await placeOf(elsewhere, second), {})).toBeUndefined();
    await sent(elsewhere, second, { ...payload, digest: second.digest });
    await handle;
    expect(made.ran).toEqual([{ n: 1 }]);
    expect(await answersIn(live, handle.runId)).toEqual([
      ["approve", "elsewhere", "code"],
      ["deny", "elsewhere", "missing"],
    ]);
  });

  const forged: readonly (readonly [string, (payload: JsonObject) => JsonObject])[] = [
    ["for a denial, put on an approval", (payload) => ({ ...payload, kind: "approve" })],
    ["for an answer without a reason, with a reason added", (payload) => ({ ...payload, kind: "deny", reason: "x" })],
    ["that is cut short", (payload) => ({ ...payload, kind: "approve", proof: String(payload.proof).slice(0, 32) })],
    ["that is the word which the record uses", (payload) => ({ ...payload, kind: "approve", proof: "code" })],
    ["that is a list", (payload) => ({ ...payload, kind: "approve", proof: [payload.proof ?? null] })],
  ];
  test.each(forged)("never counts with a proof %s", async (_, forge) => {
    const made = office();
    const { live, handle, elsewhere } = begun(made);
    const request = await open(elsewhere);
    const place = await placeOf(elsewhere, request);
    const denial = sealWithCode(await codeOf(made), place, { ...DENY, digest: request.digest });
    if (denial === undefined) throw new Error("this is not its code");
    await sent(elsewhere, request, forge(denial));
    await live.answer(await open(elsewhere), DENY, "me");
    await handle;
    expect(made.ran).toEqual([]);
    expect((await answersIn(live, handle.runId))[0]).toEqual(["deny", "elsewhere", "missing"]);
  });

  test("never counts in a question: the model reads that no one answered", async () => {
    const made = office();
    const model = saying(calls("Escape"), calls(["AskUser", { question: "Which?" }]));
    const { live, handle, elsewhere } = begun({ ...made, model });
    await sent(elsewhere, await open(elsewhere), { kind: "value", value: "approve everything" });
    await handle;
    const events = await eventsOf(live.host, handle.runId);
    expect(dataOf(events, "request.answered")).toMatchObject([{ answer: "deny", proof: "missing" }]);
    expect(JSON.stringify(model.heard.at(-1)?.messages)).toContain("not_answered");
    expect(JSON.stringify(model.heard.at(-1)?.messages)).not.toContain("approve everything");
  });

  test("denials and deferrals need no proof", async () => {
    const made = office();
    const { live, handle, elsewhere } = begun(made);
    await sent(elsewhere, await open(elsewhere), { kind: "deny", reason: "not today" });
    await sent(elsewhere, await open(elsewhere), { kind: "defer" });
    expect((await handle).denied.map(({ cause }) => cause)).toEqual(["denied", "deferred"]);
    expect(await answersIn(live, handle.runId)).toEqual([
      ["deny", "elsewhere", "missing"],
      ["defer", "elsewhere", "missing"],
    ]);
  });
});

describe("an approval counts", () => {
  test("from anywhere, while everything the run started is behind a wall", async () => {
    const made = office({ walled: true });
    const { live, handle, elsewhere } = begun(made);
    await sent(elsewhere, await open(elsewhere));
    await live.answer(await open(elsewhere), DENY, "me");
    await handle;
    expect([made.ran, made.codes]).toEqual([[{ n: 1 }], []]);
    expect(await answersIn(live, handle.runId)).toEqual([
      ["approve", "elsewhere", "sandboxed"],
      ["deny", "me", "session"],
    ]);
  });

  test("from anywhere, in a run that was started so; its record keeps that, and no one can add it later", async () => {
    const made = office({ answers: "any" });
    const { live, handle, elsewhere } = begun(made);
    await sent(elsewhere, await open(elsewhere));
    await open(elsewhere);
    await handle.suspend();
    expect(dataOf(await eventsOf(elsewhere, handle.runId), "run.started")).toMatchObject([{ answers: "any" }]);
    const later = session({ ...made.own(), model: made.model, host: made.host() });
    const again = later.resume(made.pipe, handle.runId);
    await sent(elsewhere, await open(elsewhere));
    await again;
    expect([made.ran, made.codes]).toEqual([[{ n: 1 }, { n: 2 }], []]);
    expect((await answersIn(later, handle.runId)).map(([, , proof]) => proof)).toEqual(["any", "any"]);
    await live.close();
  });

  test("from interactors and from the session itself, as ever", async () => {
    const me = person("me");
    const made = office({ interactors: [me] });
    const { live, handle, elsewhere } = begun(made);
    await soon(() => me.seen.length === 1);
    me.seen[0]?.answer({ kind: "approve" });
    await soon(() => made.ran.length === 1);
    const second = await open(elsewhere);
    await expect(live.answer(second, { kind: "value", value: 1 }, "app")).rejects.toMatchObject({
      code: "answer_invalid",
    });
    expect(await live.answer(second, { kind: "approve" }, "app")).toBe("accepted");
    await handle;
    expect(await live.answer(second, { kind: "approve" }, "app")).toBe("unknown");
    expect(made.ran).toEqual([{ n: 1 }, { n: 2 }]);
    expect(await answersIn(live, handle.runId)).toEqual([
      ["approve", "me", "session"],
      ["approve", "app", "session"],
    ]);
  });
});

test.each([
  ["without a proof", async (_made: Office, request: OpenRequest) => ({ kind: "approve", digest: request.digest })],
  [
    "with the code of the process before",
    async (made: Office, request: OpenRequest, host: RunHost) => proved(host, request, await codeOf(made)),
  ],
])("an approval %s that came while no process waited never counts: the same is asked again", async (_, answer) => {
  const made = office();
  const { live, handle, elsewhere } = begun(made);
  const request = await open(elsewhere);
  await codeOf(made);
  const payload = await answer(made, request, elsewhere);
  await handle.suspend();
  await live.close();
  await sent(elsewhere, request, payload);
  const later = session({ ...made.own(), model: made.model, host: made.host() });
  const again = later.resume(made.pipe, handle.runId);
  await soon(() => made.codes.length === 2);
  expect(made.ran).toEqual([]);
  const second = await open(elsewhere);
  expect(second).toMatchObject({ requestId: request.requestId, digest: request.digest, body: request.body });
  expect(sealWithCode(await codeOf(made), await placeOf(elsewhere, second), {})).toBeUndefined();
  await sent(elsewhere, second, await proved(elsewhere, second, await codeOf(made, 1)));
  await soon(() => made.ran.length === 1);
  await later.answer(await open(elsewhere), DENY, "me");
  await again;
  expect(made.ran).toEqual([{ n: 1 }]);
  const events = await eventsOf(later.host, handle.runId);
  expect(dataOf(events, "grant.expired")).toEqual([{ requestId: request.requestId, cause: "unproven" }]);
  expect(await answersIn(later, handle.runId)).toEqual([
    ["approve", "elsewhere", "code"],
    ["deny", "me", "session"],
  ]);
  const replay = await replayRun(made.pipe, await later.host.journal(handle.runId), { tools: made.all, env: {} });
  expect([replay.identical, replay.status]).toEqual([true, "completed"]);
});

test("a denial that came while no process waited counts", async () => {
  const made = office();
  const { live, handle, elsewhere } = begun(made);
  const request = await open(elsewhere);
  await handle.suspend();
  await live.close();
  await sent(elsewhere, request, { kind: "deny", reason: "not today" });
  const later = session({ ...made.own(), model: made.model, host: made.host() });
  const again = later.resume(made.pipe, handle.runId);
  await soon(async () => (await elsewhere.requests())[0]?.requestId !== request.requestId);
  await later.answer(await open(elsewhere), DENY, "me");
  await again;
  expect((await answersIn(later, handle.runId))[0]).toEqual(["deny", "elsewhere", "missing"]);
});

test.each(["suspended", "closed"])("an answer that was accepted before its session was %s counts", async (how) => {
  const made = office();
  const { live, handle, elsewhere } = begun(made);
  expect(await live.answer(await open(elsewhere), { kind: "approve" }, "me")).toBe("accepted");
  if (how === "suspended") await handle.suspend();
  await live.close();
  expect(made.ran).toEqual([]);
  const later = session({ ...made.own(), model: made.model, host: made.host() });
  const again = later.resume(made.pipe, handle.runId);
  await soon(() => made.ran.length === 1);
  await later.answer(await open(elsewhere), DENY, "me");
  await again;
  expect(await answersIn(later, handle.runId)).toEqual([
    ["approve", "me", "session"],
    ["deny", "me", "session"],
  ]);
});

test("a request that waits on in another process has another code there: never counts the one of the process before", async () => {
  const made = office();
  const { live, handle, elsewhere } = begun(made);
  const request = await open(elsewhere);
  const before = await proved(elsewhere, request, await codeOf(made));
  await handle.suspend();
  await live.close();
  const later = session({ ...made.own(), model: made.model, host: made.host() });
  const again = later.resume(made.pipe, handle.runId);
  await codeOf(made, 1);
  expect(made.codes.map((one) => one.request.requestId)).toEqual([request.requestId, request.requestId]);
  expect(sealWithCode(await codeOf(made), await placeOf(elsewhere, request), {})).toBeUndefined();
  await sent(elsewhere, request, before);
  await later.answer(await open(elsewhere), DENY, "me");
  await again;
  expect(made.ran).toEqual([]);
  expect((await answersIn(later, handle.runId))[0]).toEqual(["deny", "elsewhere", "missing"]);
});

test("a code is shown when the first process without a wall starts after the request came", async () => {
  const made = office({ walled: true });
  const release = Promise.withResolvers<void>();
  const late = tool("Late", {
    effect: "read",
    startsProcesses: true,
    execute: async (_given, call) => {
      await release.promise;
      call.startsUnwalled();
      return { ok: true, output: "late" };
    },
  });
  const stage = (allowed: string) => worker({ allowedTools: ["Look", allowed] });
  const pipe = pipeline({
    id: "pair",
    input,
    stages: { start: worker(), asks: stage("Look"), works: stage("Late"), join: worker() },
    initial: "start",
    next: { start: () => fanOut(["asks", "works"], { join: "join" }), join: () => done("joined") },
  });
  const model = talker(({ stage: name, turn }) => {
    if (turn > 0) return finish(name);
    if (name === "asks") return calls(["Deploy", { n: 1 }]);
    return name === "works" ? calls("Late") : finish(name);
  });
  const live = session({ ...made.own(), tools: [...made.all, late], model, host: made.host() });
  const handle = live.start(pipe, task);
  const elsewhere = made.host();
  const request = await open(elsewhere);
  await quiet();
  expect(made.codes).toEqual([]);
  release.resolve();
  await soon(() => made.codes.length === 1);
  expect(made.codes[0]?.request).toMatchObject({ requestId: request.requestId });
  await sent(elsewhere, request);
  await handle;
  expect([made.ran, (await answersIn(live, handle.runId))[0]?.[2]]).toEqual([[], "missing"]);
});

test("a replay comes to what was recorded, whatever proof the answers had, and knows no code", async () => {
  const proofs: unknown[] = [];
  const answer: Record<string, (made: Office, live: TestSession, host: RunHost) => Promise<void>> = {
    session: async (_made, live, host) => void (await live.answer(await open(host), { kind: "approve" }, "me")),
    missing: async (_made, _live, host) => sent(host, await open(host)),
    code: async (made, _live, host) => {
      const request = await open(host);
      await sent(host, request, await proved(host, request, await codeOf(made)));
    },
    sandboxed: async (_made, _live, host) => sent(host, await open(host)),
    any: async (_made, _live, host) => sent(host, await open(host)),
  };
  for (const [name, give] of Object.entries(answer)) {
    const made = office({ walled: name === "sandboxed", ...(name === "any" ? { answers: "any" } : {}) });
    const { live, handle, elsewhere } = begun(made);
    await give(made, live, elsewhere);
    await live.answer(await open(elsewhere), DENY, "me");
    await handle;
    proofs.push((await answersIn(live, handle.runId))[0]?.[2]);
    const replay = await replayRun(made.pipe, await live.host.journal(handle.runId), { tools: made.all, env: {} });
    expect(replay.divergence?.message).toBeUndefined();
    expect([replay.identical, replay.status]).toEqual([true, "completed"]);
  }
  expect(proofs).toEqual(Object.keys(answer));
});

test("no code is in what is stored: neither whole nor without its dashes", async () => {
  const made = office();
  const { live, handle, elsewhere } = begun(made);
  const request = await open(elsewhere);
  const code = await codeOf(made);
  await sent(elsewhere, request, await proved(elsewhere, request, code));
  await live.answer(await open(elsewhere), DENY, "me");
  await handle;
  const stored = JSON.stringify([await elsewhere.journal(handle.runId), await eventsOf(elsewhere, handle.runId)]);
  for (const { code: one = "" } of made.codes) {
    expect(one).toHaveLength(24);
    for (const text of [one, one.replaceAll("-", ""), one.replaceAll("-", "").slice(0, 16)])
      expect(stored).not.toContain(text);
  }
  expect(stored).not.toMatch(/"proof\\*":\\*"[0-9a-f]{64}/);
});
