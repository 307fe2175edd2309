import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  field,
  isJsonObject,
  type JournalRecord,
  type Json,
  type JsonObject,
  readEvents,
  readOutcome,
  verifyJournal,
} from "@sluice/core";
import { sqliteStore } from "@sluice/sqlite";
import { codeReview, createSession } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { comparable, createPlace, type Place, reportOf } from "../support/command-process.ts";
import { type Asked, type LoopbackModel, startLoopbackModel, type Turns } from "../support/loopback-model.ts";

const SWEEP = { timeout: 180_000 };
const FILE = "src/greeting.ts";
const SEED = 'export const greeting = "hello";\n// entries\n';
const call = (id: string, name: string, input: Json) => ({ id, name, input });
// Neither edit of the second stage can be made twice without a trace.
const TURNS: Turns = {
  submit_plan: [
    {
      calls: [
        call("p0", "Edit", { file_path: FILE, old_string: "hello", new_string: "overwritten" }),
        call("p1", "Grep", { pattern: "entries", output_mode: "content" }),
      ],
    },
    { calls: [call("p2", "submit_plan", { summary: "Two entries.", steps: ["Add them."], files: [FILE], risks: [] })] },
  ],
  submit_diff: [
    {
      calls: [
        call("e0", "Read", { file_path: FILE }),
        call("e1", "Edit", { file_path: FILE, old_string: "// entries", new_string: "// entries\n// one" }),
        call("e2", "Edit", { file_path: FILE, old_string: "// one", new_string: "// one\n// two" }),
      ],
    },
    {
      calls: [
        call("e3", "submit_diff", {
          summary: "Added.",
          changes: [{ file: FILE, change: "Two entries." }],
          deviations: [],
        }),
      ],
    },
  ],
  submit_review: [{ calls: [call("r0", "submit_review", { verdict: "approve", summary: "Fine.", findings: [] })] }],
};
const DENIED = "plan#1 t1.c0";
const RAN = ["plan#1 t1.c1", "execute#1 t1.c0", "execute#1 t1.c1", "execute#1 t1.c2"];
const RUN = ["run", "codeReview", "add two entries", "--wait", "--output-format", "json"];
const RECOVERED = /took effect before the process was stopped/;

test("a run killed before any of its commits goes on where it was with sluice resume", SWEEP, async () => {
  await using model = await startLoopbackModel(TURNS);
  const usual = await uninterrupted(model);
  // One commit for each record, and one that gives the run up.
  const commits = usual.records.map((_, seq) => seq + 1);
  await atEach([...commits, commits.length + 1], async (commit) => {
    await killed(model, usual, `before:${commit}`, async (place, runId, over) => {
      const resumed = await place.run(["resume", runId, "--wait", "--output-format", "json"]);
      if (over) {
        expect(reportOf(resumed)).toMatchObject({ runId: null, error: { code: "run_finished" } });
        expect(resumed.code).toBe(4);
      } else {
        expect(resumed, resumed.stderr + resumed.stdout).toMatchObject({ code: 0, signal: null });
        expect(reportOf(resumed)).toMatchObject({ runId, status: "completed" });
      }
      if (commit % 8 === 0) expect(await place.run(["audit", runId, "--verify"])).toMatchObject({ code: 0 });
    });
  });
});

test("a run killed between a commit and what follows from it goes on in a program's session", SWEEP, async () => {
  await using model = await startLoopbackModel(TURNS);
  const usual = await uninterrupted(model);
  // Where nothing happens between two commits, dying after the one is dying before the other.
  const acts = usual.records.flatMap(({ stepId, phase }, seq) =>
    phase === "done" && /\/(model|call)$/.test(stepId) ? [seq] : [],
  );
  expect(acts).toHaveLength(9);
  await atEach(acts, async (commit) => {
    await killed(model, usual, `after:${commit}`, async (place, runId) => {
      const session = createSession({
        model: "anthropic/test-model",
        env: place.env,
        cwd: place.workspace,
        store: () => sqliteStore(place.store),
        wait: true,
      });
      try {
        expect(await session.resume(codeReview, runId)).toMatchObject({ status: "completed" });
      } finally {
        await session.close();
      }
    });
  });
});

