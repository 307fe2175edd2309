import { type JsonObject, SluiceError } from "@sluice/core";
import { visibleJson } from "@sluice/core/runtime";
import type { OutputFormat } from "./formats.ts";
import type { Terminal } from "./terminal.ts";

/** The result of a subcommand that executes no run, in each format. */
export interface Answered {
  /** Lines for people, safe to print. */
  text(): readonly string[];
  readonly json: JsonObject;
  /** A list of the result that `stream-json` prints one line each, before the result without it. */
  readonly items?: { readonly key: string; readonly each: readonly JsonObject[] };
}

export function usageError(message: string, options?: ErrorOptions): SluiceError {
  return new SluiceError("Validation", "usage", message, options);
}

export function isThere(path: string): SluiceError {
  return usageError(`${path} exists; use --force to replace it`);
}

/** The first `most` names, and how many more there are. */
export function listed(names: readonly string[], most: number): string {
  const more = names.length > most ? ` and ${names.length - most} more` : "";
  return `${names.slice(0, most).join(", ")}${more}`;
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
