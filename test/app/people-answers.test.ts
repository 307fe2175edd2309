import type { Json, RunHost } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { expect, test } from "vitest";
import { answerSent } from "../../packages/tui/src/cards/card-stack.ts";
import type { Key } from "../../packages/tui/src/composer/keys.ts";
import { answerElsewhere } from "../../packages/tui/src/user/answer-elsewhere.ts";
import { type Attack, type Attacked, attack, bash, edit, eventData, read, scene, write } from "../support/attack.ts";
import { deskOf, key, type TestDesk, typed } from "../support/desk.ts";
import { handClock } from "../support/hand-clock.ts";

/** A run whose requests are answered on a desk elsewhere: `hand` has the card that is up. */
async function answered(
  given: Attack,
  hand: (at: TestDesk, host: RunHost) => void | Promise<void>,
): Promise<Attacked & { readonly said: readonly string[] }> {
  const clock = handClock();
  const memory = createMemoryJournals();
  const elsewhere = createHost(memory.connect(), { clock });
  const at = deskOf();
  let over = false;
  const store = createHost(memory.connect(), { clock });
  const running = attack(scene(), { ...given, clock, host: store, wait: true }).finally(() => {
    over = true;
  });
  for (let sent = 0; !over; ) {
    at.requests(...(await elsewhere.requests()));
    if (at.up !== undefined) await hand(at, elsewhere);
    const one = at.sent[sent];
    if (one !== undefined) {
      sent += 1;
      const outcome = await answerElsewhere(elsewhere, one.request, one.answer, "ada");
      at.take(answerSent(at.stack, one.key, one.answer, outcome));
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { ...(await running), said: at.notices };
}

const press = (at: TestDesk, ...names: readonly (Key["name"] | Key)[]): void => {
  for (const name of names) at.press(typeof name === "string" ? key(name) : name);
};
const approve = (at: TestDesk): void => press(at, "tab", "up", "enter");

test("Bash, Edit and Write can be approved on a card: what it shows has the digest that is approved", async () => {
  const after = await answered(
    {
      allowedTools: ["Read"],
      // The command comes last: once it started without a wall, answers from elsewhere need a code.
      calls: [write("new.txt", "é"), read("src/b.ts"), edit("src/b.ts", "1", "2"), bash("echo hi")],
    },
    approve,
  );
  expect(after.outcomes).toEqual(["ok", "ok", "ok", "ok"]);
  expect(eventData(after.events, "grant.consumed")).toHaveLength(3);
  expect(eventData(after.events, "grant.answered").map(({ by }) => by)).toEqual(["ada", "ada", "ada"]);
});

test("an approval covers one call: the same call again is another card", async () => {
  let cards = 0;
  const after = await answered({ allowedTools: [], calls: [write("new.txt", "1"), write("new.txt", "1")] }, (at) => {
    cards += 1;
    if (cards === 1) approve(at);
    else press(at, "tab", "escape");
  });
  expect(cards).toBe(2);
  expect(after.outcomes).toEqual(["ok", "denied"]);
  expect(after.said.map((said) => said.split(" ")[0])).toEqual(["approved", "denied"]);
});

test("a reason that was written on a card is what the model reads", async () => {
  const after = await answered({ allowedTools: [], calls: [bash("echo hi")] }, (at) =>
    press(at, "tab", "down", "enter", typed("not today"), "enter"),
  );
  expect(after.outcomes).toEqual(["denied"]);
  expect(JSON.stringify(eventData(after.events, "call.decided"))).toContain("denied by ada: not today");
});

test("a question is answered with what was chosen", async () => {
  const ask: readonly [string, Json] = ["AskUser", { question: "Which?", options: ["red", "blue"] }];
  const after = await answered({ allowedTools: ["AskUser"], calls: [ask] }, (at) =>
    press(at, "tab", "down", "down", "enter"),
  );
  expect(eventData(after.events, "request.answered")).toMatchObject([{ answer: "value", by: "ada" }]);
  expect(after.outcomes).toEqual(["ok"]);
});

test("of two who answer, the first counts; the other is notified and sends nothing more", async () => {
  const after = await answered({ allowedTools: [], calls: [write("new.txt")] }, async (at, host) => {
    press(at, "tab", "up");
    const { request } = at.up?.card ?? {};
    if (request !== undefined) await answerElsewhere(host, request, { kind: "deny" }, "bob");
    press(at, "enter", "enter");
  });
  expect(after.outcomes).toEqual(["denied"]);
  expect(eventData(after.events, "grant.answered")).toMatchObject([{ by: "bob" }]);
  expect(after.said).toEqual([
    expect.stringMatching(/^not accepted: Write .* (was already answered|is no longer open)$/),
  ]);
});