/** Does something for each, two at a time. */
async function atEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const lane = async (): Promise<void> => {
    for (const item of rest) await work(item);
  };
  await Promise.all([lane(), lane()]);
}

/** What a run without a kill leaves behind. */
interface Usual {
  readonly outcome: Json;
  readonly files: Readonly<Record<string, string>>;
  readonly asked: readonly Asked[];
  readonly records: readonly JournalRecord[];
}

interface Workplace extends Place {
  /** Answers that another process gave and that were accepted. */
  readonly accepted: readonly string[];
}

function workplace(model: LoopbackModel): Workplace {
  const place = createPlace(model.url);
  mkdirSync(join(place.workspace, "src"));
  writeFileSync(join(place.workspace, FILE), SEED);
  const accepted: string[] = [];
  const person = sqliteStore(place.store);
  const look = async (): Promise<void> => {
    for (const { runId, requestId, digest } of await person.requests()) {
      const payload = { kind: "deny", reason: "not in this stage", digest };
      const outcome = await person.signal(runId, { name: `request/${requestId}`, payload, digest, by: "ann" });
      if (outcome === "accepted") accepted.push(requestId);
    }
  };
  const stop = person.onChange(() => void look());
  onTestFinished(async () => {
    stop();
    await person.close();
  });
  return { ...place, accepted };
}

async function uninterrupted(model: LoopbackModel): Promise<Usual> {
  const place = workplace(model);
  const ended = await place.run(RUN);
  expect(ended).toMatchObject({ code: 0, signal: null });
  const [run] = await place.look((host) => host.list());
  if (run?.end === undefined) throw new Error("the run has no end");
  expect(reportOf(ended)).toMatchObject({ status: "completed", denied: [{ tool: "Edit", cause: "denied" }] });
  const asked = model.asked(place.key);
  expect(asked.map(({ stage, turn }) => `${stage} ${turn}`)).toEqual(
    Object.entries(TURNS).flatMap(([stage, turns]) => turns.map((_, turn) => `${stage} ${turn}`)),
  );
  const [journal] = await place.look((host) => host.journal(run.runId));
  return { outcome: outcomeOf(run.end), files: filesOf(place), asked, records: journal?.records ?? [] };
}

/** Takes up a killed run in another process and waits for its end; `over` says that it has one already. */
type Resume = (place: Place, runId: string, over: boolean) => Promise<void>;

/** A run that is killed there and resumed ends like one that was not, and repeats nothing that was finished. */
async function killed(model: LoopbackModel, usual: Usual, where: string, resume: Resume): Promise<void> {
  const place = workplace(model);
  expect(await place.run(RUN, { dieAt: where }), where).toMatchObject({ signal: "SIGKILL" });
  const before = model.asked(place.key);
  const [run] = await place.look((host) => host.list());
  if (run === undefined) {
    expect(before, where).toEqual([]);
    expect(filesOf(place)[FILE], where).toBe(SEED);
    return;
  }
  const { runId } = run;
  const over = run.end !== undefined;
  expect(run.status, where).toBe(over ? "completed" : "suspended");
  const inFlight = await openTurn(place, runId);
  await resume(place, runId, over);

  const [ended] = await place.look((host) => host.list());
  if (ended?.end === undefined) throw new Error(`${where}: the run has no end`);
  expect(outcomeOf(ended.end), where).toEqual(usual.outcome);
  expect(filesOf(place), where).toEqual(usual.files);
  expect(place.accepted, where).toEqual(["plan#1/a1/t1.c0"]);
  expectSameRequests(model.asked(place.key), before, usual, inFlight, where);
  await expectWholeJournal(place, runId, where);
}

