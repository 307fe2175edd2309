import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  field,
  isJsonObject,
  type Json,
  type JsonObject,
  type OpenRequest,
  type RunEnd,
  type RunJournal,
  readEvents,
  readOutcome,
  type SluiceEvent,
  verifyJournal,
} from "@sluice/core";
import { sqliteStore } from "@sluice/sqlite";
import { expect } from "vitest";
import { comparable, createPlace, type Place } from "./command-process.ts";
import { type Asked, type LoopbackModel, startLoopbackModel, type Turns } from "./loopback-model.ts";

/** A run that can be killed anywhere and must end the same. */
export interface Scenario {
  readonly args: readonly string[];
  readonly turns: Turns;
  readonly files: Readonly<Record<string, string>>;
  /** The completion tool of each state, by which the model server tells stages apart. */
  readonly completion: Readonly<Record<string, string>>;
  /** What another process answers to a request. */
  readonly answer?: (request: OpenRequest) => JsonObject;
}

/** What a run without a kill leaves behind. */
export interface Usual {
  readonly model: LoopbackModel;
  readonly scenario: Scenario;
  readonly place: Workplace;
  readonly end: RunEnd;
  /** The run's own journal first, then those of its children. */
  readonly journals: readonly RunJournal[];
}

interface Workplace extends Place, AsyncDisposable {
  /** Requests whose answer, given by another process, was accepted. */
  readonly accepted: readonly string[];
}

/** Takes up a killed run in another process and waits for its end; `over` says that it has one already. */
export type Resume = (place: Place, runId: string, over: boolean) => Promise<void>;

const RECOVERED = /took effect before the process was stopped/;

/** Runs the scenario to its end. */
export async function usually(scenario: Scenario): Promise<Usual & AsyncDisposable> {
  const model = await startLoopbackModel(scenario.turns);
  await using place = workplace(scenario, model);
  const ended = await place.run(scenario.args);
  const [run] = await place.look((host) => host.list());
  if (run?.end === undefined) throw new Error(`the run has no end: ${ended.stderr}`);
  const { runId, end } = run;
  const journals = await place.look((host) => host.journal(runId));
  return { model, scenario, place, end, journals, [Symbol.asyncDispose]: () => model[Symbol.asyncDispose]() };
}

/** The commits of a whole run's process, from 1: one for each record, and one that gives the run up. */
export function commitsOf({ journals }: Usual): readonly number[] {
  const count = journals.reduce((sum, { records }) => sum + records.length, 1);
  return Array.from({ length: count }, (_, index) => index + 1);
}

/** A run that is killed there and taken up by `resume` ends like one that was not, and repeats nothing that was finished. */
export async function expectUnharmed(usual: Usual, dieAt: string, resume: Resume): Promise<void> {
  const { model, scenario } = usual;
  await using place = workplace(scenario, model);
  expect(await place.run(scenario.args, { dieAt }), dieAt).toMatchObject({ signal: "SIGKILL" });
  const before = model.asked(place.key);
  const [run] = await place.look((host) => host.list());
  if (run === undefined) {
    expect(before, dieAt).toEqual([]);
    expect(filesOf(place), dieAt).toEqual(scenario.files);
    return;
  }
  const { runId } = run;
  const over = run.end !== undefined;
  expect(run.status, dieAt).toBe(run.end?.status ?? "suspended");
  const open = openTurns(scenario, await place.look((host) => host.journal(runId)));
  await resume(place, runId, over);

  const [ended] = await place.look((host) => host.list());
  if (ended?.end === undefined) throw new Error(`${dieAt}: the run has no end`);
  expect(outcomeOf(ended.end), dieAt).toEqual(outcomeOf(usual.end));
  expect(filesOf(place), dieAt).toEqual(filesOf(usual.place));
  expect(place.accepted.toSorted(), dieAt).toEqual(usual.place.accepted.toSorted());
  expectSameRequests(usual, model.asked(place.key), before, open, dieAt);
  const journals = await place.look((host) => host.journal(runId));
  expect(verifyJournal(journals).faults, dieAt).toEqual([]);
  // Nothing is told twice and nothing is left out, whatever the run went through.
  expect(journals.map(happenings), dieAt).toEqual(usual.journals.map(happenings));
}

