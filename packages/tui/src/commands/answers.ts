import type { Answer } from "@sluice/core";
import { type Command, type Steering, usageError } from "../app/command.ts";
import { cardNamed } from "../cards/card-controller.ts";
import { type Card, refusalFor } from "../cards/card-stack.ts";
import { typedValue } from "../user/send-answer.ts";

// Commands that answer requests with --screen-reader. An approval names the digest of what it approves.

export const approve: Command = {
  name: "approve",
  description: "approve one call by the digest in its request",
  usage: "<digest>",
  run: (words, app) => {
    const card = cardFor(words, app);
    answerWith(card, { kind: "approve" }, app);
  },
};

export const deny: Command = {
  name: "deny",
  description: "deny a call, or decline a question",
  usage: "<digest> [reason]",
  run: (words, app) => {
    const [, digest = "", reason = ""] = /^(\S*)\s*(.*)$/s.exec(words) ?? [];
    const card = cardFor(digest, app);
    app.answer(card, reason.trim() === "" ? { kind: "deny" } : { kind: "deny", reason: reason.trim() });
  },
};

export const answer: Command = {
  name: "answer",
  description: "answer a question, as text or JSON",
  usage: "<digest> <answer>",
  run: (words, app) => {
    const [, digest = "", text = ""] = /^(\S*)\s*(.*)$/s.exec(words) ?? [];
    const card = cardFor(digest, app);
    const typed = typedValue(card.request, text.trim());
    if (!typed.ok) throw usageError(typed.fault);
    answerWith(card, typed.answer, app);
  },
};

function answerWith(card: Card, given: Answer, app: Steering): void {
  const refused = refusalFor(card, given);
  if (refused !== undefined) throw usageError(refused);
  app.answer(card, given);
}

function cardFor(name: string, app: Steering): Card {
  const waiting = app.waiting();
  const card = cardNamed(name, waiting);
  if (card !== undefined) return card;
  const names = waiting.map((one) => one.name).join(", ");
  const fault = name === "" ? "name a request by its digest" : `no waiting request has the digest ${name}`;
  throw usageError(`${fault}; ${names === "" ? "no request waits" : `waiting: ${names}`}`);
}
