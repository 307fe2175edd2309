import type { OpenRequest } from "@sluice/core";
import { expect, test } from "vitest";
import { CardNames, cardNamed, type NamedCard } from "../../packages/tui/src/cards/card-controller.ts";
import { createCardStack, requestsChanged, sendAnswer } from "../../packages/tui/src/cards/card-stack.ts";

test("a name that was shown never means a later request whose digest begins alike", () => {
  const names = new CardNames();
  const [first] = named(names, [request("one", `abc123${"0".repeat(58)}`)]);
  expect(first?.name).toBe("abc123");
  // The first was answered elsewhere; what waits now was made to look like it.
  const later = named(names, [request("two", `abc123${"1".repeat(58)}`), request("three", `abc123${"0".repeat(58)}`)]);
  expect(later.map(({ name }) => name)).toEqual(["abc123-2", "abc123-3"]);
  for (const words of ["abc123", "abc1230000", `abc123${"1".repeat(58)}`, "abc12", "", "abc123-", "abc123-1"])
    expect(cardNamed(words, later), words).toBeUndefined();
  expect(cardNamed("abc123-3", later)?.request.requestId).toBe("three");
});

test("two siblings that ask for the same call can each be answered", () => {
  const digest = "d".repeat(64);
  const both = named(new CardNames(), [request("one", digest, "r1/fan-1/a"), request("one", digest, "r1/fan-1/b")]);
  expect(both.map(({ name }) => cardNamed(name, both)?.request.runId)).toEqual(["r1/fan-1/a", "r1/fan-1/b"]);
});

test("more digits of a digest name it too, other ones do not", () => {
  const digest = `abc123${"4".repeat(58)}`;
  const cards = named(new CardNames(), [request("one", digest)]);
  expect(cardNamed(digest, cards)?.request.requestId).toBe("one");
  expect(cardNamed("abc12344", cards)?.request.requestId).toBe("one");
  expect(cardNamed("abc12345", cards)).toBeUndefined();
});

test("what was answered in words is on its way, and is not sent again", () => {
  const open = requestsChanged(createCardStack(), [request("one", "e".repeat(64))]).stack;
  const [card] = open.cards;
  if (card === undefined) throw new Error("there is no card");
  const once = sendAnswer(open, card, { kind: "deny" });
  expect(once.send?.request.requestId).toBe("one");
  const [sending] = once.stack.cards;
  expect(sending && sendAnswer(once.stack, sending, { kind: "approve" }).send).toBeUndefined();
});

function named(names: CardNames, open: readonly OpenRequest[]): readonly NamedCard[] {
  const { cards } = requestsChanged(createCardStack(), open).stack;
  return cards.map((card) => ({ card, name: names.of(card) }));
}

function request(requestId: string, digest: string, runId = "r1"): OpenRequest {
  return { runId, requestId, kind: "grantStageTool", digest, openedAt: 0, body: { tool: "Bash", input: {} } };
}
