/** A key, independent of the bytes that the terminal sent. */
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
  /** The typed or pasted text; with `ctrl` or `alt` the letter; empty for all other names. */
  readonly text: string;
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
}

/** A card or question reacts to keys once it was visible and no key was pressed for this time, in milliseconds. */
export const ARM_MS = 400;
/** A key answers only this long after the previous one, in milliseconds: pasted, repeated and early keys come sooner. */
export const QUIET_MS = 250;

export function isChord({ name, text, ctrl, alt }: Key, letter: string): boolean {
  return name === "text" && ctrl && !alt && text.toLowerCase() === letter;
}
