/** Why a command line could not be analysed. All of them mean: nothing is known about what it would do. */
export type RefusalCode = "too_long" | "nul_byte" | "syntax" | "unsupported" | "too_complex";

/** Ends the analysis: the walk is deep and every level has to stop. Never leaves this folder. */
export class ShellRefusal extends Error {
  override readonly name = "ShellRefusal";
  readonly code: RefusalCode;

  constructor(code: RefusalCode, reason: string) {
    super(reason);
    this.code = code;
  }
}

export function unsupported(what: string): ShellRefusal {
  return new ShellRefusal("unsupported", `${what} is not understood by the shell analyser`);
}

/** At most 40 characters of source for a message. */
export function excerpt(text: string): string {
  return text.length <= 40 ? text : `${text.slice(0, 39)}…`;
}
