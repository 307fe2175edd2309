import { DatabaseSync } from "node:sqlite";
import { type Answer, callbackInteractor, field, type Json, type OpenRequest } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";

import { expect, test } from "vitest";
import { createCardStack, requestsChanged, sendAnswer } from "../../packages/tui/src/cards/card-stack.ts";
import { reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import { bash, scene } from "../support/attack.ts";
import { eventsOf, session } from "../support/run-kit.ts";
import { calling, working } from "../support/stopped-runs.ts";

// Anyone who can write the store can change what its open requests show. Cards compare them with the journal.

const pipe = working({ id: "resumed", allowedTools: ["Read", "AskUser"] });
const TOUCH = bash("touch PWNED");
const ASK: readonly [string, Json] = ["AskUser", { question: "Keep the files?", options: ["yes", "no"] }];

/** A run that waits for the answer to one call, in a store whose request was changed. */
async function waitingFor(call: readonly [string, Json], change: string) {
  const here = scene();
  const store = here.path(".sluice/store");
  const open = (wait: boolean) =>
    session({
      env: { PATH: process.env.PATH },
      cwd: here.root,
      wait,
      sandbox: "off",
      model: calling([call]),
      host: () => sqliteHost(store),
    });
  const first = open(true);
  const handle = first.start(pipe, { task: "x" });
  await expect.poll(async () => (await first.host.requests()).length).toBe(1);
  await handle.suspend();
  await handle;
  await first.close();
  const db = new DatabaseSync(here.path(".sluice/store/journal.db"));
  db.exec(`UPDATE requests SET ${change}`);
  db.close();
  return { runId: handle.runId, store, resumed: open(false) };
}

/** The card of a run's request, by its journal and its store. */
async function cardOf({ runId, store }: { readonly runId: string; readonly store: string }) {
  const host = sqliteHost(store);
  const open: readonly OpenRequest[] = await host.requests(runId);
  const reducer = reduceRun(runId, await eventsOf(host, runId));
  await host.close();
  reducer.requests(open);
  const { stack } = requestsChanged(createCardStack(), reducer.view().requests);
  const [card] = stack.cards;
  const sends = (answer: Answer): boolean =>
    card !== undefined && sendAnswer(stack, card, answer).send?.answer === answer;
  return { card, sends };
}

test("a card approves a call that is as its run recorded it", async () => {
  const { card, sends } = await cardOf(await waitingFor(TOUCH, "kind = kind"));
  expect(card?.fault).toBeUndefined();
  expect(sends({ kind: "approve" })).toBe(true);
});

test("a card of a call that the store shows in another way takes a denial only", async () => {
  const change = `body = json_set(body, '$.proposed', json_extract(body, '$.input'), '$.input.command', 'git status')`;
  const { card, sends } = await cardOf(await waitingFor(TOUCH, change));
  expect(card?.fault).toBe("the record of its run asks for something else");
  expect(sends({ kind: "approve" })).toBe(false);
  expect(sends({ kind: "deny" })).toBe(true);
});

test("a card of a question that the store shows in another way takes no answer", async () => {
  const change = `body = json_set(body, '$.question', 'Delete the files?')`;
  const { card, sends } = await cardOf(await waitingFor(ASK, change));
  expect(card?.fault).toBe("the record of its run asks for something else");
  expect(sends({ kind: "value", value: "yes" })).toBe(false);
  expect(sends({ kind: "deny" })).toBe(true);
});

test("a request of the store that no record has opened gets no card", async () => {
  const { card } = await cardOf(await waitingFor(TOUCH, "request_id = 'work#1/a1/t9.c9'"));
  expect(card).toBeUndefined();
});

test("a resumed run asks about the call of its journal, whatever the store shows", async () => {
  const { runId, resumed } = await waitingFor(TOUCH, `body = json_set(body, '$.input.command', 'git status')`);
  const asked: (Json | undefined)[] = [];
  const desk = callbackInteractor("desk", ({ body }) => {
    asked.push(field(field(body, "input"), "command"));
    return { kind: "deny" };
  });
  resumed.attach(desk);
  await resumed.resume(pipe, runId);
  expect(asked).toEqual(["touch PWNED"]);
});
