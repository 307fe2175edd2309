import { SluiceError } from "@sluice/core";
import { typedValue } from "../../work/answering.ts";
import type { DeskCard } from "../people/desk.ts";
import type { Command, Steering } from "./command.ts";

// Where no card is drawn, requests are answered in words: an approval names the digest of what it approves.

/** Digits of a digest that name a request among those that wait. */
export const SHORT_DIGEST = 6;

export const approve: Command = {
  name: "approve",
  description: "let one call run: with the digest that its request told",
  usage: "<digest>",
  run: (words, app) => {
    const card = cardFor(words, app);
    if (card.fault !== undefined)
      throw new SluiceError("Validation", "usage", `it cannot be approved here: ${card.fault}`);
    app.answer(card, { kind: "approve" });
  },
};

export const deny: Command = {
  name: "deny",
  description: "deny one call, or decline a question",
  usage: "<digest> [reason]",
  run: (words, app) => {
    const [, digest = "", reason = ""] = /^(\S*)\s*(.*)$/s.exec(words) ?? [];
    const card = cardFor(digest, app);
    app.answer(card, reason.trim() === "" ? { kind: "deny" } : { kind: "deny", reason: reason.trim() });
  },
};

export const answer: Command = {
  name: "answer",
  description: "answer a question, as JSON or in words",
  usage: "<digest> <answer>",
  run: (words, app) => {
    const [, digest = "", text = ""] = /^(\S*)\s*(.*)$/s.exec(words) ?? [];
    const card = cardFor(digest, app);
    const typed = typedValue(card.request, text.trim());
    if (!typed.ok) throw new SluiceError("Validation", "usage", typed.fault);
    app.answer(card, typed.answer);
  },
};

function cardFor(digest: string, app: Steering): DeskCard {
  const waiting = app.waiting();
  const fitting = waiting.filter(({ request }) => digest.length >= SHORT_DIGEST && request.digest.startsWith(digest));
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return only;
  const there = waiting.map(({ request }) => request.digest.slice(0, SHORT_DIGEST)).join(", ");
  const why = only === undefined ? `no request has the digest ${digest}…` : `several requests begin with ${digest}`;
  throw new SluiceError("Validation", "usage", `${why}; ${there === "" ? "none waits" : `waiting: ${there}`}`);
}
