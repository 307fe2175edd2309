import { hash, randomBytes } from "node:crypto";

/** The header with which a launcher asks for a proof. */
export const NONCE_HEADER = "x-sluice-nonce";

/** Shows a launcher that an answer is the gateway's: another server on its port does not know the secret. */
export interface HookProof {
  /** Known to the gateway and to the files of its hooks; never sent. */
  readonly secret: string;
  /** The last line of an answer. */
  lineFor(nonce: string, body: string): string;
}

export function newHookProof(secret: string = randomBytes(32).toString("hex")): HookProof {
  return {
    secret,
    // The launcher computes the same with the programs that every system has.
    lineFor: (nonce, body) => `#${hash("sha256", `${secret}\n${nonce}\n${body}\n${secret}\n`)}`,
  };
}
