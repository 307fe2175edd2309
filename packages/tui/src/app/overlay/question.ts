import { cut, fold, type Line, wrap } from "@sluice/view/text";
import { ARM_MS, type Key, QUIET_MS } from "../keys.ts";

/** Something the app itself asks, such as whether to cancel a run. Its first choice is the safe one, and stands at the start. */
export interface Question {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly choices: readonly string[];
  readonly chosen: number;
  /** Epoch milliseconds of its appearance: keys that were on their way are not for it. */
  readonly since: number;
  /** The last key that moved the choice, epoch milliseconds. */
  readonly movedAt?: number;
  /** Called with the place of the choice; Esc is the first. */
  readonly answer: (choice: number) => void;
}

/** The question with the key worked in; undefined once it is answered. */
function updateQuestion(question: Question, key: Key, now: number): Question | undefined {
  // Whoever types means the line that is typed in: what follows, such as the Enter at its end, does too.
  if (isTyped(key)) return { ...question, chosen: 0, since: now };
  if (now - question.since < ARM_MS) return { ...question, since: key.name === "escape" ? question.since : now };
  const last = question.choices.length - 1;
  switch (key.name) {
    case "up":
    case "left":
      return { ...question, chosen: Math.max(0, question.chosen - 1), movedAt: now };
    case "down":
    case "right":
      return { ...question, chosen: Math.min(last, question.chosen + 1), movedAt: now };
    case "escape":
      question.answer(0);
      return undefined;
    case "enter":
      if (question.chosen > 0 && now - (question.movedAt ?? now) < QUIET_MS) return { ...question, movedAt: now };
      question.answer(question.chosen);
      return undefined;
    default:
      return question;
  }
}

/** Text and what edits or completes it. */
function isTyped({ name }: Key): boolean {
  return ["text", "paste", "tab", "backspace", "delete"].includes(name);
}

const BAR = "│ ";
/** Rows of a title, whatever name is in it. */
const MOST_TITLE = 3;

/**
 * In at most `height` rows: the title and the choices always, of the lines between them what there is room for. These tell
 * names of files and folders: they stand behind a bar, so that none can pass for a choice.
 */
export function questionLines(
  { title, lines, choices, chosen }: Question,
  { width, height }: { readonly width: number; readonly height: number },
): readonly Line[] {
  const head = wrap([{ text: title, style: "strong" }], width - BAR.length, MOST_TITLE).map(
    (row, at): Line => (at === 0 ? row : [{ text: BAR, style: "dim" }, ...row]),
  );
  const options = choices.map((choice, at): Line => {
    const isChosen = at === chosen;
    return cut([{ text: `${isChosen ? "❯ " : "  "}${choice}`, style: isChosen ? "selected" : "plain" }], width);
  });
  const rows = lines
    .flatMap((line) => wrap(line, Math.max(2, width - BAR.length)))
    .map((row): Line => [{ text: BAR, style: "dim" }, ...row]);
  const shownHead = head.slice(0, Math.max(1, height - options.length));
  const room = height - shownHead.length - options.length;
  return [...shownHead, ...(room <= 0 ? [] : fold(rows, room)), ...options];
}

/** The app's own questions, one after another. */
export class Questions {
  readonly #now: () => number;
  readonly #waiting: Omit<Question, "chosen" | "since">[] = [];
  #current: Question | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  get current(): Question | undefined {
    return this.#current;
  }

  ask(question: Omit<Question, "chosen" | "since">): void {
    this.#waiting.push(question);
    this.#next();
  }

  /** Whether a question had the key. What is typed still goes to the input, so that nothing of it is lost. */
  key(key: Key): boolean {
    if (this.#current === undefined) return false;
    this.#current = updateQuestion(this.#current, key, this.#now());
    this.#next();
    return !isTyped(key) || key.name === "tab";
  }

  /** Answers a question in words. One that is not up any more takes no answer: the next one may be up by then. */
  answer(question: Question, choice: number): void {
    if (this.#current !== question) return;
    this.#current = undefined;
    question.answer(choice);
    this.#next();
  }

  #next(): void {
    if (this.#current !== undefined) return;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#current = { ...next, chosen: 0, since: this.#now() };
  }
}
