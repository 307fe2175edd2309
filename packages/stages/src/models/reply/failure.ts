import { isSluiceError, systemClock } from "@sluice/core";
import { isObject, messageOf, redactText, type SecretFilter, shortened, withoutExcerpt } from "@sluice/core/runtime";
import { maskedHead } from "../../secrets/cut-text.ts";
import { isHtml, pageText, shownAddress } from "./html-page.ts";
import { NO_SECRETS } from "./provider-values.ts";
import type { FailureKind, ModelFailure } from "./reply.ts";
import { resetInHeaders, saneDelay, saneWait, waitInWords } from "./reset-time.ts";

const LONGEST_MESSAGE = 500;
const MASK = "[redacted]";

/** Unknown keys that providers echo in error messages. */
const KEY_PATTERNS = [
  /\b(?:sk|pk|rk|xai|gsk)[-_][A-Za-z0-9_*-]{8,}/g,
  /\bAIza[A-Za-z0-9_-]{10,}/g,
  /\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{16,}/gi,
  // A value without a digit is an ordinary word.
  /\b(?:x-api-key|api[-_ ]?key|authorization)["']?\s*[:=]\s*["']?(?=[^\s"',;]*\d)[^\s"',;]{6,}/gi,
];

/** How providers report that a prompt is too long: by code, or in words with certain statuses. */
const OVERFLOW_CODES = new Set(["context_length_exceeded", "exceed_context_size_error", "request_too_large"]);
const OVERFLOW_WORDS = [
  /prompt is too long/i,
  /maximum context length/i,
  /context[ _]length[ _]exceeded/i,
  /exceeds? (?:the )?(?:available |maximum |model'?s? )*context/i,
  /input token count .*exceeds/i,
  /input is too long/i,
];
const OVERFLOW_STATUS = new Set([400, 413, 422]);

const NETWORK_CODE =
  /^(?:ECONN(?:RESET|REFUSED|ABORTED)|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$|^UND_ERR_/;
/** Codes of causes that are shown: of the network, and of TLS, which are named after what is wrong with a certificate. */
const CAUSE_CODE =
  /^(?:E[A-Z_]{4,}|UND_ERR_[A-Z_]+|ERR_(?:TLS|SSL)_[A-Z0-9_]+|CERT_[A-Z_]+|UNABLE_TO_[A-Z_]+|DEPTH_ZERO_[A-Z_]+|SELF_SIGNED_[A-Z_]+)$/;
const NETWORK_MESSAGES = new Set(["fetch failed", "failed to fetch", "terminated"]);

type Verdict = { readonly kind: FailureKind; readonly code: string };

/** Error types and codes that arrive without a status, in the middle of a stream. */
const BY_NAME: Readonly<Record<string, Verdict>> = {
  overloaded_error: { kind: "transient", code: "overloaded" },
  rate_limit_error: { kind: "transient", code: "rate_limited" },
  rate_limit_exceeded: { kind: "transient", code: "rate_limited" },
  api_error: { kind: "transient", code: "server_error" },
  server_error: { kind: "transient", code: "server_error" },
  internal_server_error: { kind: "transient", code: "server_error" },
  timeout_error: { kind: "transient", code: "timeout" },
  authentication_error: { kind: "permanent", code: "unauthorized" },
  invalid_api_key: { kind: "permanent", code: "unauthorized" },
  API_KEY_INVALID: { kind: "permanent", code: "unauthorized" },
  permission_error: { kind: "permanent", code: "forbidden" },
  not_found_error: { kind: "permanent", code: "not_found" },
  model_not_found: { kind: "permanent", code: "not_found" },
  billing_error: { kind: "permanent", code: "payment_required" },
  insufficient_quota: { kind: "permanent", code: "quota_exhausted" },
  usage_limit_reached: { kind: "permanent", code: "quota_exhausted" },
  invalid_request_error: { kind: "permanent", code: "bad_request" },
};

/** What an account lacks, which some providers report as a bad request, in words only. */
const BY_WORDS: readonly (readonly [words: RegExp, code: string])[] = [
  [/credit balance is too low|insufficient (?:credits?|balance|funds)/i, "payment_required"],
  [/reached your specified (?:API |workspace )?usage limits|exceeded your monthly (?:quota|spend)/i, "quota_exhausted"],
];
/** Statuses with which a provider refuses a whole account. */
const ACCOUNT_STATUS = new Set([400, 402, 403, 429]);

const GARBLED: Verdict = { kind: "transient", code: "invalid_response" };

/** Errors of the SDK: requests that cannot be made, and invalid responses, which a repeated call may avoid. */
const BY_SDK_NAME: Readonly<Record<string, Verdict>> = {
  AI_UnsupportedFunctionalityError: { kind: "permanent", code: "unsupported" },
  AI_InvalidPromptError: { kind: "permanent", code: "bad_request" },
  AI_InvalidArgumentError: { kind: "permanent", code: "bad_request" },
  AI_LoadAPIKeyError: { kind: "permanent", code: "missing_key" },
  AI_LoadSettingError: { kind: "permanent", code: "missing_setting" },
  AI_NoSuchModelError: { kind: "permanent", code: "not_found" },
  AI_InvalidResponseDataError: GARBLED,
  AI_JSONParseError: GARBLED,
  AI_TypeValidationError: GARBLED,
  AI_EmptyResponseBodyError: GARBLED,
  AI_NoContentGeneratedError: GARBLED,
};

const BY_STATUS: Readonly<Record<number, Verdict>> = {
  400: { kind: "permanent", code: "bad_request" },
  401: { kind: "permanent", code: "unauthorized" },
  402: { kind: "permanent", code: "payment_required" },
  403: { kind: "permanent", code: "forbidden" },
  404: { kind: "permanent", code: "not_found" },
  408: { kind: "transient", code: "timeout" },
  409: { kind: "transient", code: "conflict" },
  413: { kind: "context_overflow", code: "context_overflow" },
  422: { kind: "permanent", code: "bad_request" },
  429: { kind: "transient", code: "rate_limited" },
  503: { kind: "transient", code: "overloaded" },
  529: { kind: "transient", code: "overloaded" },
};

/** Timeouts below this code; the caller's own signal is checked before. */
const GIVEN_UP = new Set(["AbortError", "TimeoutError", "ResponseAborted"]);

export const ABORTED: ModelFailure = { kind: "aborted", code: "aborted", message: "the model call was stopped" };
/** What an answer is that a filter stopped before it made a call. */
export const FILTERED: ModelFailure = {
  kind: "permanent",
  code: "content_filter",
  message: "the provider's content filter stopped the model's reply",
};
export const CUT: ModelFailure = {
  kind: "cut_stream",
  code: "stream_cut",
  message: "the model's reply ended in the middle; the turn must be repeated",
};

/**
 * Classifies an error that a provider threw or streamed, by shape instead of class, because it may come from another copy of the
 * SDK. `opened` says whether the response had begun; `secrets` are masked in the message; `now` is in epoch milliseconds, for
 * responses without a date.
 */
export function failureOf(
  thrown: unknown,
  opened: boolean,
  secrets: SecretFilter = NO_SECRETS,
  now: number = systemClock.now(),
): ModelFailure {
  try {
    return readFailure(thrown, opened, secrets, now);
  } catch {
    return readFailure("the provider reported an error that cannot be read", opened, secrets, now);
  }
}

function readFailure(error: unknown, opened: boolean, secrets: SecretFilter, now: number): ModelFailure {
  const thrown = unwrapped(error);
  const facts = factsOf(thrown, now);
  const { kind, code } = verdict(facts, thrown, opened);
  const message = cleanMessage(facts.message, secrets);
  // The delay could equal a secret of digits.
  const shown = (ms: number | undefined): number | undefined => (secrets.json(ms ?? null) === ms ? ms : undefined);
  const isLimit = LIMITS.has(code);
  const retryAfterMs = shown(saneDelay(facts.retryAfterMs) ?? (isLimit ? facts.waitInWordsMs : undefined));
  const resetAfterMs = shown(isLimit ? facts.resetAfterMs : undefined);
  return {
    kind,
    code,
    message: facts.status === undefined ? message : `HTTP ${facts.status}: ${message}`,
    ...(facts.status === undefined ? {} : { status: facts.status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(resetAfterMs === undefined ? {} : { resetAfterMs }),
  };
}

/** The codes of refusals that end at a time. */
const LIMITS: ReadonlySet<string> = new Set(["rate_limited", "quota_exhausted", "overloaded"]);

interface Facts {
  readonly message: string;
  readonly status: number | undefined;
  readonly retryable: boolean | undefined;
  /** Error types and codes the provider gave, most specific first. */
  readonly names: readonly string[];
  readonly sdkName: string | undefined;
  /** Whether a quota of a day is used up. */
  readonly isDaily: boolean;
  readonly retryAfterMs: number | undefined;
  readonly waitInWordsMs: number | undefined;
  readonly resetAfterMs: number | undefined;
  /** The answer is an HTML page. */
  readonly isPage: boolean;
}

/**
 * What an error is about: the provider packages wrap what our own fetch refuses, and the gateway's errors give 500 to what has
 * no status and keep no headers, so that what was answered stands in their cause.
 */
function unwrapped(error: unknown): unknown {
  const refusal = causesOf(error).find((layer) => isSluiceError(layer));
  if (refusal !== undefined) return refusal;
  const outer = record(error);
  const cause = record(outer?.cause);
  return /^Gateway(?!Timeout)/.test(text(outer?.name) ?? "") && cause?.name === "AI_APICallError" ? cause : error;
}

function verdict(facts: Facts, thrown: unknown, opened: boolean): Verdict {
  if (isSluiceError(thrown)) {
    return { kind: thrown.class === "ProviderTransient" ? "transient" : "permanent", code: thrown.code };
  }
  const { status, retryable, names } = facts;
  const named = names.map((name) => own(BY_NAME, name)).find((found) => found !== undefined);
  if (overflows(facts)) return { kind: "context_overflow", code: "context_overflow" };
  // These names are more specific than the status: Google reports a wrong key as a bad request.
  if (named?.code === "quota_exhausted" || named?.code === "unauthorized") return named;
  if (facts.isDaily) return { kind: "permanent", code: "quota_exhausted" };
  if (status !== undefined && ACCOUNT_STATUS.has(status) && !facts.isPage) {
    const [, code] = BY_WORDS.find(([words]) => words.test(facts.message)) ?? [];
    if (code !== undefined) return { kind: "permanent", code };
  }
  if (status !== undefined) return byStatus(status, facts.isPage, retryable);
  if (named !== undefined) return named;
  const fromSdk = own(BY_SDK_NAME, facts.sdkName);
  if (fromSdk?.kind === "permanent") return fromSdk;
  if (/stream ended/i.test(facts.message)) return CUT;
  if (fromSdk !== undefined) return fromSdk;
  if (facts.sdkName !== undefined && GIVEN_UP.has(facts.sdkName))
    return opened ? CUT : { kind: "transient", code: "timeout" };
  if (isNetworkError(thrown)) return opened ? CUT : { kind: "transient", code: "network" };
  if (retryable !== undefined)
    return retryable
      ? { kind: "transient", code: opened ? "provider_error" : "network" }
      : { kind: "permanent", code: "provider_error" };
  // If the response had begun, the request was acceptable and worth repeating.
  return { kind: opened ? "transient" : "permanent", code: "provider_error" };
}

/** A page that a wait may replace has the code of its status; any other comes from something that is not the API. */
function byStatus(status: number, isPage: boolean, retryable = status >= 500): Verdict {
  if (isPage && BY_STATUS[status]?.kind !== "transient" && status < 500)
    return { kind: "permanent", code: "html_response" };
  const code = status >= 500 ? "server_error" : "provider_error";
  return BY_STATUS[status] ?? { kind: retryable ? "transient" : "permanent", code };
}

function overflows({ status, names, message }: Facts): boolean {
  if (names.some((name) => OVERFLOW_CODES.has(name))) return true;
  // Rate limits mention tokens too, so the words count only with a status that blames the request.
  return (status === undefined || OVERFLOW_STATUS.has(status)) && OVERFLOW_WORDS.some((words) => words.test(message));
}

function factsOf(thrown: unknown, now: number): Facts {
  const outer = record(thrown);
  const inner = bodyOf(outer);
  const layers = [inner, outer];
  const first = <T>(read: (layer: Readonly<Record<string, unknown>>) => T | undefined): T | undefined => {
    for (const layer of layers) {
      const found = layer === undefined ? undefined : read(layer);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const message = first((layer) => text(layer.message));
  const page = pageIn(outer);
  const details = detailsOf(layers);
  const isDaily = isDailyQuota(details);
  const headers = record(outer?.responseHeaders);
  const sent = Date.parse(text(headers?.date) ?? "");
  const at = Number.isFinite(sent) ? sent : now;
  return {
    message:
      page ??
      withCause(message, thrown) ??
      (typeof outer === "object" ? "the provider reported an error without a message" : messageOf(thrown)),
    status: first((layer) => status(layer.statusCode) ?? status(layer.status) ?? status(layer.code)),
    retryable: first((layer) => (typeof layer.isRetryable === "boolean" ? layer.isRetryable : undefined)),
    names: [...details.map((detail) => text(detail?.reason)), ...layers.flatMap(namesOf)].filter(
      (name) => name !== undefined,
    ),
    sdkName: text(outer?.name),
    isDaily,
    isPage: page !== undefined,
    // The delay beside a quota of a day does not end it.
    retryAfterMs: retryAfter(headers) ?? (isDaily ? undefined : retryDelay(details)),
    waitInWordsMs: message === undefined ? undefined : waitInWords(message, at),
    resetAfterMs: resetInHeaders(headers, at) ?? resetInBody(inner, at),
  };
}

/** Providers wrap errors as {error: {…}}; the SDK keeps the parsed body as `data`; errors in a stream are not wrapped. */
function bodyOf(outer: Readonly<Record<string, unknown>> | undefined): Readonly<Record<string, unknown>> | undefined {
  const data = record(outer?.data);
  return record(outer?.error) ?? record(data?.error) ?? data;
}

/** Google's errors list the reason, the quota and the retry delay as details. */
function detailsOf(
  layers: readonly (Readonly<Record<string, unknown>> | undefined)[],
): readonly (Readonly<Record<string, unknown>> | undefined)[] {
  return layers.flatMap((layer) => (Array.isArray(layer?.details) ? [layer.details.map(record)] : []))[0] ?? [];
}

/** Google names the quota that was exceeded. */
function isDailyQuota(details: readonly (Readonly<Record<string, unknown>> | undefined)[]): boolean {
  const violations = details.flatMap((detail) =>
    Array.isArray(detail?.violations) ? detail.violations.map(record) : [],
  );
  return violations.some((violation) => /PerDay/.test(text(violation?.quotaId) ?? ""));
}

/** `resets_in_seconds`, or `resets_at` in seconds since the epoch. */
function resetInBody(body: Readonly<Record<string, unknown>> | undefined, now: number): number | undefined {
  const [inSeconds, at] = [body?.resets_in_seconds, body?.resets_at];
  const wait = typeof inSeconds === "number" ? inSeconds * 1_000 : typeof at === "number" ? at * 1_000 - now : 0;
  return saneWait(wait);
}

/** What an answer is that is a page for browsers. */
function pageIn(outer: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const body = text(outer?.responseBody);
  if (!isHtml(text(record(outer?.responseHeaders)?.["content-type"]), body)) return undefined;
  return pageText(body ?? "", shownAddress(text(outer?.url) ?? ""));
}

/** The message of a network error, with the code of its cause, which says more: `ECONNREFUSED`, a fault of a certificate. */
function withCause(message: string | undefined, thrown: unknown): string | undefined {
  if (message === undefined) return undefined;
  const cause = causesOf(thrown).find(({ code }) => CAUSE_CODE.test(text(code) ?? ""));
  const code = text(cause?.code);
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}

function namesOf(layer: Readonly<Record<string, unknown>> | undefined): readonly (string | undefined)[] {
  return [text(layer?.code), text(layer?.type)];
}

/** A duration of Google's RPCs: `3s`, `0.5s`. */
function retryDelay(details: readonly (Readonly<Record<string, unknown>> | undefined)[]): number | undefined {
  const delay = details.map((detail) => text(detail?.retryDelay)).find((found) => found !== undefined);
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(delay ?? "")?.[1];
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1000);
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date, relative to the response's date. */
function retryAfter(headers: Readonly<Record<string, unknown>> | undefined): number | undefined {
  const milliseconds = Number.parseFloat(text(headers?.["retry-after-ms"]) ?? "");
  if (milliseconds >= 0) return Math.ceil(milliseconds);
  const value = text(headers?.["retry-after"])?.trim();
  if (value === undefined) return undefined;
  if (/^\d+(?:\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1000);
  const wait = Date.parse(value) - Date.parse(text(headers?.date) ?? "");
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

function isNetworkError(thrown: unknown): boolean {
  return causesOf(thrown).some(
    ({ code, message }) =>
      NETWORK_CODE.test(text(code) ?? "") || NETWORK_MESSAGES.has((text(message) ?? "").toLowerCase()),
  );
}

/** An error and its causes, at most five. */
function causesOf(error: unknown): readonly Readonly<Record<string, unknown>>[] {
  const layers: Readonly<Record<string, unknown>>[] = [];
  for (let layer = record(error); layer !== undefined && layers.length < 5; layer = record(layer.cause))
    layers.push(layer);
  return layers;
}

/** A provider's message on one line, without keys, with at most 500 characters. One that is cut is redacted before. */
export function cleanMessage(message: string, secrets: SecretFilter): string {
  let clean = secrets.text(withoutExcerpt(message));
  if (clean.length > LONGEST_MESSAGE) clean = maskedHead(clean, 8 * LONGEST_MESSAGE, { text: redactText });
  for (const pattern of KEY_PATTERNS) clean = clean.replaceAll(pattern, MASK);
  clean = clean
    .replaceAll(/\p{Cc}\[[0-9;]*[A-Za-z]/gu, " ")
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim();
  return shortened(clean, LONGEST_MESSAGE);
}

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return isObject(value) ? value : undefined;
}

/** Ignores Object.prototype, because the names are untrusted. */
function own<T>(table: Readonly<Record<string, T>>, name: string | undefined): T | undefined {
  return name !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function status(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isInteger(number) && number >= 400 && number <= 599 ? number : undefined;
}
