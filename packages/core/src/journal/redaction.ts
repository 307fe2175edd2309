import { SluiceError } from "../base/errors.ts";
import { deepFreeze, isJsonObject, type Json, type JsonObject } from "../base/json.ts";

/** Replaces a secret. Tools refuse to write it into files. */
export const REDACTION_MARKER = "[redacted:";

const SYNTAX = /[\\^$.*+?()[\]{}|/-]/g;
/** Matches nothing. */
const NEVER = "(?!)";
/** Shorter values would match ordinary text. */
const SHORTEST = 6;

export interface SecretFilter {
  text(text: string): string;
  /** Returns the value itself if it holds no secret. */
  json(value: Json): Json;
  /** How many characters at the end of a text may begin a secret; a stream holds them back. */
  begun(text: string): number;
}

/** Replaces known secret values in texts, longest first; `secrets` maps each value to its name. */
export function createSecretFilter(secrets: ReadonlyMap<string, string>): SecretFilter {
  const known = [...secrets].filter(([value]) => value.length >= SHORTEST).sort((a, b) => b[0].length - a[0].length);
  // One combined test, since almost no text holds a secret.
  const any = new RegExp(known.map(([value]) => value.replaceAll(SYNTAX, String.raw`\$&`)).join("|") || NEVER);
  const shortest = known.at(-1)?.[0].length ?? 0;
  const clean = (text: string): string => {
    if (text.length < shortest || !any.test(text)) return text;
    let result = text;
    // A function, since `$&` in a replacement text would insert the value.
    for (const [value, name] of known) result = result.replaceAll(value, () => marked(name));
    return result;
  };
  // A secret of digits may appear as a number.
  const numbers = known.some(([value]) => /^[-+.\deE]+$/.test(value));
  // A number keeps about sixteen digits, so its text may differ from a longer secret.
  const long = new Map(known.flatMap(([value, name]) => (/^[1-9]\d{15,}$/.test(value) ? [[Number(value), name]] : [])));
  const cleanNumber = (value: number): Json => {
    const name = long.get(Math.abs(value));
    if (name !== undefined) return marked(name);
    const text = String(value);
    const masked = clean(text);
    return masked === text ? value : masked;
  };
  const cleaner: Cleaner = { text: clean, number: (value) => (numbers ? cleanNumber(value) : value) };
  const byStart = Map.groupBy(
    known.map(([value]) => value),
    (value) => value.charAt(0),
  );
  const longest = known[0]?.[0].length ?? 0;
  // Frozen, since kinds and tools get it, and what they return is masked by it.
  return Object.freeze<SecretFilter>({
    text: clean,
    json: (value) => (known.length > 0 && holdsAny(value, cleaner) ? cleanJson(value, cleaner) : value),
    begun: (text) => {
      for (let at = Math.max(0, text.length - longest + 1); at < text.length; at += 1) {
        const end = text.slice(at);
        const begins = (value: string): boolean => value.length > end.length && value.startsWith(end);
        if (byStart.get(end.charAt(0))?.some(begins) === true) return end.length;
      }
      return 0;
    },
  });
}

interface Cleaner {
  text(text: string): string;
  /** Returns the number itself if it holds no secret. */
  number(value: number): Json;
}

function marked(name: string): string {
  return `${REDACTION_MARKER}${name}]`;
}

/** Avoids copying values that hold no secret. */
function holdsAny(value: Json, cleaner: Cleaner): boolean {
  if (typeof value === "string") return cleaner.text(value) !== value;
  if (typeof value === "number") return cleaner.number(value) !== value;
  if (typeof value !== "object" || value === null) return false;
  if (!isJsonObject(value)) return value.some((member) => holdsAny(member, cleaner));
  for (const key in value) {
    const member = value[key];
    if (cleaner.text(key) !== key || (member !== undefined && holdsAny(member, cleaner))) return true;
  }
  return false;
}

function cleanJson(value: Json, cleaner: Cleaner): Json {
  if (typeof value === "string") return cleaner.text(value);
  if (typeof value === "number") return cleaner.number(value);
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map((member) => cleanJson(member, cleaner));
  const clean = ([key, member]: readonly [string, Json]) => [cleaner.text(key), cleanJson(member, cleaner)] as const;
  return Object.fromEntries(Object.entries(value).map(clean));
}

/** A copy of a value with known secrets replaced, for what user code returns or throws. */
export function maskSecrets<T extends Json>(value: T, secrets: SecretFilter): T {
  const clean = secrets.json(value);
  if (clean === value) return value;
  const own: T = JSON.parse(JSON.stringify(clean));
  return own;
}

