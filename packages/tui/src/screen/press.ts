import type { Key as InkKey } from "ink";
import type { Key } from "../composer/keys.ts";

/** Control characters except line breaks. */
const CONTROLS = /([^\P{Cc}\r\n])/u;
const NONE = { text: "", ctrl: false, alt: false, shift: false } as const;

/**
 * The keys of one input of Ink. Several characters come from a paste without bracketed paste, or were typed while the app was
 * busy: a line break between them is text, one at the end is Enter.
 */
export function keysOf(input: string, ink: InkKey): readonly Key[] {
  // Several keys that were read together, such as two Tabs.
  const parts = input.length > 1 ? input.split(CONTROLS).filter((part) => part !== "") : [];
  if (parts.length > 1 && !/[\r\n]/.test(input)) return parts.flatMap((part) => keysOf(part, plainKey(part, ink)));
  if (ink.eventType === "release") return [];
  const held = { ctrl: ink.ctrl, alt: ink.meta && !ink.escape, shift: ink.shift };
  const name = nameOf(ink);
  if (name !== undefined) return [{ name, text: "", ...held }];
  if (input === "") return [];
  if (ink.ctrl && input < " ") return [{ name: "text", text: letterOf(input), ...held }];
  if (ink.ctrl || held.alt) return [{ name: "text", text: input, ...held }];
  // Enter sends a carriage return; a line feed by itself is Ctrl+J.
  if (input === "\n") return [{ ...NONE, name: "text", text: "j", ctrl: true }];
  const withEnter = /^([^\r\n]*)(\r\n|\r|\n)$/s.exec(input);
  if (withEnter !== null) {
    const [, text = ""] = withEnter;
    const enter: Key = { ...NONE, name: "enter" };
    return text === "" ? [enter] : [{ ...NONE, name: "text", text }, enter];
  }
  return [{ ...NONE, name: /[\r\n]/.test(input) ? "paste" : "text", text: input }];
}

/** The letter of a control character. */
function letterOf(control: string): string {
  return String.fromCharCode(control.charCodeAt(0) + 96);
}

/** What Ink reports for this part alone. */
function plainKey(part: string, ink: InkKey): InkKey {
  const code = part.charCodeAt(0);
  if (part.length > 1 || code > 26 || code === 0) return { ...ink, tab: false, ctrl: false, meta: false };
  return { ...ink, tab: code === 9, ctrl: code !== 9, meta: false };
}

function nameOf(ink: InkKey): Key["name"] | undefined {
  if (ink.return) return "enter";
  if (ink.escape) return "escape";
  if (ink.tab) return "tab";
  if (ink.backspace) return "backspace";
  if (ink.delete) return "delete";
  if (ink.upArrow) return "up";
  if (ink.downArrow) return "down";
  if (ink.leftArrow) return "left";
  if (ink.rightArrow) return "right";
  if (ink.home) return "home";
  if (ink.end) return "end";
  if (ink.pageUp) return "pageUp";
  return ink.pageDown ? "pageDown" : undefined;
}
