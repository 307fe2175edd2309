import {
  done,
  fanOut,
  field,
  type GuardHook,
  type Interactor,
  type Json,
  pipeline,
  type RunHost,
  type RunJournal,
  type SignalMessage,
  type SignalOutcome,
  SluiceError,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore, readEvents, verifyJournal } from "@sluice/core/host";
import { digestOf } from "@sluice/core/runtime";
import { replayRun } from "@sluice/stages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { type HandClock, handClock } from "../support/hand-clock.ts";
import { completed, noModel, session, tool, work, workExecutor } from "../support/run-kit.ts";

const inputs: readonly Json[] = [
  {},
  { a: 1, b: 2 },
  { b: 2, a: 1 },
  { a: 2, b: 1 },
  { a: "1", b: 2 },
  { a: [1, { b: 2 }] },
];
const digests = inputs.map(digestOf);
const names = ["Peek", "Note", "Push"] as const;

const call = fc.record({ tool: fc.constantFrom(...names), input: fc.nat(inputs.length - 1) });
const state = fc.record({
  /** Undefined: no envelope, the mode decides. */
  envelope: fc.option(fc.subarray([...names]), { nil: undefined }),
  turns: fc.array(fc.array(call, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
  /** Attempts that assert sends back. */
  retries: fc.nat(2),
});
/** What becomes of a request that a person here is shown. */
const here = fc.constantFrom("approve", "approve", "approve", "deny", "defer", "silence", "late", "crash");
/** What a person elsewhere does next: to an open request, or to one they only guess at. */
const elsewhere = fc.record({
  target: fc.constantFrom("open", "open", "open", "other", "guess"),
  kind: fc.constantFrom("approve", "approve", "approve", "deny", "defer", "value"),
  digest: fc.constantFrom("right", "right", "right", "wrong", "none", "another"),
  pick: fc.nat(50),
  again: fc.boolean(),
});
const story = fc.record({
  mode: fc.constantFrom("ask", "allowlist", "yolo"),
  allow: fc.subarray([...names]),
  people: fc.constantFrom("nobody", "here", "elsewhere", "both"),
  states: fc.array(state, { minLength: 1, maxLength: 3 }),
  fork: fc.boolean(),
  here: fc.array(here, { maxLength: 12 }),
  elsewhere: fc.array(elsewhere, { maxLength: 30 }),
  /** Calls whose digest begins with one of these characters are vetoed. */
  vetoed: fc.constantFrom("", "0", "4", "4c"),
  /** At which records the process ends, and how. */
  ends: fc.array(fc.record({ after: fc.nat(25), by: fc.constantFrom("suspend", "crash") }), { maxLength: 3 }),
});
type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

/** One real execution of a tool. */
interface Ran {
  readonly tool: string;
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly proposalId: string;
  readonly digest: string;
}
interface Answered {
  readonly runId: string;
  readonly message: SignalMessage;
  readonly outcome: SignalOutcome;
}

/** A host whose every answer, from here or elsewhere, is written down with what the store said to it. */
function noted(host: RunHost, log: Answered[]): RunHost {
  return {
    ...host,
    signal: async (runId, message) => {
      const outcome = await host.signal(runId, message);
      log.push({ runId, message, outcome });
      return outcome;
    },
  };
}

/** A store that calls back once so many records were written, and can be made to fail like a process that is gone. */
function counted(store: JournalStore, after: number | undefined, reached: () => void) {
  let records = 0;
  let gone = false;
  const wrapped: JournalStore = {
    ...store,
    append: (commit) => {
      if (gone) throw new SluiceError("Host", "store_gone", "the process has ended");
      const written = store.append(commit);
      records += 1;
      if (records === after) reached();
      return written;
    },
  };
  return {
    store: wrapped,
    crash: () => {
      gone = true;
    },
  };
}

function pipelineOf({ states, fork }: Story) {
  const nodes = states.map(({ envelope, turns, retries }) =>
    work({
      ...(envelope === undefined ? {} : { allowedTools: envelope }),
      act: async (scope) => {
        for (const [turn, calls] of turns.entries()) {
          await scope.calls(
            turn + 1,
            calls.map(({ tool: name, input }, index) => ({
              id: `t${turn + 1}.c${index}`,
              tool: name,
              input: inputs[input] ?? {},
            })),
          );
          if (scope.signal.aborted) break;
        }
        return completed(null);
      },
      assert: (_result, ctx) => (ctx.attempt <= retries ? { retry: "again" } : "ok"),
    }),
  );
  const [a = work(), b = work(), c = work()] = nodes;
  const forked = fork && nodes.length > 1;
  return pipeline({
    id: "story",
    input: z.object({}),
    stages: { start: work(), a, b, c },
    initial: "start",
    next: {
      start: () => (forked ? fanOut(["a", "b"], { join: "c" }) : to("a")),
      a: () => to("b"),
      b: () => to("c"),
      c: () => done(null),
    },
  });
}

function toolsOf(ran: Ran[]) {
  return names.map((name) =>
    tool(name, {
      effect: name === "Peek" ? "read" : "write",
      execute: async (input, { runId, executionId, attempt, proposalId }) => {
        ran.push({ tool: name, runId, executionId, attempt, proposalId, digest: digestOf(input) });
        return { ok: true, output: null };
      },
    }),
  );
}

function personHere(decisions: string[], clock: HandClock): Interactor {
  return {
    name: "here",
    answer: async (_request, signal) => {
      const decision = decisions.shift() ?? "silence";
      switch (decision) {
        case "approve":
        case "deny":
        case "defer":
          return { kind: decision };
        case "crash":
          throw new Error("no terminal");
        case "late":
          await new Promise<void>((resolve) => {
            signal.addEventListener("abort", () => resolve(), { once: true });
            clock.after(1_000, resolve);
          });
          return { kind: "approve" };
        default:
          return undefined;
      }
    },
  };
}

/** Does what a person elsewhere does next. What they answer may be about anything. */
async function actElsewhere(host: RunHost, action: Story["elsewhere"][number] | undefined): Promise<void> {
  const open = await host.requests();
  const first = open[0];
  if (first === undefined) return;
  // When the story has no more to say, everything that is open is denied: it has to end.
  const { target, kind, digest, pick, again } = action ?? {
    target: "open",
    kind: "deny",
    digest: "right",
    pick: 0,
    again: false,
  };
  const about = target === "open" ? first : (open[pick % open.length] ?? first);
  const guess = `${"abc"[pick % 3] ?? "a"}#1/a${1 + (pick % 3)}/t${1 + (pick % 2)}.c${pick % 2}`;
  const requestId = target === "guess" ? guess : about.requestId;
  const claimed = {
    right: about.digest,
    wrong: "0".repeat(64),
    none: undefined,
    another: digests[pick % digests.length],
  }[digest];
  const payload: Json = {
    kind,
    ...(claimed === undefined ? {} : { digest: claimed }),
    ...(kind === "value" ? { value: true } : {}),
  };
  for (let times = 0; times < (again ? 2 : 1); times += 1) {
    await host.signal(about.runId, { name: `request/${requestId}`, payload, by: "elsewhere" });
  }
}

/** Runs a story to its end, through as many processes as it takes. */
async function live(given: Story) {
  const clock = handClock();
  const memory = createMemoryJournals();
  const ran: Ran[] = [];
  const answered: Answered[] = [];
  const decisions = [...given.here];
  const actions = [...given.elsewhere];
  const pipe = pipelineOf(given);
  const tools = toolsOf(ran);
  const elsewhereHost = noted(createHost(memory.connect(), { clock }), answered);
  const withPeopleHere = given.people === "here" || given.people === "both";
  const onCall: GuardHook = ({ argsDigest }) =>
    given.vetoed !== "" && argsDigest.startsWith(given.vetoed) ? { veto: "no" } : undefined;
  let runId: string | undefined;
  let processes = 0;
  for (;;) {
    const end = given.ends[processes];
    processes += 1;
    let over = false;
    const own = memory.connect();
    const store = counted(own, end === undefined ? undefined : end.after + 1, () => {
      if (end?.by === "crash") store.crash();
      else void handle?.suspend().catch(() => undefined);
    });
    const process = session({
      model: noModel,
      clock,
      mode: given.mode,
      allow: given.allow,
      tools,
      wait: given.people === "elsewhere" || given.people === "both",
      interactors: withPeopleHere ? [personHere(decisions, clock)] : [],
      host: noted(createHost(store.store, { clock }), answered),
      onCall,
    });
    const handle = runId === undefined ? process.start(pipe, {}) : process.resume(pipe, runId);
    runId = handle.runId;
    const ended = handle.then(
      (result) => result.status,
      () => "crashed",
    );
    void ended.then(() => {
      over = true;
    });
    for (let idle = 0; !over; idle += 1) {
      // Code that is loaded on its first use takes as long as the machine needs.
      await new Promise((resolve) => (idle < 4_000 ? setImmediate(resolve) : setTimeout(resolve, 1)));
      if (over || idle % 4 !== 3) continue;
      if (given.people === "elsewhere" || given.people === "both") await actElsewhere(elsewhereHost, actions.shift());
      // A person here who only hesitates does so for a second at most.
      clock.turn(1_000);
      if (idle > 14_000) throw new Error(`the story does not end: ${JSON.stringify(await elsewhereHost.requests())}`);
    }
    const status = await ended;
    await own.close();
    if (status === "suspended" || status === "crashed") continue;
    const journals = await elsewhereHost.journal(runId);
    const replay = await replayRun(pipe, journals, { tools, onCall, executors: [workExecutor], env: {} });
    return { status, ran, answered, runId, processes, journals, replay };
  }
}

test("whatever is proposed, answered and interrupted: what runs was inside its envelope, approved by the mode, or granted for exactly this, once", async () => {
  const seen = { envelope: 0, mode: 0, grant: 0, denied: 0, resumed: 0, refusedAnswers: 0 };
  await fc.assert(
    fc.asyncProperty(story, async (given) => {
      const { status, ran, answered, runId, processes, journals, replay } = await live(given);
      expect(status).toBe("completed");
      // The gate comes to the same verdicts over the record.
      expect(replay.divergence?.message).toBeUndefined();
      if (processes > 1) seen.resumed += 1;
      const approvals = new Set<Answered>();
      const once = new Set<string>();
      for (const one of ran) {
        const { executionId, attempt, proposalId, digest } = one;
        const key = JSON.stringify([one.runId, executionId, attempt, proposalId]);
        // Only a read may run again, after its process was gone before its record.
        const again = once.has(key);
        once.add(key);
        if (again) {
          expect(one.tool).toBe("Peek");
          expect(processes).toBeGreaterThan(1);
          continue;
        }
        expect(given.vetoed === "" || !digest.startsWith(given.vetoed)).toBe(true);
        const at = "abc".indexOf(executionId.charAt(0));
        const envelope: readonly string[] | undefined = given.states[at]?.envelope;
        if (envelope?.includes(one.tool) === true) {
          seen.envelope += 1;
          continue;
        }
        if (envelope === undefined && given.mode === "yolo") {
          seen.mode += 1;
          continue;
        }
        if (envelope === undefined && given.mode === "allowlist") {
          expect(given.allow).toContain(one.tool);
          seen.mode += 1;
          continue;
        }
        // Outside, or in mode ask: a person said yes, first, to this very proposal and these very arguments.
        const name = `request/${executionId}/a${attempt}/${proposalId}`;
        const covering = answered.filter(
          ({ runId: of, message, outcome }) => outcome === "accepted" && of === one.runId && message.name === name,
        );
        expect(covering).toHaveLength(1);
        const [approval] = covering;
        expect(approval?.message.payload).toMatchObject({ kind: "approve", digest });
        if (approval !== undefined) {
          expect(approvals.has(approval)).toBe(false);
          approvals.add(approval);
        }
        expect(given.people).not.toBe("nobody");
        seen.grant += 1;
      }
      seen.refusedAnswers += answered.filter(({ outcome }) => outcome !== "accepted").length;
      seen.denied += answered.filter(
        ({ outcome, message }) => outcome === "accepted" && kindOf(message) !== "approve",
      ).length;
      expect(verifyJournal(journals).faults).toEqual([]);
      expect(journals[0]?.runId).toBe(runId);
      // What the journal says of tokens is what happened: none was consumed twice.
      const consumed = eventsIn(journals, "grant.consumed").map(({ of, data }) =>
        [of, data.requestId, data.argsDigest].join(),
      );
      expect(new Set(consumed).size).toBe(consumed.length);
      const used = new Set(eventsIn(journals, "grant.consumed").map(({ of, data }) => [of, data.requestId].join()));
      for (const { of, data } of eventsIn(journals, "grant.expired"))
        expect(used).not.toContain([of, data.requestId].join());
      // A grant is not only necessary: where nothing interrupted the run, what was granted did run.
      if (processes > 1) return;
      for (const { of, data } of eventsIn(journals, "grant.requested")) {
        const answer = answered.find(
          ({ runId: to, message, outcome }) =>
            outcome === "accepted" && to === of && message.name === `request/${String(data.requestId)}`,
        );
        const right = kindOf(answer?.message) === "approve" && digestIn(answer?.message) === data.digest;
        const vetoed = given.vetoed !== "" && String(data.digest).startsWith(given.vetoed);
        const [executionId, attempt, proposalId] = String(data.requestId).split("/");
        const runs = ran.filter(
          (one) =>
            one.runId === of &&
            one.executionId === executionId &&
            `a${one.attempt}` === attempt &&
            one.proposalId === proposalId,
        );
        expect(runs).toHaveLength(right && !vetoed ? 1 : 0);
      }
    }),
    { numRuns: 250 },
  );
  // Every way was walked.
  for (const [way, times] of Object.entries(seen)) expect(times, way).toBeGreaterThan(5);
});

function kindOf(message: SignalMessage | undefined): Json | undefined {
  return field(message?.payload, "kind");
}

function digestIn(message: SignalMessage | undefined): Json | undefined {
  return field(message?.payload, "digest");
}

function eventsIn(journals: readonly RunJournal[], type: string) {
  return journals.flatMap(({ runId: of, records }) =>
    records
      .flatMap((record) => readEvents(of, record))
      .filter((event) => event.type === type)
      .map(({ data }) => ({ of, data })),
  );
}