/** Endings of names of secrets; the parts of a word may be joined by `-`, `_` or nothing. */
export const SECRET_WORDS: readonly string[] = [
  ...["password", "passwd", "passphrase", "secret", "token", "api-key", "access-key", "private-key", "secret-key"],
  ...["authorization", "cookie", "credential", "credentials"],
];

const SECRET_NAME = new RegExp(
  `^(?:.*[-_.])?(?:${SECRET_WORDS.map((word) => word.replace("-", "[-_]?")).join("|")}|clientsecret)$`,
  "i",
);

/** A word boundary in camel case, also behind an acronym: `dbPassword`, `DBPassword`. */
const NEXT_WORD = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g;

/** Whether the name of a key, variable, header or parameter suggests a secret. */
function namesSecret(name: string): boolean {
  return SECRET_NAME.test(name) || SECRET_NAME.test(name.replaceAll(NEXT_WORD, "-"));
}

/** A colour of a terminal or its end, also as escaped text. */
const COLOUR = String.raw`(?:\u001b|\\{1,8}(?:u001[bB]|x1[bB]|033|e))\[[\d;:]{0,20}[mK]`;
const COLOURS = `(?:${COLOUR}){0,4}`;
/** Behind a colour or an escaped character, whose letters and digits belong to no word: `\nghp_…`, `%20ghp_…`. */
const BEHIND = String.raw`(?<=${COLOUR}|\\(?:[bfnrtv]|u[\da-fA-F]{4}|x[\da-fA-F]{2}|[0-7]{1,3})|%[\da-fA-F]{2})`;
/** The start of a word, of one that may hold a dash, and of one that may hold a dot too. */
const [START, DASHED_START, DOTTED_START] = [String.raw`\b`, String.raw`(?<![\w-])`, String.raw`(?<![\w.-])`].map(
  (start) => `(?:${start}|${BEHIND})`,
);

/** Looks at what is before the first letters only behind them: doing that at every character takes several times as long. */
function form(first: string, rest: string, start = START): RegExp {
  return new RegExp(`${first}(?<=${start}${first})${rest}`, "g");
}

/** Well-known forms of secrets, which are recognized without a name. */
export const SECRET_FORMS: readonly (readonly [name: string, pattern: RegExp])[] = [
  [
    "private-key",
    /-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)/g,
  ],
  ["api-key", form("sk-", "[A-Za-z0-9_-]{16,}")],
  ["github-token", form("(?:gh[pousr]|github_pat)_", "[A-Za-z0-9_]{20,}")],
  ["google-key", form("AIza", "[A-Za-z0-9_-]{30,}")],
  ["aws-key", form("A[KS]IA", String.raw`[A-Z0-9]{16}\b`)],
  ["slack-token", form(String.raw`(?:xox[abeoprs]|xapp-\d)-`, "[A-Za-z0-9-]{10,}")],
  ["npm-token", form("npm_", "[A-Za-z0-9]{30,}")],
  ["stripe-key", form("[sr]k_live_", "[A-Za-z0-9]{16,}")],
  ["gitlab-token", form("glpat-", "[A-Za-z0-9_-]{20,}")],
  ["huggingface-token", form("hf_", "[A-Za-z0-9]{30,}")],
  // Anchored to the start of such a run, since trying every position would take quadratic time.
  ["jwt", form("eyJ", String.raw`[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`, DASHED_START)],
  ["bearer", form("[Bb]earer", String.raw`\s+[A-Za-z0-9._~+/-]{16,}=*`)],
  ["url-password", /(?<=:\/\/[^\s:/@]{0,64}:)[^\s/@]{3,}(?=@)/g],
];

/** The end of a name that may name a secret; `namesSecret` decides. */
const END = `(?:${SECRET_WORDS.map((word) => word.replace("-", "[-_]?")).join("|")})`;

/** The same of a variable, for which shorter words are usual too. */
const VARIABLE_END = `(?:${END.toUpperCase()}|_(?:PASS|PWD|PAT))`;
/** Of a variable, letters may stand right before the word: `PGPASSWORD`. */
const VARIABLE_NAME = /(?:PASSWORD|_PASS|_PWD|_PAT)$/;

