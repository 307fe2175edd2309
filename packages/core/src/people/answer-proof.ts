import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { canonicalJson, sha256 } from "../base/canonical.ts";
import { isSluiceError } from "../base/errors.ts";
import { field, isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import type { PersonRequest } from "./interactor.ts";

/**
 * What shows that a person gave an answer. `session`: it came through the session that asked; `code`: whoever gave it knew the
 * request's one-time code; `walled`: it came from another process, and everything that the run has started was behind a wall;
 * `any`: the run was started to take answers of any process; `missing`: nothing shows it, so it grants nothing.
 */
export type AnswerProof = "session" | "code" | "sandboxed" | "any" | "missing";

/** The request that a code is for, and the process that made it. */
export interface CodeScope extends Pick<PersonRequest, "runId" | "requestId"> {
  /** Of the process that waits for the answer. */
  readonly incarnation: string;
}

/** What lets people answer one request in one process. Kept in memory only; another process that waits for it has another. */
export interface AnswerSeal {
  /** For the person at the terminal of this process: never write it to a file, a log or a stream that others may read. */
  readonly code: string;
  /** An answer's payload with the proof that it came through this process. */
  seal(payload: JsonObject): JsonObject;
  /** Whether an approval or a value from another process counts only with the code, as of now. */
  needsCode(): boolean;
}

/** A seal, with what only its owner may ask. */
export interface OwnSeal extends AnswerSeal {
  /** Who proved this payload to be a person's answer, if anybody. */
  provenBy(payload: Json): "session" | "code" | undefined;
}

/** Crockford's: without letters that are read as others. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Random letters, of five bits each. */
const RANDOM = 16;
/** Letters that guard against mistakes: a wrong one passes once in a million times. */
const CHECK = 4;

/** Makes what lets people answer a request: a key that never leaves this object, and a code of 80 random bits. */
export function createSeal(place: CodeScope, needsCode: () => boolean): OwnSeal {
  const key = randomBytes(32);
  const secret = letters(randomBytes(RANDOM));
  return {
    code: grouped(secret + checkOf(secret, place)),
    seal: (payload) => withProof(key, place, payload),
    needsCode,
    provenBy: (payload) => {
      if (isProven(key, place, payload)) return "session";
      return isProven(secret, place, payload) ? "code" : undefined;
    },
  };
}

/**
 * An answer's payload with the proof that a code gives, which does not tell the code; undefined where the code is mistyped, or
 * is another request's or another process's.
 */
export function sealWithCode(code: string, place: CodeScope, payload: JsonObject): JsonObject | undefined {
  const typed = code.toUpperCase().replaceAll(/[\s-]/g, "").replaceAll("O", "0").replaceAll(/[IL]/g, "1");
  const secret = typed.slice(0, RANDOM);
  if (typed.length !== RANDOM + CHECK || typed.slice(RANDOM) !== checkOf(secret, place)) return undefined;
  return withProof(secret, place, payload);
}

function withProof(key: Buffer | string, place: CodeScope, payload: JsonObject): JsonObject {
  return { ...payload, proof: macOf(key, place, payload).toString("hex") };
}

/** Anybody may have sent it: what cannot be read proves nothing. */
function isProven(key: Buffer | string, place: CodeScope, payload: Json): boolean {
  const given = field(payload, "proof");
  if (!isJsonObject(payload) || typeof given !== "string" || !/^[0-9a-f]{64}$/.test(given)) return false;
  const { proof: _, ...answer } = payload;
  try {
    return timingSafeEqual(Buffer.from(given, "hex"), macOf(key, place, answer));
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

/** Bound to request and process, so that another one's code is refused before anything is sent. */
function checkOf(secret: string, { runId, requestId, incarnation }: CodeScope): string {
  const digest = sha256(canonicalJson([secret, runId, requestId, incarnation]));
  return letters(Buffer.from(digest.slice(0, 2 * CHECK), "hex"));
}

/** A letter for the last five bits of each byte. */
function letters(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

function grouped(text: string): string {
  return (text.match(/.{4}/g) ?? []).join("-");
}
