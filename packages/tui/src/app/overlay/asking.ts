import { stateLabel } from "@sluice/view";
import { clean, type Line } from "@sluice/view/text";
import type { Question } from "./question.ts";

type Asked = Omit<Question, "chosen" | "since">;

/** Whether a folder's code may be loaded; `question` says what would be. */
export function trustQuestion(question: string, answer: (trusted: boolean) => void): Asked {
  const [title = "", ...rest] = clean(question).split("\n");
  return {
    title,
    lines: rest.map((text): Line => [{ text }]),
    choices: ["Not now: nothing of it is loaded", "Trust these files as they are now"],
    answer: (choice) => answer(choice === 1),
  };
}

export function cancelQuestion(runId: string, cancel: () => void): Asked {
  return {
    title: `Cancel run ${stateLabel(runId)}?`,
    lines: [[{ text: "A cancelled run cannot be resumed. /quit suspends it instead.", style: "dim" }]],
    choices: ["No, it goes on", "Yes, cancel it"],
    answer: (choice) => {
      if (choice === 1) cancel();
    },
  };
}

export function replaceQuestion(file: string, replace: () => void): Asked {
  return {
    title: "This file is there already. Replace it?",
    lines: [[{ text: clean(file) }]],
    choices: ["No, it stays", "Yes, replace it"],
    answer: (choice) => {
      if (choice === 1) replace();
    },
  };
}

export function startQuestion(pipeline: string, answer: (start: boolean) => void): Asked {
  return {
    title: `No run is at work. Start ${stateLabel(pipeline)} with this task?`,
    lines: [],
    choices: ["Not now", `Start ${stateLabel(pipeline)}`],
    answer: (choice) => answer(choice === 1),
  };
}