/** A quote and the backslashes before it: none, one in a string, three in a string inside a string. */
const QUOTE = String.raw`(?<quote>(?<slashes>\\{0,8})["'])`;
/** In a value: an escaped quote or backslash, and the ways in which a shell writes `'` between single quotes. */
const ESCAPED = String.raw`\k<slashes>\\\k<slashes>[\\"']|\\{1,8}'|'\\{1,8}''|'\\{0,8}"'\\{0,8}"'`;
/** A character of a value in quotes, which ends with its line if they are not closed. */
const QUOTED = String.raw`(?:${ESCAPED}|(?!\k<quote>)[^\r\n])`;
/** Like `QUOTED`, for values that may stand in a text with escaped ends of lines. */
const QUOTED_WORD = String.raw`(?:${ESCAPED}|(?!\k<quote>|\\{1,8}[nr])[^\r\n])`;
/**
 * A character of a value without quotes. Blanks may be escaped, and a quote inside a word is part of it, as is a backslash before a
 * letter that ends no line in an escaped text.
 */
const BARE = String.raw`(?:[^\s"'${"`"}\\]|\\{1,8}(?: |[^\w\s"'${"`"}\\]|[ac-dg-mo-qsw-z](?=\w))|(?<=\w)["'](?=\w))`;
/** Behind a quote: code after its end, as in `"--token=" + token`; a reference in double quotes; a placeholder. */
const NO_VALUE = [
  String.raw`[,;:)\]}+]{0,3}(?:\s|$|\\{0,8}["'])`,
  String.raw`(?<=")(?:[$${"`"}]|<[^<>"\r\n]{1,60}>\\{0,8}")`,
  String.raw`\{[\w.$:!]{0,60}\}`,
  String.raw`%(?:\(|[sdv](?!\w))`,
].join("|");
/** A value in quotes or without, of at least as many characters. `not` is how one without quotes does not begin. */
function namedValue(least: number, leastBare: number, not: string): string {
  return `(?:${QUOTE}(?!${NO_VALUE})(?<quoted>${QUOTED}{${least},})|(?!${COLOURS}(?:${not}))(?<bare>${BARE}{${leastBare},}))`;
}
/** What is clearly a call, behind a blank as code has it: `config("API_KEY")`, `z.string().min(1)`. */
const CALL = String.raw`(?<=\s)[A-Za-z_$][\w$]{0,40}(?:\.[A-Za-z_$][\w$]{0,40}){0,6}\((?:\\{0,8}["'${"`"}]|\)(?:[.,;)\s]|$))`;
/** At least four words without a digit behind a name that prose uses too. Passwords may be several words; these are not. */
function prose(end: string): string {
  return [
    String.raw`(?<=(?:authorization|cookie|token):[ \t]{1,8})(?!(?:basic|bearer|digest|token)\b)`,
    String.raw`[a-z]{1,14}(?: [a-z]{1,14}[,.;]?){3,60}[ \t]{0,8}(?:${end}|$|[\r\n]|\\{1,8}[nr])`,
  ].join("");
}
/** Around the sign between a name and its value. */
const GAP = String.raw`(?:(?:[ \t]|${COLOUR}){0,8}|\s)`;
/** The same on one line. */
const BLANKS = String.raw`(?:[ \t]|${COLOUR}){0,8}`;
/** A name up to its end, and as short as its start allows: that may stand inside it, behind an escaped character. */
const NAME = `(?<name>(?:\\w[\\w.-]{0,64}?)??${END})`;

/**
 * Notations for a named value in a text. Each captures the name and the value, which is the end of what is found. A name that begins
 * without a mark is read backwards from its end: reading every word as a name takes four times as long.
 */
