import { keysInVariables, SHORTEST_SECRET, urlPasswords } from "../../secrets/detect.ts";
import { looksRandom } from "../../secrets/key-names.ts";
import type { McpServerConfig, McpSettings } from "./config.ts";

/** Flags whose value is a key. */
const KEY_FLAG = /^--?[\w-]*(?:key|token|secret|password|auth)$/i;
/** Flags whose value is a variable with its value, and a header. */
const VARIABLE_FLAG = /^(?:-e|--env(?:ironment)?)$/;
const HEADER_FLAG = /^(?:-H|--headers?)$/;
/** Headers and parameters of a URL that contain only keys; in others only values that look like one count. */
const KEY_HEADER = /^(?:proxy-)?authorization$|cookie$|(?:^|[-_]|api|app|access|auth|subscription)key$|token$|secret$/i;

/** A variable that the server fills in. */
const REFERENCE = /^\$\{?\w+\}?$/;

/** A key with the name of its place. */
type Key = readonly [value: string, what: string];

/** The keys in the settings of servers, with a name for each; they are redacted everywhere. */
export function keysOf(settings: readonly McpSettings[]): ReadonlyMap<string, string> {
  const keys = new Map<string, string>();
  for (const { name, config } of settings) {
    for (const [value, what] of keysIn(config))
      if (value.length >= SHORTEST_SECRET && !REFERENCE.test(value) && !keys.has(value))
        keys.set(value, `${what} of ${name}`);
  }
  return keys;
}

function keysIn(config: McpServerConfig): readonly Key[] {
  if (!("url" in config)) return [...keysInVariables(config.env ?? {}), ...keysInArgs(config.args ?? [])];
  const headers = Object.entries(config.headers ?? {}).flatMap(([name, value]) => keysInHeader(name, value));
  return [...keysInQuery(new URL(config.url)), ...headers];
}

function keysInQuery({ searchParams }: URL): readonly Key[] {
  return [...searchParams].flatMap(([name, value]) =>
    KEY_HEADER.test(name) || looksRandom(value) ? [[value, name] as const] : [],
  );
}

function keysInHeader(name: string, value: string): readonly Key[] {
  const words = value.split(/[\s;,]+/).map((word) => word.replace(/^[\w-]+=(?=.)/, ""));
  const meant = words.filter((word) => looksRandom(word) || (KEY_HEADER.test(name) && !isScheme(word)));
  return meant.map((word) => [word, name] as const);
}

/** A flag has its value after `=` or as the next argument. */
function keysInArgs(args: readonly string[]): readonly Key[] {
  return args.flatMap((arg, at) => {
    const [, flag = args[at - 1] ?? "", value = arg] = /^(--?[\w-]+)=(.*)$/s.exec(arg) ?? [];
    const url = URL.parse(value);
    return [
      // A flag without a value is followed by the next flag.
      ...(KEY_FLAG.test(flag) && !(value === arg && value.startsWith("--")) ? [[value, flag] as const] : []),
      ...keysInPair(flag, value),
      ...urlPasswords(arg).map((password) => [password, "argument"] as const),
      ...(url === null ? [] : keysInQuery(url)),
    ];
  });
}

/** The keys in a variable or a header that an argument sets. */
function keysInPair(flag: string, value: string): readonly Key[] {
  const [, name = "", separator, rest = ""] = /^([\w-]+)(=|:\s*)(.*)$/s.exec(value) ?? [];
  if (separator === "=")
    return VARIABLE_FLAG.test(flag) || /^[A-Z][A-Z0-9_]*$/.test(name) ? keysInVariables({ [name]: rest }) : [];
  return separator !== undefined && HEADER_FLAG.test(flag) ? keysInHeader(name, rest) : [];
}

function isScheme(word: string): boolean {
  return /^(?:bearer|basic|token|digest|apikey)$/i.test(word);
}
