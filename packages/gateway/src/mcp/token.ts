import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { SluiceError } from "@sluice/core";

const SHORTEST_TOKEN = 32;

/** A token that names a run: 256 random bits. */
export function newGatewayToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Throws Validation `gateway_token_weak` for a token that could be guessed. */
export function checkGatewayToken(token: string): void {
  if (/^[\w~.+/-]+=*$/.test(token) && token.length >= SHORTEST_TOKEN) return;
  throw new SluiceError(
    "Validation",
    "gateway_token_weak",
    `The token of a gateway is at least ${SHORTEST_TOKEN} letters, digits or -._~+/ long. Use newGatewayToken().`,
  );
}

/** Whether an Authorization header carries the token. Compares digests, so that the time reveals nothing about the token. */
export function carriesToken(authorization: string | undefined, token: string): boolean {
  const given = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1] ?? "";
  return timingSafeEqual(sha256(given), sha256(token));
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
