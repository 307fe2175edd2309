import type { OpenRequest, PersonRequest } from "@sluice/core";
import { rootRunId, visible } from "@sluice/core/runtime";
import { answerWords } from "@sluice/tui/user";
import { requestCard } from "@sluice/view/text";
import type { ControllingTerminal, Terminal } from "../output/terminal.ts";

/** Where a person reads the codes of requests. */
export interface CodeBoard {
  show(request: OpenRequest, code: string): void;
  close(): void;
}

/**
 * Shows requests with their codes on the controlling terminal, which is opened for the first code: processes that the run started
 * could read a stream. Without a terminal, it warns once that approvals from other processes do not count.
 */
export function createCodeBoard(terminal: Terminal, lineOf: (words: readonly string[]) => string): CodeBoard {
  let opened: { readonly screen: ControllingTerminal | undefined } | undefined;
  return {
    show: (request: OpenRequest, code: string): void => {
      if (opened === undefined) {
        opened = { screen: terminal.controlling() };
        if (opened.screen === undefined) terminal.err(`sluice: ${NO_TERMINAL}\n`);
      }
      // An approval is for all of the request, which the events show in part.
      opened.screen?.say(
        `${requestCard(request, terminal.facts().columns)}${visible(codeLine(request, code, lineOf))}\n`,
      );
    },
    close: (): void => opened?.screen?.close(),
  };
}

const NO_TERMINAL =
  "this run accepts no more approvals from other processes: it has started processes without a sandbox, and there is no terminal here to show codes on. Run it in a terminal, where a sandbox can be built (sluice doctor), or with --answers any";

function codeLine(request: OpenRequest, code: string, lineOf: (words: readonly string[]) => string): string {
  const { runId, requestId } = request;
  const line = lineOf(answerWords(request, ["--code", code]));
  return `sluice: run ${rootRunId(runId)} waits for an answer to ${requestId}. Answer from another terminal with its code: ${line}`;
}

export function isSameRequest(one: PersonRequest, other: OpenRequest): boolean {
  return one.runId === other.runId && one.requestId === other.requestId && one.digest === other.digest;
}
