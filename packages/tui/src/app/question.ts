import type { Key } from "./keys.ts";
import type { Line } from "./text/line.ts";

/** Something the app itself asks, such as whether to cancel a run. Its first choice is the safe one, and stands at the start. */
export interface Question {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly choices: readonly string[];
  readonly chosen: number;
  /** Epoch milliseconds of its appearance: keys that were on their way are not for it. */
  readonly since: number;
  /** Called with the place of the choice; Esc is the first. */
  readonly answer: (choice: number) => void;
}

/** A key pressed sooner after it appeared was meant for what stood there before. */
const ARM_MS = 400;

/** The question with the key worked in; undefined once it is answered. */
export function updateQuestion(question: Question, key: Key, now: number): Question | undefined {
  if (now - question.since < ARM_MS) return { ...question, since: key.name === "escape" ? question.since : now };
  const last = question.choices.length - 1;
  switch (key.name) {
    case "up":
    case "left":
      return { ...question, chosen: Math.max(0, question.chosen - 1) };
    case "down":
    case "right":
    case "tab":
      return { ...question, chosen: Math.min(last, question.chosen + 1) };
    case "escape":
      question.answer(0);
      return undefined;
    case "enter":
      question.answer(question.chosen);
      return undefined;
    default:
      return question;
  }
}

export function questionLines({ title, lines, choices, chosen }: Question): readonly Line[] {
  return [
    [{ text: title, style: "strong" }],
    ...lines,
    ...choices.map(
      (choice, at): Line => [
        { text: `${at === chosen ? "❯ " : "  "}${choice}`, style: at === chosen ? "selected" : "plain" },
      ],
    ),
  ];
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

  /** Whether a question had the key. */
  key(key: Key): boolean {
    if (this.#current === undefined) return false;
    this.#current = updateQuestion(this.#current, key, this.#now());
    this.#next();
    return true;
  }

  /** Answers the one that is up, in words. */
  answer(choice: number): void {
    const current = this.#current;
    this.#current = undefined;
    current?.answer(choice);
    this.#next();
  }

  #next(): void {
    if (this.#current !== undefined) return;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#current = { ...next, chosen: 0, since: this.#now() };
  }
}