function workplace({ files, answer }: Scenario, model: LoopbackModel): Workplace {
  const place = createPlace(model.url);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place.workspace, name)), { recursive: true });
    writeFileSync(join(place.workspace, name), text);
  }
  const accepted: string[] = [];
  if (answer === undefined) return { ...place, accepted, [Symbol.asyncDispose]: async () => undefined };
  const person = sqliteStore(place.store);
  const look = async (): Promise<void> => {
    for (const request of await person.requests()) {
      const { runId, requestId, digest } = request;
      const payload = { ...answer(request), digest };
      const outcome = await person.signal(runId, { name: `request/${requestId}`, payload, digest, by: "ann" });
      if (outcome === "accepted") accepted.push(requestId);
    }
  };
  const stop = person.onChange(() => void look());
  const close = async (): Promise<void> => {
    stop();
    await person.close();
  };
  return { ...place, accepted, [Symbol.asyncDispose]: close };
}

/** The turns whose model calls were open when the process was killed, by the names the model server has for them. */
function openTurns({ completion }: Scenario, journals: readonly RunJournal[]): readonly string[] {
  return journals.flatMap(({ records }) => {
    const last = records.filter(({ phase }) => phase !== "life").at(-1);
    const [, state = "", turn] = /^(\w+)#\d+\/a\d+\/turn\/(\d+)\/model$/.exec(last?.stepId ?? "") ?? [];
    return last?.phase === "open" && turn !== undefined ? [`${completion[state]} ${Number(turn) - 1}`] : [];
  });
}

/** Every turn was asked once, but those in flight; and with the very words of a run that was not killed. */
function expectSameRequests(
  usual: Usual,
  asked: readonly Asked[],
  before: readonly Asked[],
  open: readonly string[],
  dieAt: string,
): void {
  const recovered = new Set(asked.flatMap(({ body }) => blocksOf(body).flatMap((block) => recoveredId(block))));
  const wordsOf = (one: Asked): string => JSON.stringify([nameOf(one), without(recovered, one.body)]);
  const expected = usual.model.asked(usual.place.key).map(wordsOf);
  const left = asked.map(wordsOf);
  for (const words of expected) {
    const at = left.indexOf(words);
    expect(at, `${dieAt}: ${words}\nis not among\n${left.join("\n")}`).not.toBe(-1);
    left.splice(at, 1);
  }
  const again = left.map((words) => String(JSON.parse(words)[0]));
  const sent = before.filter((one) => open.includes(nameOf(one))).map(nameOf);
  expect(again.toSorted(), dieAt).toEqual([...new Set(sent)].toSorted());
}

function nameOf({ stage, turn }: Asked): string {
  return `${stage} ${turn}`;
}

/** A request's body, less the results that were recovered: those say so instead of what they did. */
function without(recovered: ReadonlySet<string>, value: Json): Json {
  if (Array.isArray(value)) return value.map((one) => without(recovered, one));
  if (!isJsonObject(value)) return value;
  if (value.type === "tool_result" && recovered.has(String(value.tool_use_id))) return { recovered: true };
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, without(recovered, one)]));
}

function recoveredId(block: JsonObject): readonly string[] {
  return block.type === "tool_result" && RECOVERED.test(JSON.stringify(block.content))
    ? [String(block.tool_use_id)]
    : [];
}

function blocksOf(body: JsonObject): readonly JsonObject[] {
  const messages = Array.isArray(body.messages) ? body.messages : [];
  return messages.flatMap((message) => {
    const content = field(message, "content");
    return Array.isArray(content) ? content.filter(isJsonObject) : [];
  });
}

/** What a journal says that happened, in order, without times and without how often the run was taken up. */
function happenings({ runId, records }: RunJournal): readonly string[] {
  const told = ({ type, executionId = "", attempt = 1, data }: SluiceEvent): string => {
    const { phase, turn, callId, requestId, choice, status, verdict, answer } = data;
    const what = { phase, turn, try: data.try, callId, requestId, choice, status, verdict, answer };
    return `${type} ${executionId}/a${attempt} ${JSON.stringify(what)}`;
  };
  return records
    .flatMap((record) => readEvents(runId, record))
    .filter(({ type }) => type !== "run.resumed")
    .map(told);
}

function outcomeOf(end: RunEnd): Json {
  const plain: Json = JSON.parse(JSON.stringify(readOutcome(end)));
  return comparable(plain);
}

function filesOf({ workspace }: Place): Record<string, string> {
  const found = readdirSync(workspace, { recursive: true, withFileTypes: true });
  const paths = found.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  const names = paths.map((path) => path.slice(workspace.length + 1)).filter((name) => !name.startsWith(".sluice/"));
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(workspace, name), "utf8")]));
}
