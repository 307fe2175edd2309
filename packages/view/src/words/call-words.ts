import { field, isJsonObject, type JsonObject } from "@sluice/core";
import type { CallView } from "../projection/run-view.ts";
import { headOf, revealed } from "../text/clean.ts";
import { jsonWord } from "../text/json-rows.ts";
import type { Line, Style } from "../text/line.ts";

const LONGEST_WORD = 300;
const LONGEST_NAME = 80;

/** The state of a call as a sign and a word. */
export interface CallMark {
  readonly sign: string;
  readonly word: string;
  readonly style: Style;
}

export const CALL_MARKS: Readonly<Record<CallView["state"], CallMark>> = {
  proposed: { sign: "○", word: "proposed", style: "dim" },
  asking: { sign: "◆", word: "waiting for you", style: "notice" },
  running: { sign: "▶", word: "running", style: "accent" },
  ok: { sign: "✔", word: "done", style: "good" },
  error: { sign: "✖", word: "failed", style: "bad" },
  refused: { sign: "⊘", word: "refused", style: "bad" },
  abandoned: { sign: "⊘", word: "abandoned", style: "notice" },
  outcome_unknown: { sign: "✖", word: "outcome unknown", style: "bad" },
};

/** The argument that tells calls of a tool apart. */
export function mainArgument({ tool, input }: CallView): Line {
  const text = (key: string): string | undefined => {
    const value = field(input, key);
    return typeof value === "string" ? value : undefined;
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
    case "AskUser":
      return shown(text("question"), "plain");
    default:
      return isJsonObject(input) ? summary(input) : [];
  }
}

function summary(input: JsonObject): Line {
  return Object.entries(input)
    .slice(0, 3)
    .flatMap(
      ([key, value], at): Line => [
        { text: at === 0 ? "" : ", " },
        ...revealed(`${headOf(key, LONGEST_NAME)}: `, "dim"),
        ...jsonWord(value, LONGEST_NAME),
      ],
    );
}

/** Why a call requires approval or failed: the gate's reason, or else the model's result. */
export function reasonOf({ state, why, output }: CallView): string {
  if (state === "ok" || state === "proposed" || state === "running") return "";
  if (why !== undefined && why !== "") return why;
  const words = [field(output, "code"), field(output, "message") ?? field(output, "reason")];
  return words.filter((word) => typeof word === "string").join(": ");
}
