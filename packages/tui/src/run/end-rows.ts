import { type RunEndItem, type RunView, span, stateLabel, symbolOf } from "@sluice/view";
import { cleanInline, cut, fold, headOf, type Line, type Style } from "@sluice/view/text";
import { withCode } from "@sluice/view/words";
import { textBlock } from "./text-block.ts";

/** UTF-16 units of an output or an error that are laid out. */
const MAX_END = 20_000;

/** How a run ended, for its last execution; undefined for others, and while the run has not ended. */
export function endBelow(
  { status, output, error, executions, endState, lastWord }: RunView,
  key: string,
): RunEndItem | undefined {
  if (executions.at(-1)?.key !== key) return undefined;
  if (status !== "completed" && status !== "failed" && status !== "cancelled") return undefined;
  return {
    kind: "end",
    status,
    ...(endState === undefined ? {} : { state: endState }),
    ...(output === undefined ? {} : { output }),
    ...(error === undefined ? {} : { error }),
    ...(lastWord === undefined ? {} : { lastWord }),
  };
}

export interface EndRoom {
  /** Maximum rows of each text. */
  readonly most: number;
  /** Where to see the rest. */
  readonly rest: string;
}

/** How a run ended and what it returned. */
export function endLines(item: RunEndItem, width: number, room: EndRoom): readonly Line[] {
  const { status, state, output, error, lastWord } = item;
  const { sign, style } = symbolOf(status);
  const lines: Line[] = [
    [],
    [span(`${sign} run ${status}${state === undefined ? "" : ` in ${stateLabel(state)}`}`, style)],
  ];
  if (error !== undefined) {
    const { code, message: full, at } = error;
    const place = at === undefined ? {} : { at: cleanInline(at) };
    const message = withCode({ code: headOf(cleanInline(code), 100), message: headOf(full, MAX_END), ...place });
    lines.push(...blockOf(message, width, style, room));
  }
  if (output !== undefined) lines.push(...blockOf(textOf(output), width, "plain", room));
  if (lastWord !== undefined) {
    lines.push([span("the orchestrator says:", "dim")], ...blockOf(lastWord.text, width, "plain", room));
    if (lastWord.asksForRun) lines.push([span("! it asks for another run", "notice")]);
  }
  return lines.map((line) => cut(line, width));
}

function blockOf(text: string, width: number, style: Style, { most, rest }: EndRoom): readonly Line[] {
  const rows = textBlock(text, { width, style, most: MAX_END, rest });
  return fold(rows, most, rest).map((line): Line => [span("  "), ...line]);
}

function textOf(output: RunEndItem["output"]): string {
  return typeof output === "string" ? output : JSON.stringify(output ?? null, null, 2);
}
