import type { Answer, Interactor, OpenRequest, PersonRequest } from "@sluice/core";
import { isQuestion, visible } from "@sluice/core/runtime";
import { type TypedAnswer, typedValue } from "@sluice/tui/user";
import { requestCard } from "@sluice/view/text";
import { isSameRequest } from "./code-board.ts";
import type { LinePrompt } from "./line-prompt.ts";

/**
 * A user at a plain terminal. Only the full word "approve" approves; an empty line denies, and the end of the input gives no
 * answer. `columns` is the width of the terminal, undefined if unknown.
 */
export function lineInteractor(
  prompt: LinePrompt,
  output: NodeJS.WritableStream,
  columns: () => number | undefined = () => undefined,
): Interactor {
  return {
    name: "terminal",
    async answer(request, signal) {
      await prompt.pause();
      // A rule may have answered meanwhile.
      if (signal.aborted) return undefined;
      const asksValue = isQuestion(request);
      output.write(requestCard(request, columns()));
      const how = asksValue
        ? "answer (an empty line declines): "
        : "approve, deny [reason] or defer (an empty line denies): ";
      for (;;) {
        const line = await prompt.ask(how, signal);
        if (line === undefined) {
          if (signal.aborted) output.write("no longer needed\n");
          return undefined;
        }
        const read = asksValue ? readValue(request, line) : readApproval(line);
        if (read.ok) return read.answer;
        output.write(`${visible(read.fault)}\n`);
      }
    },
  };
}

function readApproval(line: string): TypedAnswer {
  const [, word = "", rest = ""] = /^\s*(\S*)\s*(.*?)\s*$/s.exec(line) ?? [];
  if (word === "" || (word === "deny" && rest === "")) return { ok: true, answer: { kind: "deny" } };
  if (word === "deny") return { ok: true, answer: { kind: "deny", reason: rest } };
  if ((word === "approve" || word === "defer") && rest === "") return { ok: true, answer: { kind: word } };
  return { ok: false, fault: "type approve to allow this one call; deny, deny with a reason, or defer" };
}

function readValue(request: PersonRequest, line: string): TypedAnswer {
  return line.trim() === ""
    ? { ok: true, answer: { kind: "deny", reason: "the user did not answer" } }
    : typedValue(request, line.trim());
}

/** An interactor with the answer to one request, given before the run is resumed. */
export function oneAnswer(
  name: string,
  given: { readonly request: OpenRequest; readonly answer: Answer },
  onAnswered: () => void,
): Interactor {
  return {
    name,
    answer: async (request) => {
      if (!isSameRequest(request, given.request)) return undefined;
      onAnswered();
      return given.answer;
    },
  };
}

/** An interactor that is not asked for a request that is already answered. */
export function except(interactor: Interactor, answered: OpenRequest): Interactor {
  return {
    ...interactor,
    answer: async (request, signal) =>
      isSameRequest(request, answered) ? undefined : await interactor.answer(request, signal),
  };
}
