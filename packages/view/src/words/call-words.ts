import { field, isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { headOf, revealed } from "../text/clean.ts";
import type { Line, Style } from "../text/line.ts";
import type { CallState } from "./symbols.ts";

const LONGEST_WORD = 300;
const LONGEST_NAME = 80;

/** What a description of a call needs: a tool call of a transcript has it. */
interface CallFacts {
  readonly tool: string;
  readonly input: Json | undefined;
  readonly output?: Json;
  readonly state: CallState;
  readonly why?: string;
}

/** The argument that identifies a call. */
export function mainArgument({ tool, input }: Pick<CallFacts, "tool" | "input">): Line {
  const text = (key: string): string | undefined => {
    return textOf(field(input, key));
  };
  const shown = (value: string | undefined, style: Style = "code"): Line =>
    value === undefined ? [] : revealed(headOf(value, LONGEST_WORD), style);
  switch (tool) {
    case "Read":
    case "Edit":
    case "Write":
      return shown(text("file_path"));
    case "Bash":
      return shown(text("command"));
    case "Grep":
    case "Glob": {
      const path = text("path");
      return [...shown(text("pattern")), ...(path === undefined ? [] : [{ text: " in " }, ...shown(path)])];
    }
    // The state that a router or an orchestrator chose.
    case "select_state":
      return shown(text("state"), "plain");
    case "choose":
      return shown(textOf(field(field(input, "choice"), "to")), "plain");
    case "AskUser":
      return shown(text("question"), "plain");
    default:
      return isJsonObject(input) ? summary(input) : [];
  }
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function summary(input: JsonObject): Line {
  return Object.entries(input)
    .slice(0, 3)
    .flatMap(
      ([key, value], at): Line => [
        { text: at === 0 ? "" : ", " },
        ...revealed(`${headOf(key, LONGEST_NAME)}: `, "dim"),
        ...jsonWord(value),
      ],
    );
}

/** A value in a few words. */
function jsonWord(value: Json): Line {
  if (typeof value === "string") {
    const shown = headOf(value, LONGEST_NAME);
    if (shown === "") return [{ text: '""' }];
    return [...revealed(shown), ...(shown.length < value.length ? [{ text: "…", style: "dim" } as const] : [])];
  }
  if (typeof value !== "object" || value === null) return [{ text: String(value) }];
  const count = Object.keys(value).length;
  return [{ text: Array.isArray(value) ? `[${count}]` : `{${count}}`, style: "dim" }];
}

/** Why a call requires approval or failed: the gate's reason, or else the result that the model read. */
export function reasonOf({ state, why, output }: Pick<CallFacts, "state" | "why" | "output">): string {
  if (state === "ok" || state === "proposed" || state === "running") return "";
  if (why !== undefined && why !== "") return why;
  const words = [field(output, "code"), field(output, "message") ?? field(output, "reason")];
  return words.filter((word) => typeof word === "string").join(": ");
}
