import { keysInVariables, SHORTEST_SECRET, urlPasswords } from "../../secrets/detect.ts";
import { looksRandom } from "../../secrets/key-names.ts";
import type { McpServerConfig, McpSettings } from "./config.ts";

/** Flags whose value is a key. */
const KEY_FLAG = /^--?[\w-]*(?:key|token|secret|password|auth)$/i;
/** Headers that contain only keys; in others only values that look like one count. */
const KEY_HEADER = /^(?:proxy-)?authorization$|cookie$|key$|token$|secret$/i;

/** The keys in the settings of servers, with a name for each; they are redacted everywhere. */
export function keysOf(settings: readonly McpSettings[]): ReadonlyMap<string, string> {
  const keys = new Map<string, string>();
  for (const { name, config } of settings) {
    for (const [value, what] of keysIn(config))
      if (value.length >= SHORTEST_SECRET && !keys.has(value)) keys.set(value, `${what} of ${name}`);
  }
  return keys;
}

function keysIn(config: McpServerConfig): readonly (readonly [value: string, what: string])[] {
  if ("url" in config) {
    const query = [...new URL(config.url).searchParams].filter(([, value]) => looksRandom(value));
    const headers = Object.entries(config.headers ?? {}).flatMap(([name, value]) => {
      const words = value.split(/[\s;,]+/).map((word) => word.replace(/^[\w-]+=(?=.)/, ""));
      const meant = words.filter((word) => looksRandom(word) || (KEY_HEADER.test(name) && !isScheme(word)));
      return meant.map((word) => [word, name] as const);
    });
    return [...query.map(([name, value]) => [value, name] as const), ...headers];
  }
  return [...keysInVariables(config.env ?? {}), ...keysInArgs(config.args ?? [])];
}

function keysInArgs(args: readonly string[]): readonly (readonly [value: string, what: string])[] {
  return args.flatMap((arg, at) => {
    const [flag = "", ...rest] = arg.split("=");
    if (rest.length > 0) return KEY_FLAG.test(flag) ? [[rest.join("="), flag] as const] : [];
    const before = args[at - 1] ?? "";
    const passwords = urlPasswords(arg).map((password) => [password, "argument"] as const);
    return KEY_FLAG.test(before) ? [[arg, before] as const, ...passwords] : passwords;
  });
}

function isScheme(word: string): boolean {
  return /^(?:bearer|basic|token|digest|apikey)$/i.test(word);
}