/** The turn whose model call was open when the process was killed. */
async function openTurn(place: Place, runId: string): Promise<string | undefined> {
  const [journal] = await place.look((host) => host.journal(runId));
  const last = journal?.records.filter(({ phase }) => phase !== "life").at(-1);
  const [, state, turn] = /^(\w+)#1\/a1\/turn\/(\d+)\/model$/.exec(last?.stepId ?? "") ?? [];
  if (last?.phase !== "open" || state === undefined) return undefined;
  const stage = { plan: "submit_plan", execute: "submit_diff", review: "submit_review" }[state];
  return `${stage} ${Number(turn) - 1}`;
}

/** Every turn was asked once, but the one in flight; and with the very words of a run that was not killed. */
function expectSameRequests(
  asked: readonly Asked[],
  before: readonly Asked[],
  usual: Usual,
  inFlight: string | undefined,
  where: string,
): void {
  const nameOf = ({ stage, turn }: Asked): string => `${stage} ${turn}`;
  const wasSent = before.map(nameOf).at(-1) === inFlight;
  const names = usual.asked.map(nameOf);
  const expected = names.flatMap((name) => (name === inFlight && wasSent ? [name, name] : [name]));
  expect(asked.map(nameOf), where).toEqual(expected);
  for (const one of asked) {
    const twin = usual.asked.find((other) => nameOf(other) === nameOf(one));
    expect(withoutRecovered(one, one), where).toEqual(twin && withoutRecovered(twin, one));
  }
}

/** A request's body, less the results that are recovered in `like`: those say so instead of what they did. */
function withoutRecovered({ body }: Asked, like: Asked): Json {
  const recovered = new Set(blocksOf(like.body).flatMap((block) => (isRecovered(block) ? [block.tool_use_id] : [])));
  const clean = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(clean);
    if (!isJsonObject(value)) return value;
    if (value.type === "tool_result" && recovered.has(value.tool_use_id))
      return { recovered: value.tool_use_id ?? null };
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, clean(one)]));
  };
  return clean(body);
}

function isRecovered(block: JsonObject): boolean {
  return block.type === "tool_result" && RECOVERED.test(JSON.stringify(block.content));
}

function blocksOf(body: JsonObject): readonly JsonObject[] {
  const messages = Array.isArray(body.messages) ? body.messages : [];
  return messages.flatMap((message) => {
    const content = field(message, "content");
    return Array.isArray(content) ? content.filter(isJsonObject) : [];
  });
}

/** The chain holds, and every call and request is in it exactly once. */
async function expectWholeJournal(place: Place, runId: string, where: string): Promise<void> {
  const journals = await place.look((host) => host.journal(runId));
  expect(verifyJournal(journals).faults, where).toEqual([]);
  const events = journals.flatMap(({ records }) => records.flatMap((record) => readEvents(runId, record)));
  const count = (type: string): readonly string[] =>
    events.flatMap((event) =>
      event.type === type ? [`${event.executionId} ${String(event.data.callId ?? event.data.requestId)}`] : [],
    );
  expect(count("call.decided"), where).toEqual([DENIED, ...RAN]);
  expect(count("call.started"), where).toEqual(RAN);
  expect(count("call.finished"), where).toEqual(RAN);
  expect(count("grant.requested"), where).toHaveLength(1);
  expect(count("grant.answered"), where).toHaveLength(1);
  expect(count("run.finished"), where).toHaveLength(1);
}

function outcomeOf(end: Parameters<typeof readOutcome>[0]): Json {
  const plain: Json = JSON.parse(JSON.stringify(readOutcome(end)));
  return comparable(plain);
}

function filesOf({ workspace }: Place): Record<string, string> {
  const names = readdirSync(workspace, { recursive: true, encoding: "utf8" }).filter(
    (name) => !name.startsWith(".sluice"),
  );
  return Object.fromEntries(
    names.filter((name) => name.includes(".")).map((name) => [name, readFileSync(join(workspace, name), "utf8")]),
  );
}
