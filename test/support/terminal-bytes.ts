/** What a process did to its terminal, by the bytes it wrote. */
export interface TerminalBytes {
  /** All of them. */
  text(): string;
  length(): number;
  /** How often the scrollback was wiped. */
  scrollbackWiped(): number;
  /** How often all of the screen was cleared. */
  screenCleared(): number;
  /** How often the terminal was reset. */
  reset(): number;
  bells(): number;
  /** The commands to the terminal itself: titles, links, the clipboard. Without their beginnings and ends. */
  osc(): readonly string[];
  /** Modes that were set and not reset again, by what sets them. */
  left(): readonly string[];
  /** How often a mode was set. */
  set(mode: number): number;
}

const ESC = "\x1b";
const BEL = "\x07";
const OSC = new RegExp(`(?:${ESC}\\]|\u009d)([^${BEL}${ESC}\u009c]*)(?:${BEL}|${ESC}\\\\|\u009c)`, "g");
const MODE = new RegExp(`${ESC}\\[\\?([0-9;]+)([hl])`, "g");
const KITTY = new RegExp(`${ESC}\\[([<>])[0-9;]*u`, "g");
/** Modes that are set in a terminal at rest: a process has to set them again. */
const SET_AT_REST = new Set(["7", "25"]);

export function createBytes(): TerminalBytes & { add(data: string): void } {
  const pieces: string[] = [];
  const text = (): string => {
    if (pieces.length > 1) pieces.splice(0, pieces.length, pieces.join(""));
    return pieces[0] ?? "";
  };
  const count = (sequence: string): number => text().split(sequence).length - 1;
  return {
    add: (data) => void pieces.push(data),
    text,
    length: () => pieces.reduce((sum, piece) => sum + piece.length, 0),
    scrollbackWiped: () => count("\x1b[3J"),
    screenCleared: () => count("\x1b[2J"),
    reset: () => count("\x1bc") + count("\x1b[!p"),
    bells: () => text().replace(OSC, "").split("\x07").length - 1,
    osc: () => [...text().matchAll(OSC)].map(([, said = ""]) => said),
    left: () => modesLeft(text()),
    set: (mode) => count(`\x1b[?${mode}h`),
  };
}

function modesLeft(text: string): readonly string[] {
  const changed = new Map<string, string>();
  for (const [, numbers = "", to = ""] of text.matchAll(MODE)) {
    for (const mode of numbers.split(";")) changed.set(mode, to);
  }
  const left = [...changed]
    .filter(([mode, to]) => (to === "h") !== SET_AT_REST.has(mode))
    .map(([mode, to]) => `?${mode}${to}`);
  const kitty = [...text.matchAll(KITTY)].reduce((levels, [, way]) => levels + (way === ">" ? 1 : -1), 0);
  return kitty === 0 ? left : [...left, `kitty keyboard ${kitty}`];
}
