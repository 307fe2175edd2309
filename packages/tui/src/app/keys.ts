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

/** Whether it is Ctrl and this letter. */
export function isChord({ name, text, ctrl, alt }: Key, letter: string): boolean {
  return name === "text" && ctrl && !alt && text.toLowerCase() === letter;
}
