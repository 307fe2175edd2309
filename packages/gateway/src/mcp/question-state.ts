import { randomBytes } from "node:crypto";
import { createRequestStateCodec, type ServerContext } from "@modelcontextprotocol/server";
import type { Clock, Json } from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import { z } from "zod";

/** What a question to a person was about. It travels through the client, which can read it and not change it. */
export interface QuestionFacts {
  readonly runId: string;
  readonly requestId: string;
  /** Digest of the request's subject. */
  readonly digest: string;
  readonly tool: string;
  /** Digest of the call's arguments. */
  readonly input: string;
  /** Whether the form showed all that an approval would run, and offered one. */
  readonly approvable: boolean;
}

export interface QuestionStates {
  mint(asked: QuestionFacts): Promise<string>;
  /** Returns what was asked, once for each state. Throws if the state is edited, foreign, expired or used. */
  verify(state: string, ctx: ServerContext): Promise<QuestionFacts>;
}

const Sealed = z.strictObject({
  runId: z.string(),
  requestId: z.string(),
  digest: z.string(),
  tool: z.string(),
  input: z.string(),
  approvable: z.boolean(),
  nonce: z.string(),
  expires: z.number(),
});
type Sealed = z.infer<typeof Sealed>;

/** Longer than any state that is minted here: a longer one is refused before it is decoded. */
const LONGEST_STATE = 4_096;

/**
 * States with a key that lives as long as the process: after a restart, the agent makes its call again, and is asked again if the
 * request is still open.
 */
export function createQuestionStates(options: { readonly clock: Clock; readonly ttlMs: number }): QuestionStates {
  const { clock, ttlMs } = options;
  // The codec checks the real clock as well; twice the time keeps the injected clock in charge.
  const codec = createRequestStateCodec<Sealed>({ key: randomBytes(32), ttlSeconds: Math.ceil((2 * ttlMs) / 1_000) });
  /** States that may still come back. One that is used, or too old, is not among them. */
  const open = new Map<string, () => void>();

  return {
    mint: (asked) => {
      const nonce = randomBytes(16).toString("base64url");
      open.set(
        nonce,
        clock.after(ttlMs, () => void open.delete(nonce)),
      );
      return codec.mint({ ...asked, nonce, expires: clock.now() + ttlMs });
    },
    verify: async (state, ctx) => {
      if (state.length > LONGEST_STATE) throw new Error("too long");
      const { nonce, expires, ...asked } = Sealed.parse(await codec.verify(state, ctx));
      const close = open.get(nonce);
      if (close === undefined || expires <= clock.now()) throw new Error("used or expired");
      close();
      open.delete(nonce);
      return asked;
    },
  };
}

/** Binds a question to the arguments of its call. */
export function argumentsDigest(input: Json): string {
  return digestOf(input);
}
