import type { Key as InkKey } from "ink";
import type { Key } from "../app/keys.ts";

/** Control characters but for line breaks. */
const CONTROLS = /([^\P{Cc}\r\n])/u;
const NONE = { text: "", ctrl: false, alt: false, shift: false } as const;

/**
 * What Ink reports as one input, as keys. Several characters in one piece are what a terminal without bracketed paste sends
 * when somebody pastes, or what was typed while the app was busy: a line break in the middle of it is text, one at its end is
 * the Enter key.
 */
export function keysOf(input: string, ink: InkKey): readonly Key[] {
  // Several keys that were read together, such as two Tabs: each by itself.
  const parts = input.length > 1 ? input.split(CONTROLS).filter((part) => part !== "") : [];
  if (parts.length > 1 && !/[\r\n]/.test(input)) return parts.flatMap((part) => keysOf(part, plainKey(part, ink)));
  if (ink.eventType === "release") return [];
  const held = { ctrl: ink.ctrl, alt: ink.meta && !ink.escape, shift: ink.shift };
  const named = nameOf(ink);
  if (named !== undefined) return [{ name: named, text: "", ...held }];
  if (input === "") return [];
  if (ink.ctrl && input < " ") return [{ name: "text", text: letterOf(input), ...held }];
  if (ink.ctrl || held.alt) return [{ name: "text", text: input, ...held }];
  // Enter sends a carriage return; a line feed by itself is Ctrl+J.
  if (input === "\n") return [{ ...NONE, name: "text", text: "j", ctrl: true }];
  const ends = /^([^\r\n]*)(\r\n|\r|\n)$/s.exec(input);
  if (ends !== null) {
    const [, text = ""] = ends;
    const enter: Key = { ...NONE, name: "enter" };
    return text === "" ? [enter] : [{ ...NONE, name: "text", text }, enter];
  }
  return [{ ...NONE, name: /[\r\n]/.test(input) ? "paste" : "text", text: input }];
}

/** The letter that is pressed with Ctrl for a control character. */
function letterOf(control: string): string {
  return String.fromCharCode(control.charCodeAt(0) + 96);
}

/** What Ink would have said of a single control character. */
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
