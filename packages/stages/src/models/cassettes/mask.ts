import { realpathSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { isJsonObject, type Json, parseJson, REDACTION_MARKER } from "@sluice/core";
import { begunSecret } from "../../secrets/detect.ts";
import { secretForms } from "../../secrets/encodings.ts";
import type { TrafficScope } from "./traffic.ts";

/** What differs from one run to the next without meaning anything, and what must never be in a file. */
export interface MaskContext extends Omit<TrafficScope, "clock"> {
  /** The id of the run, where it is known. */
  readonly runId?: string | undefined;
}

/** Takes secrets and places out of what is written. */
export interface Mask {
  text(text: string): string;
  /** Every text of a value, keys included. */
  json(value: Json): Json;
  /** A text that came in pieces: what lies across several is replaced in the piece where it begins. */
  pieces(pieces: readonly string[]): readonly string[];
  /** The text of a JSON value, in which a secret may stand with escapes. */
  jsonText(text: string): string;
  holdsSecret(text: string): boolean;
  /** How many characters at the end may be the beginning of a secret. */
  begunSecret(text: string): number;
}

type Place = "workspace" | "home" | "tmp" | "run" | "literal";

const TOKEN_START = "{{sluice.";
const TOKEN = /\{\{sluice\.(workspace|home|tmp|run|literal)\}\}/g;
/** Shorter secrets would be found in ordinary text; the session looks for none of them either. */
const SHORTEST_SECRET = 6;
/** A path that goes on with a letter is another path; so is one that begins earlier. */
const PATH_END = String.raw`(?![\w-]|\.\w)`;
const PATH_START = String.raw`(?<![\w.-])`;

export function createMask(around: MaskContext): Mask {
  const secrets = secretForms(new Map([...around.secrets].filter(([value]) => value.length >= SHORTEST_SECRET)));
  const places = placesOf(around);
  const tokens = new Map(places.map(({ value, place }) => [value, `${TOKEN_START}${place}}}`]));
  const rules: readonly Rule[] = [
    {
      pattern: alternation([...secrets.keys()].map(literally)),
      with: (found) => `${REDACTION_MARKER}${secrets.get(found) ?? ""}]`,
    },
    { pattern: alternation(places.map(({ pattern }) => pattern)), with: (found) => tokens.get(found) ?? found },
  ];
  const text = (raw: string): string => rules.reduce(replaced, raw);
  const holdsSecret = (raw: string): boolean => rules[0] !== undefined && replaced(raw, rules[0]) !== raw;
  return {
    text,
    json: (value) => mapTexts(value, text),
    pieces: (pieces) => rules.reduce(replacedAcross, pieces),
    jsonText: (raw) => {
      const masked = text(raw);
      if (!holdsSecret(unescaped(masked))) return masked;
      const parsed = parseJson(masked);
      return parsed.ok ? JSON.stringify(mapTexts(parsed.value, text)) : text(unescaped(masked));
    },
    holdsSecret: (raw) => holdsSecret(raw) || holdsSecret(unescaped(raw)),
    begunSecret: (raw) => Math.max(0, ...[...secrets.keys()].map((secret) => begunSecret(raw, secret))),
  };
}

/** Puts the places of this run where `createMask` took those of another one out. */
export function createUnmask(around: Pick<MaskContext, "root" | "env" | "runId">): (text: string) => string {
  const here: Readonly<Record<string, string | undefined>> = {
    workspace: around.root,
    home: homeOf(around.env),
    tmp: realPath(temporaryOf(around.env)),
    run: around.runId,
    literal: TOKEN_START,
  };
  return (text) =>
    text.includes(TOKEN_START) ? text.replaceAll(TOKEN, (found, place: string) => here[place] ?? found) : text;
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

/** Longest first: the workspace lies in the home folder or in the temporary one as a rule. */
function placesOf({ root, env, runId }: MaskContext) {
  const paths: (readonly [value: string, place: Place])[] = [
    [root, "workspace"],
    [homeOf(env), "home"],
    [temporaryOf(env), "tmp"],
    [realPath(temporaryOf(env)), "tmp"],
  ];
  const places = paths
    .filter(([value]) => value.length > 1)
    .map(([value, place]) => ({
      value,
      place,
      pattern: `${place === "workspace" ? "" : PATH_START}${literally(value)}${PATH_END}`,
    }))
    .sort((a, b) => b.value.length - a.value.length);
  const run = runId === undefined ? [] : [{ value: runId, place: "run" as const, pattern: String.raw`\b${runId}\b` }];
  // A text that holds such a token already must come back as it was.
  return [...places, ...run, { value: TOKEN_START, place: "literal" as const, pattern: literally(TOKEN_START) }];
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
    return path; // a folder that is not there has no other name
  }
}

function alternation(patterns: readonly string[]): RegExp | undefined {
  return patterns.length === 0 ? undefined : new RegExp(patterns.join("|"), "g");
}

function literally(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
}

/** What the escapes of a JSON text stand for, whether or not the text is JSON. */
function unescaped(text: string): string {
  if (!text.includes("\\")) return text;
  return text
    .replaceAll(/\\u([0-9a-fA-F]{4})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/\\(["\\/])/g, "$1");
}

function mapTexts(value: Json, map: (text: string) => string): Json {
  if (typeof value === "string") return map(value);
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map((item) => mapTexts(item, map));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [map(key), mapTexts(member, map)]));
}
