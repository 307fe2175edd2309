const NAMED = {
  enter: "\r",
  escape: "\x1b",
  tab: "\t",
  "shift+tab": "\x1b[Z",
  backspace: "\x7f",
  delete: "\x1b[3~",
  up: "\x1b[A",
  down: "\x1b[B",
  right: "\x1b[C",
  left: "\x1b[D",
  home: "\x1b[H",
  end: "\x1b[F",
  pageUp: "\x1b[5~",
  pageDown: "\x1b[6~",
} as const;

export type KeyName = keyof typeof NAMED | `ctrl+${string}` | `alt+${string}`;

/** What a terminal sends for a key. */
export function keyBytes(name: KeyName): string {
  if (isNamed(name)) return NAMED[name];
  const letter = name.slice(name.indexOf("+") + 1);
  if (letter.length !== 1) throw new Error(`no key is called ${name}`);
  return name.startsWith("alt+") ? `\x1b${letter}` : String.fromCharCode(letter.toUpperCase().charCodeAt(0) & 0x1f);
}

function isNamed(name: string): name is keyof typeof NAMED {
  return Object.hasOwn(NAMED, name);
}
