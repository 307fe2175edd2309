import { digestOf, type Json, type JsonObject, type OpenRequest } from "@sluice/core";
import type { Key } from "../../packages/tui/src/app/keys.ts";
import { type CardStack, type CardUpdate, createCardStack, openCardOf } from "../../packages/tui/src/cards/desk.ts";
import { updateCards } from "../../packages/tui/src/cards/update.ts";

export function grant(
  input: Json,
  more: Partial<OpenRequest> & { readonly tool?: string; readonly body?: JsonObject } = {},
): OpenRequest {
  const { tool = "Bash", body, ...rest } = more;
  const digest = digestOf(input);
  return {
    requestId: "execute#1/a1/t3.c0",
    runId: "r1",
    kind: "grantStageTool",
    digest,
    body: {
      executionId: "execute#1",
      attempt: 1,
      proposalId: "t3.c0",
      tool,
      input,
      argsDigest: digest,
      why: "no",
      ...body,
    },
    openedAt: 0,
    ...rest,
  };
}

export function question(answer: JsonObject, text = "Which?"): OpenRequest {
  const body = { tool: "AskUser", question: text, answer };
  return {
    requestId: "plan#1/a1/t1.c0/question",
    runId: "r1",
    kind: "askUser",
    digest: digestOf(body),
    body,
    openedAt: 0,
  };
}

export function key(name: Key["name"], text = "", held: Partial<Key> = {}): Key {
  return { name, text, ctrl: false, alt: false, shift: false, ...held };
}
export const typed = (text: string): Key => key("text", text);
export const ctrl = (text: string): Key => key("text", text, { ctrl: true });

/** A desk with a hand on it: time passes only as told, and each card that comes up is drawn at once. */
export function deskOf(...open: readonly OpenRequest[]) {
  let desk: CardStack = createCardStack();
  let now = 1_000_000;
  const told: string[] = [];
  const sent: NonNullable<CardUpdate["send"]>[] = [];
  const draw = (lines = 10, to = lines): void => {
    const up = openCardOf(desk);
    if (up !== undefined) apply({ kind: "shown", key: up.card.key, shown: { from: 0, to, lines } });
  };
  const apply = (action: Parameters<typeof updateCards>[1]): CardUpdate => {
    const update = updateCards(desk, action, now);
    desk = update.desk;
    if (update.told !== undefined) told.push(update.told);
    if (update.send !== undefined) sent.push(update.send);
    return update;
  };
  const at = {
    told,
    sent,
    draw,
    apply,
    get desk() {
      return desk;
    },
    get up() {
      return openCardOf(desk);
    },
    get now() {
      return now;
    },
    get selected() {
      const up = openCardOf(desk);
      return up === undefined ? undefined : up.card.form.options[up.open.selected ?? -1]?.kind;
    },
    pass(ms: number) {
      now += ms;
      return at;
    },
    requests(...requests: readonly OpenRequest[]) {
      apply({ kind: "requests", open: requests });
      draw();
      return at;
    },
    /** A key after a pause, given to the desk alone. Returns whether it was taken. */
    press(pressed: Key, pause = 500): boolean {
      now += pause;
      const { taken } = apply({ kind: "key", key: pressed, taken: false });
      draw();
      return taken;
    },
  };
  return open.length === 0 ? at : at.requests(...open);
}
export type TestDesk = ReturnType<typeof deskOf>;
