import { realpathSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { isJsonObject, type Json, parseJson } from "@sluice/core";
import { createSecretFilter, REDACTION_MARKER } from "@sluice/core/runtime";
import { secretForms } from "../../secrets/encodings.ts";
import type { TrafficScope } from "./traffic.ts";

/** The secrets that must not be in a cassette, and the paths and ids that differ between runs without meaning. */
export interface MaskContext extends Omit<TrafficScope, "clock" | "absent"> {
  readonly runId?: string | undefined;
}

export type Mask = ReturnType<typeof createMask>;

type Token = "workspace" | "home" | "tmp" | "run" | "literal";

const TOKEN_START = "{{sluice.";
const TOKEN = /\{\{sluice\.(workspace|home|tmp|run|literal)\}\}/g;
/** Shorter secrets occur in ordinary text. */
const SHORTEST_SECRET = 6;
/** Shorter prefixes of a secret reveal nothing and occur at the end of many texts. */
const SHORTEST_BEGUN = 4;
/** A match must be a whole path, not a part of a longer name. */
const PATH_END = String.raw`(?![\w-]|\.\w)`;
const PATH_START = String.raw`(?<![\w.-])`;

/** Replaces secrets, local paths and run ids in recorded texts. */
export function createMask(around: MaskContext) {
  const secrets = secretForms(new Map([...around.secrets].filter(([value]) => value.length >= SHORTEST_SECRET)));
  const locals = localValues(around);
  const tokens = new Map(locals.map(({ value, token }) => [value, `${TOKEN_START}${token}}}`]));
  const rules: readonly Rule[] = [
    {
      pattern: alternation([...secrets.keys()].map(literally)),
      with: (found) => `${REDACTION_MARKER}${secrets.get(found) ?? ""}]`,
    },
    { pattern: alternation(locals.map(({ pattern }) => pattern)), with: (found) => tokens.get(found) ?? found },
  ];
  const text = (raw: string): string => rules.reduce(replaced, raw);
  const holdsSecret = (raw: string): boolean => rules[0] !== undefined && replaced(raw, rules[0]) !== raw;
  const { begun } = createSecretFilter(secrets);
  return {
    text,
    /** Masks all texts of a value, including keys. */
    json: (value: Json): Json => mapTexts(value, text),
    /** Masks a text that was streamed in pieces; a match across several is replaced in the first of them. */
    pieces: (pieces: readonly string[]): readonly string[] => rules.reduce(replacedAcross, pieces),
    /** Masks the text of a JSON value, in which a secret may be escaped. */
    jsonText: (raw: string): string => {
      const masked = text(raw);
      if (!holdsSecret(unescaped(masked))) return masked;
      const parsed = parseJson(masked);
      return parsed.ok ? JSON.stringify(mapTexts(parsed.value, text)) : text(unescaped(masked));
    },
    holdsSecret: (raw: string): boolean => holdsSecret(raw) || holdsSecret(unescaped(raw)),
    /** How many characters at the end may be the beginning of a secret. */
    begunSecret: (raw: string): number => {
      const length = begun(raw);
      return length < SHORTEST_BEGUN ? 0 : length;
    },
  };
}

/** Replaces the tokens of `createMask` with this run's paths and id. */
export function createUnmask(around: Pick<MaskContext, "root" | "env" | "runId">): (text: string) => string {
  const here: Readonly<Record<string, string | undefined>> = {
    workspace: around.root,
    home: homeOf(around.env),
    tmp: realPath(temporaryOf(around.env)),
    run: around.runId,
    literal: TOKEN_START,
  };
  return (text) =>
    text.includes(TOKEN_START) ? text.replaceAll(TOKEN, (found, token: string) => here[token] ?? found) : text;
}

interface Rule {
  readonly pattern: RegExp | undefined;
  readonly with: (found: string) => string;
}

function replaced(text: string, rule: Rule): string {
  return rule.pattern === undefined ? text : text.replaceAll(rule.pattern, rule.with);
}

function replacedAcross(pieces: readonly string[], rule: Rule): readonly string[] {
  if (rule.pattern === undefined) return pieces;
  const found = [...pieces.join("").matchAll(rule.pattern)].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
    text: rule.with(match[0]),
  }));
  if (found.length === 0) return pieces;
  let start = 0;
  return pieces.map((piece) => {
    const end = start + piece.length;
    let result = "";
    let at = start;
    for (const match of found) {
      if (match.end <= start || match.start >= end) continue;
      result += piece.slice(at - start, Math.max(match.start, at) - start);
      if (match.start >= start) result += match.text;
      at = Math.min(match.end, end);
    }
    result += piece.slice(at - start);
    start = end;
    return result;
  });
}

/** Longest first: the workspace is usually inside the home or temporary folder. */
function localValues({ root, env, runId }: MaskContext) {
  const paths: (readonly [value: string, token: Token])[] = [
    [root, "workspace"],
    [homeOf(env), "home"],
    [temporaryOf(env), "tmp"],
    [realPath(temporaryOf(env)), "tmp"],
  ];
  const folders = paths
    .filter(([value]) => value.length > 1)
    .map(([value, token]) => ({
      value,
      token,
      pattern: `${token === "workspace" ? "" : PATH_START}${literally(value)}${PATH_END}`,
    }))
    .sort((a, b) => b.value.length - a.value.length);
  const run = runId === undefined ? [] : [{ value: runId, token: "run" as const, pattern: String.raw`\b${runId}\b` }];
  // A text that already contains a token must be restored unchanged.
  return [...folders, ...run, { value: TOKEN_START, token: "literal" as const, pattern: literally(TOKEN_START) }];
}

function homeOf(env: MaskContext["env"]): string {
  return trimmed(env.HOME ?? homedir());
}

function temporaryOf(env: MaskContext["env"]): string {
  return trimmed(env.TMPDIR ?? tmpdir());
}

function trimmed(path: string): string {
  return path.replace(/\/+$/, "");
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // the folder does not exist
  }
}

function alternation(patterns: readonly string[]): RegExp | undefined {
  return patterns.length === 0 ? undefined : new RegExp(patterns.join("|"), "g");
}

function literally(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
}

/** Resolves JSON escapes, whether or not the text is JSON. */
function unescaped(text: string): string {
  if (!text.includes("\\")) return text;
  return text
    .replaceAll(/\\u([0-9a-fA-F]{4})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/\\(["\\/])/g, "$1");
}

/** The value with `map` applied to all its texts, including keys. */
export function mapTexts(value: Json, map: (text: string) => string): Json {
  if (typeof value === "string") return map(value);
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map((item) => mapTexts(item, map));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [map(key), mapTexts(member, map)]));
}
