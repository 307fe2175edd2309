import { type JsonObject, SluiceError, visibleJson } from "@sluice/core";
import type { Terminal } from "./terminal.ts";

/** What a command that starts no run has to say, in each format. */
export interface Answered {
  /** Lines for people, safe to show. */
  text(): readonly string[];
  /** The whole result. */
  readonly json: JsonObject;
  /** What `stream-json` prints a line each, before the result; the result then goes without them. */
  readonly items?: { readonly key: string; readonly each: readonly JsonObject[] };
}

/** What a command says that writes a file where one is already. */
export function isThere(path: string): SluiceError {
  return new SluiceError("Validation", "usage", `${path} is there already; --force replaces it`);
}

export function write(format: OutputFormat, terminal: Terminal, { text, json, items }: Answered): void {
  switch (format) {
    case "text":
      for (const line of text()) terminal.out(`${line}\n`);
      return;
    case "json":
      terminal.out(`${visibleJson(items === undefined ? json : { ...json, [items.key]: items.each }, 2)}\n`);
      return;
    case "stream-json":
      for (const item of items?.each ?? []) terminal.out(`${visibleJson(item)}\n`);
      terminal.out(`${visibleJson({ type: "result", ...json })}\n`);
  }
}

/** How a command writes its result. */
export const OUTPUT_FORMATS = ["text", "json", "stream-json"] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** The format asked for, from raw arguments: also for those that could not be understood otherwise. */
export function formatIn(args: readonly string[]): OutputFormat {
  let format: OutputFormat = "text";
  for (const [at, word] of args.entries()) {
    if (word === "--") break;
    const given = word === "--output-format" ? args[at + 1] : /^--output-format=(.*)$/s.exec(word)?.[1];
    format = OUTPUT_FORMATS.find((known) => known === given) ?? format;
    if (word === "--json" && args[0] === "audit") format = "json";
  }
  return format;
}
