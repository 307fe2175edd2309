import type { SluiceEvent } from "@sluice/core";
import { visible, visibleJson } from "@sluice/core/runtime";
import { count, type EventLine, indented, spending, type Tone, withCode } from "@sluice/view/words";
import type { OutputFormat } from "./formats.ts";
import type { RunReport } from "./run-report.ts";
import type { Terminal } from "./terminal.ts";

/** Writes a run's events and its result in one format. */
export interface Reporter {
  event(event: SluiceEvent, line: EventLine): void;
  result(report: RunReport): void;
}

export function createReporter(format: OutputFormat, terminal: Terminal): Reporter {
  switch (format) {
    case "text":
      return textReporter(terminal);
    case "json":
      return { event: () => undefined, result: (report) => terminal.out(`${visibleJson(report, 2)}\n`) };
    case "stream-json":
      return {
        event: (event) => terminal.out(`${visibleJson({ ...event })}\n`),
        result: (report) => terminal.out(`${visibleJson({ type: "result", ...report })}\n`),
      };
  }
}

function textReporter(terminal: Terminal): Reporter {
  return {
    event: (_event, line) => {
      if (!line.isDetail) terminal.out(`${lineOf(line, terminal)}\n`);
    },
    result: (report) => terminal.out(`${resultText(report, terminal)}\n`),
  };
}

const WHO = 12;
const WHAT = 10;

function lineOf({ depth, who, what, more, tone }: EventLine, terminal: Terminal): string {
  const start = `${"  ".repeat(depth)}${who.padEnd(WHO)} `;
  return `${terminal.paint("out", "name", start)}${terminal.paint("out", tone, what.padEnd(WHAT))} ${more}`.trimEnd();
}

const TONES: Readonly<Record<RunReport["status"], Tone>> = {
  completed: "good",
  failed: "bad",
  cancelled: "bad",
  suspended: "notice",
};

function resultText({ runId, status, output, error, usage }: RunReport, terminal: Terminal): string {
  const { costUsd = 0, unpricedCalls = 0 } = usage;
  // The lines of the stages have the tokens.
  const cost = costUsd > 0 || unpricedCalls > 0 ? `  (${spending(usage)})` : "";
  const head = terminal.paint("out", TONES[status], `${status}${runId === null ? "" : ` ${runId}`}`) + cost;
  if (error !== null) return `\n${head}\n${indented(visible(withCode(error)))}`;
  if (status !== "completed") return `\n${head}`;
  return `\n${head}\n${indented(typeof output === "string" ? visible(output) : visible(JSON.stringify(output, null, 2)))}`;
}

/** One line about the denied calls; empty if there are none. */
export function deniedLine({ denied }: RunReport): string {
  if (denied.length === 0) return "";
  const causes = new Map<string, number>();
  for (const call of denied) {
    const { tool, cause } = Object.fromEntries(Object.entries(call ?? {}));
    const key = `${String(tool)} (${String(cause)})`;
    causes.set(key, (causes.get(key) ?? 0) + 1);
  }
  const each = [...causes].map(([key, times]) => (times === 1 ? key : `${times} ${key}`));
  return visible(`${count(denied.length, "call was", "calls were")} denied: ${each.join(", ")}`);
}