export const SECRET_PATTERNS: readonly (readonly [way: string, pattern: RegExp])[] = [
  // "name": "value", also in JSON inside a JSON string.
  notation("json", [
    String.raw`${QUOTE}(?<name>[\w.-]{0,48}${END})\k<quote>`,
    String.raw`(?:\s|${COLOUR}){0,8}:(?:\s|${COLOUR}){0,8}\k<quote>(?<quoted>${QUOTED}+)`,
  ]),
  // "name=value", "--name=value" and "-Dname=value": a word in quotes. Also a header, which may hold other quotes.
  notation("word", [
    String.raw`${QUOTE}(?:--|-[A-Z])?(?<name>[\w.-]{0,48}${END})`,
    String.raw`(?:=|(?<=["'](?:authorization|cookie|[a-z][a-z0-9]{0,40}-[a-z0-9-]{1,60})):[ \t]{0,8})`,
    `(?!${NO_VALUE}|${prose(String.raw`\k<quote>`)})(?<quoted>${QUOTED_WORD}{4,})`,
  ]),
  // Name: value, as in headers. Only these two one-word names, since code and prose use the same notation.
  notation("header", [
    `${END}${COLOURS}:(?<=${DASHED_START}(?<name>authorization|cookie|[a-z](?=[a-z0-9]{0,40}-)[a-z0-9-]{0,64}?)${COLOURS}:)`,
    String.raw`${BLANKS}(?!${prose(`["'${"`"}]`)})(?<bare>[^\s"'${"`"}\\][^\r\n"'${"`"}\\]{7,})`,
  ]),
  // ?name=value and &name=value
  notation("query", [String.raw`[?&;](?<name>[\w.-]{0,48}${END})=(?<bare>[^\s&;#"'<>${"`"}\\]{4,})`]),
  // --name=value and --name value
  notation("flag", [
    String.raw`--(?<=${DASHED_START}--)(?<name>[\w.-]{0,48}${END})${COLOURS}(?:=|[ \t]{1,4})${COLOURS}`,
    namedValue(1, 4, "[$<-]"),
  ]),
  // NAME=value and NAME: value, as in .env files. A reference to another variable is not a secret.
  notation(
    "variable",
    [
      `${VARIABLE_END}${GAP}(?<sign>[=:])(?<=${DASHED_START}(?<name>[A-Z0-9_]{0,64}?${VARIABLE_END})${GAP}[=:])${GAP}`,
      namedValue(6, 6, String.raw`\\{0,8}[$<(]|process\.|import\.|os\.|${CALL}`),
    ],
    "g",
  ),
  // name=value, as in settings files. Code is written like this too, so `isCode` decides about a value without quotes.
  notation("setting", [
    `${END}(?<blank>${BLANKS})=(?<=${DOTTED_START}(?:-[A-Z])?${NAME}${BLANKS}=)${BLANKS}`,
    namedValue(6, 6, String.raw`\\{0,8}[$<({[=>]`),
  ]),
];

function notation(way: string, sources: readonly string[], flags = "gi"): readonly [way: string, pattern: RegExp] {
  return [way, new RegExp(sources.join(""), flags)];
}

/** Whether any pattern or name could match, since most texts hold no secret. One test of both in any case takes twice as long. */
function mayHoldSecret(text: string): boolean {
  return EXACT_HINT.test(text) || ANY_CASE_HINT.test(text);
}

const EXACT_HINT =
  /PRIVATE KEY|sk-|gh[pousr]_|github_pat_|AIza|AKIA|ASIA|xox|xapp-|npm_|[sr]k_live_|glpat-|hf_|eyJ|:\/\/|_(?:PASS|PWD|PAT)(?![A-Z])/;
const ANY_CASE_HINT =
  /bearer|passw|passphrase|(?:secret|token)(?![a-z])|(?:api|access|private|secret)[-_]?key|authorization|cookie|credential/i;

const COLOUR_IN_VALUE = new RegExp(COLOUR, "g");

/** Replaces what looks like a secret in a text that is shown or recorded outside step values. */
export function redactText(text: string): string {
  if (!mayHoldSecret(text)) return text;
  let redacted = text;
  for (const [name, pattern] of SECRET_FORMS) redacted = redacted.replace(pattern, `${REDACTION_MARKER}${name}]`);
  for (const [, pattern] of SECRET_PATTERNS) redacted = redacted.replace(pattern, withoutValue);
  return redacted;
}

/** The arguments of a `replace` callback; named groups come last. */
function withoutValue(found: string, ...rest: readonly unknown[]): string {
  const groups = rest.at(-1);
  if (!isGroups(groups)) return found;
  const { name = "", quoted, bare = "", blank, sign } = groups;
  const value = quoted ?? bare;
  const isNamed = namesSecret(name) || (sign !== undefined && VARIABLE_NAME.test(name));
  if (!isNamed || value.startsWith(REDACTION_MARKER)) return found;
  if (quoted === undefined && blank !== undefined && isCode(bare.replaceAll(COLOUR_IN_VALUE, ""), /\s/.test(blank)))
    return found;
  return `${found.slice(0, -value.length)}${REDACTION_MARKER}${name}]`;
}

/** A name or a path to a member, which code uses as a value. */
const PATH = String.raw`^[&*!@]{0,2}[A-Za-z_$][\w$]*(?<member>(?:\??\.|->|::)[A-Za-z_$#][\w$]*)*`;
const ONLY_PATH = new RegExp(`${PATH};?$`);
/** A call or an index, and a name that ends an argument, a list or a block. */
const USED_PATH = new RegExp(String.raw`${PATH}(?:[!?]?[([<]|[,)\]}]+[;:]?$)`);

/** Whether a value without quotes reads as code: a call, a member, and between blanks also a number or a name that is no key. */
function isCode(value: string, hasBlanks: boolean): boolean {
  const path = ONLY_PATH.exec(value);
  if (path?.groups?.member !== undefined || USED_PATH.test(value)) return true;
  if (!hasBlanks) return false;
  if (path === null) return /^[\d_.]+[,;]?$/.test(value);
  return value.endsWith(";") || value.length < SHORTEST_KEY || !/\d/.test(value);
}

const SHORTEST_KEY = 8;

function isGroups(value: unknown): value is Readonly<Record<string, string | undefined>> {
  return typeof value === "object" && value !== null;
}

/** The redacted text of data that many events share. Kept beside the data: what an object carries, a program could copy to another. */
const SHARED_TEXTS = new WeakMap<JsonObject, string>();

/** Data that many events share, whose redacted text is made once. A copy of it is ordinary data. */
export function sharedData(data: JsonObject): JsonObject {
  const shared = deepFreeze({ ...data });
  SHARED_TEXTS.set(shared, redactedJson(shared));
  return shared;
}

/** What data with a shared beginning consists of. */
interface ExtendedData {
  readonly shared: JsonObject;
  readonly own: JsonObject;
}
/** Kept beside the data for the same reason. */
const EXTENDED = new WeakMap<JsonObject, ExtendedData>();

/** Shared data with members of its own, whose text alone is made for each event. A copy of it is ordinary data. */
export function extendedData(shared: JsonObject, own: JsonObject): JsonObject {
  const data = { ...shared, ...own };
  EXTENDED.set(data, { shared, own });
  return data;
}

/** The JSON text of an event's data, redacted. Throws Validation `not_json` for data whose text is no object. */
export function redactedJson(data: JsonObject): string {
  return redactedParts(data).join("");
}

/** The same as what other events share of it, which is empty for most data, and the rest. */
export function redactedParts(data: JsonObject): readonly [shared: string, rest: string] {
  const shared = SHARED_TEXTS.get(data);
  if (shared !== undefined) return ["", shared];
  const extended = EXTENDED.get(data);
  if (extended !== undefined) return extendedParts(extended);
  const text: string | undefined = JSON.stringify(data);
  // Whatever a toJSON made of it, no reader of the journal could read the record.
  if (text?.startsWith("{") !== true)
    throw new SluiceError(
      "Validation",
      "not_json",
      "the data of an event is no object; give it an object of JSON values",
    );
  if (!mayHoldSecret(text)) return ["", text];
  // The text and not the data, which a toJSON could change from one reading to the next.
  const own: JsonObject = JSON.parse(text);
  return ["", JSON.stringify(redactObject(own))];
}

function extendedParts({ shared, own }: ExtendedData): readonly [shared: string, rest: string] {
  const texts = [redactedJson(shared), redactedJson(own)] as const;
  // A text must not hold a name twice.
  const isOne = texts.includes("{}") || Object.keys(own).some((name) => Object.hasOwn(shared, name));
  return isOne ? redactedParts({ ...shared, ...own }) : [texts[0].slice(0, -1), `,${texts[1].slice(1)}`];
}

/** How many characters of a key's name the marker keeps. */
const LONGEST_NAME = 40;

/** Replaces what looks like a secret in a value, by its key's name or by its form. Returns the value itself if it holds none. */
export function redactJson(value: Json): Json {
  const text = JSON.stringify(value);
  if (!mayHoldSecret(text)) return value;
  const own: Json = JSON.parse(text);
  return redactAny(own);
}

function redactAny(value: Json): Json {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  return isJsonObject(value) ? redactObject(value) : redactList(value);
}

/** A flag of a command whose words are a list. A letter or lower-case words behind dashes begin the next flag, and are no value of it. */
const [FLAG, OTHER_FLAG] = [/^--?([\w.-]{1,64})$/, /^(?:-[A-Za-z]|--[a-z]+(?:-[a-z]+)*)$/];

/** The words of a command may be a list: `["login", "--password", "value"]`. */
function redactList(list: readonly Json[]): readonly Json[] {
  return list.map((member, at) => {
    if (typeof member !== "string" || member === "") return redactAny(member);
    const before = list[at - 1];
    const [, name = ""] = (typeof before === "string" && FLAG.exec(before)) || [];
    return namesSecret(name) && !OTHER_FLAG.test(member) ? hiddenBy(name) : redactText(member);
  });
}

function hiddenBy(name: string): string {
  return marked(redactText(name).slice(0, LONGEST_NAME));
}

function redactObject(value: JsonObject): JsonObject {
  const entries: [string, Json][] = [];
  for (const [key, member] of Object.entries(value)) {
    const hidden =
      namesSecret(key) && (typeof member === "string" ? member !== "" : typeof member === "object" && member !== null);
    entries.push([redactText(key), hidden ? hiddenBy(key) : redactAny(member)]);
  }
  return Object.fromEntries(entries);
}
