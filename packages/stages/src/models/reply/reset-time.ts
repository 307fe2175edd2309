// When a provider's limit ends, as its headers and messages say it.

/** No limit of an account lasts longer; a later time is a mistake or a lie. */
const LONGEST_MS = 366 * 24 * 3_600_000;
/** Of a message that is searched. */
const LONGEST_TEXT = 2_000;

const UNIT_MS: Readonly<Record<string, number>> = {
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
};
const UNIT = "(?:ms|milliseconds?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)";
const DURATION = `\\d{1,9}(?:\\.\\d{1,12})? ?${UNIT}(?:(?:, | and | )?\\d{1,9}(?:\\.\\d{1,12})? ?${UNIT}){0,4}(?![a-z])`;
const DURATION_ONLY = new RegExp(`^${DURATION}$`, "i");
const IN_TEXT = new RegExp(
  `\\b(?:try again|retry|resets?|reset|wait|available(?: again)?)(?: (?:in|after|for))? (?:about )?(${DURATION})`,
  "i",
);
const AT_TEXT =
  /\b(?:try again|resets?|reset|access|available(?: again)?|until)(?: (?:at|on|after))? (\d{4}-\d\d-\d\d)(?:T| at | )(\d\d:\d\d(?::\d\d)?(?:\.\d+)?) ?(Z|UTC|GMT)/i;
const CLOCK_TEXT = /\b(?:try again|resets?|reset|until)(?: at)? (\d{1,2})(?::(\d\d))? ?(am|pm)? ?\(?(?:UTC|GMT)\b/i;

/** How long to wait by the words of a message, in milliseconds; times of day are in UTC. `now` is in epoch milliseconds. */
export function waitInWords(message: string, now: number): number | undefined {
  const text = message.slice(0, LONGEST_TEXT);
  const [, duration] = IN_TEXT.exec(text) ?? [];
  if (duration !== undefined) return saneWait(durationMs(duration));
  const [, day, time, zone] = AT_TEXT.exec(text) ?? [];
  if (day !== undefined && zone !== undefined) return saneWait(Date.parse(`${day}T${time}Z`) - now);
  const [, hour, minute = "0", half] = CLOCK_TEXT.exec(text) ?? [];
  return hour === undefined ? undefined : saneWait(untilTimeOfDay(Number(hour), Number(minute), half, now));
}

/**
 * How long the limits that are used up last by the headers of a response, in milliseconds. They say when a limit is whole again,
 * which may be long after a next call succeeds.
 */
export function resetInHeaders(
  headers: Readonly<Record<string, unknown>> | undefined,
  now: number,
): number | undefined {
  const waits = Object.entries(headers ?? {}).flatMap(([name, value]): readonly number[] => {
    const limit = RESET_HEADER.exec(name.toLowerCase());
    if (limit === null || typeof value !== "string") return [];
    const [, before = "", of = "", after = ""] = limit;
    const left = headers?.[after === "" ? `${before}remaining${of}` : `${before}${after}-remaining`];
    // One that is not used up did not refuse the call.
    if (left !== undefined && Number(left) !== 0) return [];
    const wait = saneWait(resetMs(value.trim(), now));
    return wait === undefined ? [] : [wait];
  });
  return waits.length === 0 ? undefined : Math.max(...waits);
}

/** `x-ratelimit-reset-requests`, `x-ratelimit-reset`, `anthropic-ratelimit-tokens-reset`. */
const RESET_HEADER = /^((?:x-)?ratelimit-|anthropic-ratelimit-)(?:reset(-[a-z_-]+)?|([a-z-]+)-reset)$/;

/** A duration, a date, or a number: of seconds, or since the epoch in seconds or milliseconds. */
function resetMs(value: string, now: number): number {
  if (DURATION_ONLY.test(value)) return durationMs(value);
  if (!/^\d+(?:\.\d+)?$/.test(value)) return Date.parse(value) - now;
  const number = Number(value);
  if (number >= 1e12) return number - now;
  return number >= 1e9 ? number * 1_000 - now : number * 1_000;
}

function durationMs(text: string): number {
  let sum = 0;
  for (const [, amount, unit = ""] of text.toLowerCase().matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/g)) {
    const short = unit === "ms" || unit.startsWith("milli") ? "ms" : unit.charAt(0);
    sum += Number(amount) * (UNIT_MS[short] ?? Number.NaN);
  }
  return sum;
}

function untilTimeOfDay(hour: number, minute: number, half: string | undefined, now: number): number {
  if (half !== undefined && (hour < 1 || hour > 12)) return Number.NaN;
  if (hour > 23 || minute > 59) return Number.NaN;
  const hours = half === undefined ? hour : (hour % 12) + (half.toLowerCase() === "pm" ? 12 : 0);
  const at = new Date(now).setUTCHours(hours, minute, 0, 0);
  return at > now ? at - now : at + 86_400_000 - now;
}

/** A wait that a limit may last; undefined for any other number. */
export function saneWait(ms: number): number | undefined {
  return ms > 0 && ms <= LONGEST_MS ? Math.ceil(ms) : undefined;
}

/** The same for a delay before the next call, which may be none. */
export function saneDelay(ms: number | undefined): number | undefined {
  return ms === 0 ? 0 : saneWait(ms ?? Number.NaN);
}
