/** Limits the issues of a hostile value. */
export const MAX_ISSUES = 20;
const MAX_MESSAGE = 300;
const MAX_PATH = 200;

/** `$.steps[0]["a key"]`. */
export function issuePath(pieces: readonly PropertyKey[]): string {
  const text = pieces.map((piece) => {
    if (typeof piece === "number") return `[${piece}]`;
    const key = String(piece);
    return /^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(key) ? `.${key}` : `[${JSON.stringify(cut(key, 60))}]`;
  });
  return cut(`$${text.join("")}`, MAX_PATH);
}

/** A message short enough for a model, whatever value it quotes. */
export function readableMessage(message: string): string {
  return cut(message, MAX_MESSAGE);
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
