import type { Key as InkKey } from "ink";
import type { Key } from "../keys.ts";

const NONE = { text: "", ctrl: false, alt: false, shift: false } as const;

/**
 * What Ink reports as one input, as keys. Several characters in one piece are what a terminal without bracketed paste sends
 * when somebody pastes, or what was typed while the app was busy: a line break in the middle of it is text, one at its end is
 * the Enter key.
 */
export function keysOf(input: string, ink: InkKey): readonly Key[] {
  if (ink.eventType === "release") return [];
  const held = { ctrl: ink.ctrl, alt: ink.meta && !ink.escape, shift: ink.shift };
  const named = nameOf(ink);
  if (named !== undefined) return [{ name: named, text: "", ...held }];
  if (input === "") return [];
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
