import { type OpenRequest, visible } from "@sluice/core";
import type { ControllingTerminal, Terminal } from "../terminal.ts";
import { answerWords } from "../work/answering.ts";
import { rootOf } from "../work/lookup.ts";

/** Shows people the codes of requests, on the terminal itself: what is on a stream may be read by what the run started. */
export interface CodeBoard {
  show(request: OpenRequest, code: string): void;
  close(): void;
}

/** Opens the terminal for the first code. Where there is none, it is said once that no answer from elsewhere counts. */
export function createCodeBoard(terminal: Terminal, lineOf: (words: readonly string[]) => string): CodeBoard {
  let shown: { readonly on: ControllingTerminal | undefined } | undefined;
  return {
    show: (request, code) => {
      if (shown === undefined) {
        shown = { on: terminal.controlling() };
        if (shown.on === undefined) terminal.err(`sluice: ${NOWHERE}\n`);
      }
      shown.on?.say(`${visible(codeLine(request, code, lineOf))}\n`);
    },
    close: () => shown?.on?.close(),
  };
}

const NOWHERE =
  "no approval from another process counts in this run by now: it has started processes without a wall, and there is no terminal here to show codes on. Run it in a terminal, where a wall can be built (sluice doctor), or with --answers any";

function codeLine(request: OpenRequest, code: string, lineOf: (words: readonly string[]) => string): string {
  const { runId, requestId, kind } = request;
  const answer = kind === "askUser" || kind === "humanState" ? ["--value", "…"] : ["approve"];
  const line = lineOf([...answerWords(request), "--code", code, ...answer]);
  return `sluice: run ${rootOf(runId)} waits for an answer to ${requestId}, from another terminal with its code: ${line}`;
}
