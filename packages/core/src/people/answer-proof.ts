import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { canonicalJson, sha256 } from "../base/canonical.ts";
import { isSluiceError } from "../base/errors.ts";
import { field, isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import type { PersonRequest } from "./interactor.ts";

/**
 * What proves that a person gave an answer. `session`: it came through the session that asked. `code`: it was given with the
 * request's one-time code. `sandboxed`: it came from another process, and all processes of the run were sandboxed. `any`: the run was
 * started to accept answers from any process. `missing`: there is no proof, so it grants nothing.
 */
export type AnswerProof = "session" | "code" | "sandboxed" | "any" | "missing";

/** The request and the process that a code is valid for. */
export interface CodeScope extends Pick<PersonRequest, "runId" | "requestId"> {
  /** Of the process that waits for the answer. */
  readonly incarnation: string;
}

/** Proves answers to one request in one process. Kept in memory only; another process makes its own. */
export interface AnswerSeal {
  /** For the person at the terminal of this process. Never write it to a file, a log or a stream that others may read. */
  readonly code: string;
  /** Adds the proof that an answer came through this process. */
  seal(payload: JsonObject): JsonObject;
  /** Whether an approval or a value from another process currently needs the code. */
  needsCode(): boolean;
}

/** The seal for the process that verifies answers. */
export interface OwnSeal extends AnswerSeal {
  /** How this payload was proven, if it was. */
  provenBy(payload: Json): "session" | "code" | undefined;
}

/** Crockford's Base32, without letters that are easily confused. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Random letters, five bits each. */
const RANDOM = 16;
/** Check letters, which miss one mistyped code in a million. */
const CHECK = 4;

/** Makes a request's seal, with a key that stays in this object and a code of 80 random bits. */
export function createSeal(scope: CodeScope, needsCode: () => boolean): OwnSeal {
  const key = randomBytes(32);
  const secret = letters(randomBytes(RANDOM));
  return {
    code: grouped(secret + checkOf(secret, scope)),
    seal: (payload) => withProof(key, scope, payload),
    needsCode,
    provenBy: (payload) => {
      if (isProven(key, scope, payload)) return "session";
      return isProven(secret, scope, payload) ? "code" : undefined;
    },
  };
}

/**
 * Adds the proof of a code to an answer without revealing the code. Undefined if the code is mistyped or belongs to another
 * request or process.
 */
export function sealWithCode(code: string, scope: CodeScope, payload: JsonObject): JsonObject | undefined {
  const typed = code.toUpperCase().replaceAll(/[\s-]/g, "").replaceAll("O", "0").replaceAll(/[IL]/g, "1");
  const secret = typed.slice(0, RANDOM);
  if (typed.length !== RANDOM + CHECK || typed.slice(RANDOM) !== checkOf(secret, scope)) return undefined;
  return withProof(secret, scope, payload);
}

function withProof(key: Buffer | string, scope: CodeScope, payload: JsonObject): JsonObject {
  return { ...payload, proof: macOf(key, scope, payload).toString("hex") };
}

/** The payload is untrusted: an unreadable one proves nothing. */
function isProven(key: Buffer | string, scope: CodeScope, payload: Json): boolean {
  const given = field(payload, "proof");
  if (!isJsonObject(payload) || typeof given !== "string" || !/^[0-9a-f]{64}$/.test(given)) return false;
  const { proof: _, ...answer } = payload;
  try {
    return timingSafeEqual(Buffer.from(given, "hex"), macOf(key, scope, answer));
  } catch (thrown) {
    if (isSluiceError(thrown, "not_json")) return false;
    throw thrown;
  }
}

function macOf(key: Buffer | string, { runId, requestId }: CodeScope, answer: JsonObject): Buffer {
  return createHmac("sha256", key)
    .update(canonicalJson([runId, requestId, answer]))
    .digest();
}

/** Depends on request and process, so that a code for another one is refused before anything is sent. */
function checkOf(secret: string, { runId, requestId, incarnation }: CodeScope): string {
  const digest = sha256(canonicalJson([secret, runId, requestId, incarnation]));
  return letters(Buffer.from(digest.slice(0, 2 * CHECK), "hex"));
}

/** One letter for the last five bits of each byte. */
function letters(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += ALPHABET.charAt(byte % ALPHABET.length);
  return text;
}

function grouped(text: string): string {
  return (text.match(/.{4}/g) ?? []).join("-");
}
