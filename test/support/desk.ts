import type { Json, JsonObject, OpenRequest } from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import { pressKey } from "../../packages/tui/src/cards/card-keys.ts";
import {
  type CardStack,
  type CardUpdate,
  cardHidden,
  cardShown,
  createCardStack,
  openCardOf,
  requestsChanged,
  type ShownLines,
} from "../../packages/tui/src/cards/card-stack.ts";
import type { Hiding } from "../../packages/tui/src/cards/change.ts";
import type { Key } from "../../packages/tui/src/composer/keys.ts";
import { ARM_MS } from "../../packages/tui/src/composer/keys.ts";

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

export const HIDES_NOTHING: Hiding = { text: (text) => text, known: (text) => text };

export function key(name: Key["name"], text = "", held: Partial<Key> = {}): Key {
  return { name, text, ctrl: false, alt: false, shift: false, ...held };
}
export const typed = (text: string): Key => key("text", text);
export const ctrl = (text: string): Key => key("text", text, { ctrl: true });

/** A card stack with keys as the app passes them on: time passes only on request, and each card that opens is drawn at once. */
export function deskOf(...open: readonly OpenRequest[]) {
  let stack: CardStack = createCardStack();
  let now = 1_000_000;
  let lastKeyAt: number | undefined;
  const notices: string[] = [];
  const sent: NonNullable<CardUpdate["send"]>[] = [];
  const draw = (lines = 10, to = lines): void => {
    const up = openCardOf(stack);
    if (up !== undefined) show(up.card.key, { from: 0, to, lines });
  };
  const take = (update: CardUpdate): void => {
    stack = update.stack;
    if (update.notice !== undefined) notices.push(update.notice.text);
    if (update.send !== undefined) sent.push(update.send);
  };
  const show = (shownKey: string, shown: ShownLines): void => {
    stack = cardShown(stack, shownKey, shown, now);
  };
  const ask = (requests: readonly OpenRequest[]): void => take(requestsChanged(stack, requests));
  /** As the app does before it passes a key on. Returns the time since the previous key. */
  const arrive = (): number => {
    const idle = lastKeyAt === undefined ? Number.POSITIVE_INFINITY : now - lastKeyAt;
    lastKeyAt = now;
    if (idle >= ARM_MS) stack = { ...stack, focusLost: false };
    return idle;
  };
  const pressNow = (pressed: Key): boolean => {
    // Before the stack is read: it may change.
    const idle = arrive();
    const update = pressKey(stack, pressed, now, idle);
    take(update);
    return update.handled;
  };
  const at = {
    notices,
    sent,
    draw,
    take,
    show,
    /** The requests without a frame after them. */
    ask,
    hide(): void {
      stack = cardHidden(stack);
    },
    get stack() {
      return stack;
    },
    get up() {
      return openCardOf(stack);
    },
    get now() {
      return now;
    },
    get selected() {
      const up = openCardOf(stack);
      return up === undefined ? undefined : up.card.form.options[up.open.selected ?? -1]?.kind;
    },
    pass(ms: number) {
      now += ms;
      return at;
    },
    requests(...requests: readonly OpenRequest[]) {
      ask(requests);
      draw();
      return at;
    },
    /** A key after a pause, passed to the cards. Returns whether they handled it. */
    press(pressed: Key, pause = 500): boolean {
      now += pause;
      const handled = pressNow(pressed);
      draw();
      return handled;
    },
    /** The same without a frame after it. */
    pressUndrawn(pressed: Key, pause: number): boolean {
      now += pause;
      return pressNow(pressed);
    },
    /** A key that something else handles. */
    pressElsewhere(pause: number): void {
      now += pause;
      arrive();
    },
  };
  return open.length === 0 ? at : at.requests(...open);
}
export type TestDesk = ReturnType<typeof deskOf>;
