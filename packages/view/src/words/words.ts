import type { Usage } from "@sluice/core";
import { LAST_DATE, redactText, shortened, usdText, visible } from "@sluice/core/runtime";
import { tailOf } from "../text/clean.ts";

const LONGEST_LINE = 240;

/** Untrusted text on one line: control characters are visible, line breaks are spaces, long text is cut. */
export function oneLine(text: string, longest = LONGEST_LINE): string {
  return visible(shortened(text, longest).replaceAll(/\s*\n\s*/g, " "));
}

/** An untrusted key on one line. Long keys keep their end, since most are paths that differ there. */
export function shortKey(key: string, longest: number): string {
  return key.length > longest ? `…${oneLine(tailOf(key, longest - 1))}` : oneLine(key);
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${grouped(number)} ${number === 1 ? one : many}`;
}

/** Tokens and cost. A cost of zero is omitted, an unknown cost is not. */
export function spending({ inputTokens, outputTokens, costUsd = 0, unpricedCalls, unmeteredCalls }: Usage): string {
  const parts = [`${grouped(inputTokens)} tokens in`, `${grouped(outputTokens)} out`];
  if (costUsd > 0) parts.push(usdText(costUsd));
  if (unpricedCalls !== undefined)
    parts.push(costUsd > 0 ? `${count(unpricedCalls, "call")} of unknown price` : "price unknown");
  if (unmeteredCalls !== undefined) parts.push(`${count(unmeteredCalls, "call")} of unknown usage`);
  return parts.join(", ");
}

/** Whether it is known that nothing was used. */
export function isNothing({ inputTokens, outputTokens, costUsd = 0, unpricedCalls, unmeteredCalls }: Usage): boolean {
  return [inputTokens, outputTokens, costUsd, unpricedCalls ?? 0, unmeteredCalls ?? 0].every((one) => one === 0);
}

/** An error as a run recorded it. A type alias, since it is also JSON. */
type RecordedError = {
  readonly code: string;
  readonly message: string;
  readonly at?: string;
};

/** An error that a run recorded, without secrets. */
export function shownError({ code, message, at }: RecordedError): RecordedError {
  return { code, message: redactText(message), ...(at === undefined ? {} : { at: redactText(at) }) };
}

/** An error's message, with its code unless the message implies it, and below it the place in the user's code if it has one. */
export function withCode({ code, message, at }: RecordedError): string {
  const text = IMPLIED_CODES.has(code) || message.includes(`(${code})`) ? message : `${message} (${code})`;
  return at === undefined ? text : `${text}\nat ${at}`;
}

const IMPLIED_CODES: ReadonlySet<string> = new Set(["cancelled", "usage"]);

export function milliseconds(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds >= DAYS * 86_400) return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`;
  if (seconds >= 3_600) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Days from which a duration is in days. */
const DAYS = 2;

/** A time in UTC, to the second. */
export function moment(epochMs: number): string {
  // A journal may hold any number.
  if (!Number.isFinite(epochMs) || Math.abs(epochMs) > LAST_DATE) return "an unknown time";
  return new Date(epochMs)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
}

export function indented(text: string, by = "  "): string {
  return text
    .split("\n")
    .map((line) => by + line)
    .join("\n");
}

/** `12,345`. The runtime's own format of a locale takes long to load. */
export function grouped(number: number): string {
  return String(number).replaceAll(/(?<!\.\d*)\B(?=(?:\d{3})+(?!\d))/g, ",");
}
