import type { SluiceEvent } from "@sluice/core";
import { visible, visibleJson } from "@sluice/core/runtime";
import { count, type EventLine, indented, spending, type Tone, textAt, withCode } from "@sluice/view/words";
import type { OutputFormat } from "./formats.ts";
import { write } from "./output.ts";
import type { RunReport } from "./run-report.ts";
import type { Terminal } from "./terminal.ts";

/** Writes an event of a run, in the formats that show events. */
export function writeEvent(format: OutputFormat, terminal: Terminal, event: SluiceEvent, line: EventLine): void {
  if (format === "stream-json") terminal.out(`${visibleJson({ ...event })}\n`);
  if (format === "text" && !line.isDetail) terminal.out(`${lineOf(line, terminal)}\n`);
}

export function writeReport(format: OutputFormat, terminal: Terminal, report: RunReport): void {
  write(format, terminal, { json: report, text: () => [resultText(report, terminal)] });
}

const WHO = 12;
const WHAT = 10;

function lineOf({ depth, who, what, more, tone }: EventLine, terminal: Terminal): string {
  const start = `${"  ".repeat(depth)}${who.padEnd(WHO)} `;
  return `${terminal.paint("out", "name", start)}${terminal.paint("out", tone, what.padEnd(WHAT))} ${more}`.trimEnd();
}

const TONES: ReadonlyMap<string, Tone> = new Map([
  ["completed", "good"],
  ["failed", "bad"],
  ["cancelled", "bad"],
  ["suspended", "notice"],
]);

export function toneOf(status: string): Tone {
  return TONES.get(status) ?? "plain";
}

function resultText({ runId, status, output, error, usage }: RunReport, terminal: Terminal): string {
  const { costUsd = 0, unpricedCalls = 0 } = usage;
  // The lines of the stages have the tokens.
  const cost = costUsd > 0 || unpricedCalls > 0 ? `  (${spending(usage)})` : "";
  const head = terminal.paint("out", toneOf(status), `${status}${runId === null ? "" : ` ${runId}`}`) + cost;
  if (error !== null) return `\n${head}\n${indented(visible(withCode(error)))}`;
  if (status !== "completed") return `\n${head}`;
  return `\n${head}\n${indented(typeof output === "string" ? visible(output) : visible(JSON.stringify(output, null, 2)))}`;
}

/** One line about the denied calls; empty if there are none. */
export function deniedLine({ denied }: RunReport): string {
  if (denied.length === 0) return "";
  const causes = new Map<string, number>();
  for (const call of denied) {
    const key = `${textAt(call, "tool")} (${textAt(call, "cause")})`;
    causes.set(key, (causes.get(key) ?? 0) + 1);
  }
  const each = [...causes].map(([key, times]) => (times === 1 ? key : `${times} ${key}`));
  return visible(`${count(denied.length, "call was", "calls were")} denied: ${each.join(", ")}`);
}
