import {
  type Composer,
  type ComposerContext,
  type ComposerEffect,
  createComposer,
  update,
} from "../../packages/tui/src/composer/composer.ts";
import { wholeText } from "../../packages/tui/src/composer/editing/pastes.ts";
import type { Key } from "../../packages/tui/src/composer/keys.ts";

/** A key by its name, such as `ctrl+a`, `alt+left`, `enter`; everything else is typed as it stands. */
export function keyOf(name: string): Key {
  const [, modifiers = "", rest = ""] = /^((?:(?:ctrl|alt|shift)\+)*)(.+)$/s.exec(name) ?? [];
  const has = (modifier: string): boolean => modifiers.includes(`${modifier}+`);
  const held = { ctrl: has("ctrl"), alt: has("alt"), shift: has("shift") };
  const named = NAMES.find((one) => one === rest);
  return named === undefined ? { name: "text", text: rest, ...held } : { name: named, text: "", ...held };
}

const NAMES = [
  "enter",
  "escape",
  "tab",
  "backspace",
  "delete",
  "up",
  "down",
  "left",
  "right",
  "home",
  "end",
  "pageUp",
  "pageDown",
] as const;

export function pasteOf(text: string): Key {
  return { name: "paste", text, ctrl: false, alt: false, shift: false };
}

/** What was typed, letter by letter. */
function typing(text: string): readonly Key[] {
  return Array.from(text, (letter) => ({ name: "text", text: letter, ctrl: false, alt: false, shift: false }) as const);
}

export const context: ComposerContext = {
  width: 80,
  commands: [
    { name: "run", description: "start a pipeline", takes: [{ kind: "pipeline" }] },
    { name: "runs", description: "list runs" },
    { name: "resume", description: "take a run up", takes: [{ kind: "run", optional: true }] },
    { name: "mode", description: "for later runs", takes: [{ kind: "mode" }] },
    { name: "help", description: "what there is" },
    { name: "quit", description: "leave" },
  ],
  choices: (kind) => CHOICES[kind] ?? [],
};

const CHOICES: Readonly<Record<string, readonly { readonly value: string; readonly description?: string }[]>> = {
  pipeline: [
    { value: "codeReview", description: "plan, execute, review" },
    { value: "fixTests", description: "until they pass" },
  ],
  run: [{ value: "r-2026-2" }, { value: "r-2026-1" }],
  mode: [{ value: "ask" }, { value: "allowlist" }, { value: "yolo" }],
};

export interface Pressed {
  readonly state: Composer;
  readonly effects: readonly ComposerEffect[];
  /** Whether the last key was used. */
  readonly handled: boolean;
}

/** The composer after keys, given as keys, as names (`"ctrl+a"`) or as `{ type: text }`. */
export function press(
  start: Composer | undefined,
  keys: readonly (Key | string | { readonly type: string })[],
  around: ComposerContext = context,
): Pressed {
  let state = start ?? createComposer();
  let handled = true;
  const effects: ComposerEffect[] = [];
  for (const one of keys.flatMap((key) => flat(key))) {
    const updated = update(state, one, around);
    state = updated.state;
    handled = updated.handled;
    if (updated.effect !== undefined) effects.push(updated.effect);
  }
  return { state, effects, handled };
}

function flat(key: Key | string | { readonly type: string }): readonly Key[] {
  if (typeof key === "string") return [keyOf(key)];
  return "type" in key ? typing(key.type) : [key];
}

/** The text with its pastes, and with `|` where the cursor stands. */
export function shown({ editor }: Composer): string {
  const { text, pastes, cursor } = editor;
  const [before, after] = [text.slice(0, cursor), text.slice(cursor)].map((part) => wholeText({ text: part, pastes }));
  return `${before}|${after}`;
}
