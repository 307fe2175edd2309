/** A key as rooms of the app see it, whatever the terminal sent for it. */
export interface Key {
  readonly name:
    | "text"
    | "paste"
    | "enter"
    | "escape"
    | "tab"
    | "backspace"
    | "delete"
    | "up"
    | "down"
    | "left"
    | "right"
    | "home"
    | "end"
    | "pageUp"
    | "pageDown";
  /** What was typed or pasted; with `ctrl` or `alt` the letter; empty for all other names. */
  readonly text: string;
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
}

/** How long something that asks stands, and how long nobody types, before a key can be meant for it, in milliseconds. */
export const ARM_MS = 400;
/** A key that answers comes after so long without any: what is pasted, repeated or typed ahead comes sooner. */
export const QUIET_MS = 250;

/** Whether it is Ctrl and this letter. */
export function isChord({ name, text, ctrl, alt }: Key, letter: string): boolean {
  return name === "text" && ctrl && !alt && text.toLowerCase() === letter;
}
