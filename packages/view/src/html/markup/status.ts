import { type ListItems, listStatus } from "../../projection/graph/stations.ts";
import type { RunView } from "../../projection/run-view.ts";
import { type ExecutionStatus, symbolOf } from "../../words/symbols.ts";
import { grouped } from "../../words/words.ts";
import { html, type Markup } from "./markup.ts";

export interface StatusMark {
  readonly sign: string;
  readonly word: string;
  /** A CSS class. */
  readonly tone: string;
}

/** The status of an execution; undefined for a state that was not entered. */
export function statusMark(status: ExecutionStatus | undefined): StatusMark {
  const { sign, word, style } = symbolOf(status);
  if (status === undefined) return { sign, word: "not reached", tone: "faint" };
  if (status === "waiting") return { sign, word: "waiting for an answer", tone: "notice" };
  return { sign, word, tone: style === "dim" ? "faint" : style };
}

/** The status of a list: a word would say of all items what is true of some. */
export function listMark(items: ListItems): StatusMark {
  const mark = statusMark(listStatus(items));
  return items.failed === 0 ? mark : { ...mark, word: `${grouped(items.failed)} failed` };
}

/** The status of an execution with its sign, in its colour. */
export function statusMarkup(status: ExecutionStatus): Markup {
  const { sign, word, tone } = statusMark(status);
  return html`<span class="${tone}">${sign} ${word}</span>`;
}

const RUN_MARKS: Readonly<Record<RunView["status"], StatusMark>> = {
  starting: { sign: "○", word: "not started", tone: "faint" },
  running: { sign: "▶", word: "still running", tone: "accent" },
  waiting: { sign: "◆", word: "waiting for an answer", tone: "notice" },
  sleeping: { sign: "☾", word: "asleep, wakes by itself", tone: "notice" },
  suspended: { sign: "◆", word: "suspended, can be resumed", tone: "notice" },
  completed: { sign: "✔", word: "completed", tone: "good" },
  failed: { sign: "✖", word: "failed", tone: "bad" },
  cancelled: { sign: "⊘", word: "cancelled", tone: "bad" },
};

export function runMark(status: RunView["status"]): StatusMark {
  return RUN_MARKS[status];
}
