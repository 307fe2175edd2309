import { REDACTION_MARKER } from "./secret-filter.ts";

/** What the name of a secret ends in; where a word has two parts, `-`, `_` or nothing lies between them. */
export const SECRET_WORDS: readonly string[] = [
  ...["password", "passwd", "passphrase", "secret", "token", "api-key", "access-key", "private-key"],
  ...["authorization", "cookie", "credential", "credentials"],
];

const SECRET_NAME = new RegExp(
  `^(?:.*[-_.])?(?:${SECRET_WORDS.map((word) => word.replace("-", "[-_]?")).join("|")}|clientsecret)$`,
  "i",
);

/** Where camel case begins another word. */
const NEXT_WORD = /(?<=[a-z0-9])(?=[A-Z])/g;

/** Whether a key, a variable, a header or a parameter holds a secret by what it is called. */
export function namesSecret(name: string): boolean {
  return SECRET_NAME.test(name) || SECRET_NAME.test(name.replaceAll(NEXT_WORD, "-"));
}

/** Well-known forms of secrets, which need no name beside them. */
export const SECRET_FORMS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ["private-key", /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g],
  ["api-key", /\bsk-[A-Za-z0-9_-]{16,}/g],
  ["github-token", /\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})/g],
  ["google-key", /\bAIza[A-Za-z0-9_-]{30,}/g],
  ["aws-key", /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g],
  ["slack-token", /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/g],
  ["npm-token", /\bnpm_[A-Za-z0-9]{30,}/g],
  // Only at the start of a run of such characters: elsewhere each of many starts would be tried to the end of the text.
  ["jwt", /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/g],
  ["bearer", /\b[Bb]earer\s+[A-Za-z0-9._~+/-]{16,}=*/g],
  ["url-password", /(?<=:\/\/[^\s:/@]{0,64}:)[^\s/@]{3,}(?=@)/g],
];

/** The end of a name that may be one of a secret; `namesSecret` decides. */
const END = "(?:password|passwd|passphrase|secret|token|key|authorization|cookie|credentials?)";
/** Ways in which a text gives a value a name: what stands before the value, with the name in it, and the value. */
const NAMED: readonly (readonly [way: string, source: string])[] = [
  // "name": "value", also in JSON that was written into JSON.
  [
    "json",
    String.raw`(?<before>(?<quote>\\{0,8}["'])(?<name>[\w.-]{0,48}${END})\k<quote>\s{0,8}:\s{0,8}\k<quote>)(?<value>(?:(?!\k<quote>)[^\r\n])+)`,
  ],
  // Name: value, as headers are written. Names of one word stand so in code and prose, too, but for these two.
  [
    "header",
    String.raw`(?<before>(?<![\w-])(?<name>authorization|cookie|[a-z][a-z0-9-]{0,40}-${END}):[ \t]{0,8})(?<value>[^\s"'${"`"}\\][^\r\n"'${"`"}\\]{7,})`,
  ],
  // ?name=value and &name=value
  ["query", String.raw`(?<before>[?&;](?<name>[\w.-]{0,48}${END})=)(?<value>[^\s&;#"'<>${"`"}\\]{4,})`],
  // --name=value and --name value
  [
    "flag",
    String.raw`(?<before>(?<![\w-])--(?<name>[a-z0-9-]{0,48}${END})(?:=|[ \t]{1,4})["']?)(?<value>[^\s"'${"`"}$<-][^\s"'${"`"}\\]{3,})`,
  ],
];
/** NAME=value and NAME: value, as in files of variables; what is taken from elsewhere is no secret. */
const VARIABLE =
  /(?<before>(?<![\w-])(?<name>[A-Z][A-Z0-9_]{0,63})\s?[=:]\s?["']?)(?<value>(?!process\.|import\.|os\.)[^\s"'`$<(\\](?:(?<=["'].)[^\r\n"'\\]{5,}|[^\s"'`\\]{5,}))/g;
/** Every way, and what finds it. */
export const SECRET_WAYS: readonly (readonly [way: string, pattern: RegExp])[] = [
  ...NAMED.map(([way, source]) => [way, new RegExp(source, "gi")] as const),
  ["variable", VARIABLE],
];

/** One test that is true whenever any pattern or name could match: most texts end here. */
const HINT =
  /PRIVATE KEY|sk-|gh[pousr]_|github_pat_|AIza|AKIA|ASIA|xox|npm_|eyJ|[Bb]earer|:\/\/|passw|passphrase|secret|token(?![a-z])|api[-_]?key|access[-_]?key|private[-_]?key|authorization|cookie|credential/i;

export function mayHoldSecret(text: string): boolean {
  return HINT.test(text);
}

/** Replaces what looks like a secret in a text that is shown or kept outside step values. */
export function redactText(text: string): string {
  if (!mayHoldSecret(text)) return text;
  let redacted = text;
  for (const [name, pattern] of SECRET_FORMS) redacted = redacted.replace(pattern, `${REDACTION_MARKER}${name}]`);
  for (const [, pattern] of SECRET_WAYS) redacted = redacted.replace(pattern, withoutValue);
  return redacted;
}

/** Gets what `replace` hands over: the groups by name come last. */
function withoutValue(found: string, ...rest: readonly unknown[]): string {
  const groups = rest.at(-1);
  if (!isGroups(groups)) return found;
  const { before = "", name = "", value = "" } = groups;
  if (!namesSecret(name) || value.startsWith(REDACTION_MARKER)) return found;
  return `${before}${REDACTION_MARKER}${name}]`;
}

function isGroups(value: unknown): value is Readonly<Record<string, string | undefined>> {
  return typeof value === "object" && value !== null;
}
