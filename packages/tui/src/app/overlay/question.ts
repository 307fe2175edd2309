import { clean, cut, fold, type Line, wrap } from "@sluice/view/text";
import { ARM_MS, type Key, QUIET_MS } from "../../composer/keys.ts";

/** A question of the app itself, such as whether to cancel a run. Its first choice is the safe one and preselected. */
export interface Question {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly choices: readonly string[];
  readonly chosen: number;
  /** Epoch milliseconds from which it waits for ARM_MS before keys act on it. */
  readonly since: number;
  /** When the choice last moved, epoch milliseconds. */
  readonly movedAt?: number;
  /** Called with the index of the choice; Esc chooses the first. */
  readonly answer: (choice: number) => void;
}

export type NewQuestion = Omit<Question, "chosen" | "since">;

/** The question after a key; undefined once it is answered. */
function updateQuestion(question: Question, key: Key, now: number): Question | undefined {
  // Typed text is for the input line, and so is the Enter that ends it.
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

function isTyped({ name }: Key): boolean {
  return ["text", "paste", "tab", "backspace", "delete"].includes(name);
}

const BAR = "│ ";
const MAX_TITLE_ROWS = 3;

/**
 * At most `height` rows: the title and all choices, and as many lines as fit between them. The lines contain names of files
 * and folders; the bar keeps them apart from the choices.
 */
export function questionLines(
  { title, lines, choices, chosen }: Question,
  { width, height }: { readonly width: number; readonly height: number },
): readonly Line[] {
  const head = wrap([{ text: title, style: "strong" }], width - BAR.length, MAX_TITLE_ROWS).map(
    (row, index): Line => (index === 0 ? row : [{ text: BAR, style: "dim" }, ...row]),
  );
  const options = choices.map((choice, index): Line => {
    const isChosen = index === chosen;
    return cut([{ text: `${isChosen ? "❯ " : "  "}${choice}`, style: isChosen ? "selected" : "plain" }], width);
  });
  const rows = lines
    .flatMap((line) => wrap(line, Math.max(2, width - BAR.length)))
    .map((row): Line => [{ text: BAR, style: "dim" }, ...row]);
  const shownHead = head.slice(0, Math.max(1, height - options.length));
  const room = height - shownHead.length - options.length;
  return [...shownHead, ...(room <= 0 ? [] : fold(rows, room)), ...options];
}

/** The app's own questions, one at a time. */
export class Questions {
  readonly #now: () => number;
  readonly #waiting: NewQuestion[] = [];
  #current: Question | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  get current(): Question | undefined {
    return this.#current;
  }

  ask(question: NewQuestion): void {
    this.#waiting.push(question);
    this.#next();
  }

  /** Whether a question handled the key. Typed text still goes to the input line. */
  key(key: Key): boolean {
    if (this.#current === undefined) return false;
    this.#current = updateQuestion(this.#current, key, this.#now());
    this.#next();
    return !isTyped(key) || key.name === "tab";
  }

  /** Answers the current question without keys; another one takes no answer, since it may have replaced it just now. */
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

/** A question whose second choice is yes. */
export function confirmation(
  title: string,
  lines: readonly string[],
  choices: readonly [no: string, yes: string],
  answer: (yes: boolean) => void,
): NewQuestion {
  return {
    title,
    lines: lines.map((text): Line => [{ text: clean(text) }]),
    choices,
    answer: (choice) => answer(choice === 1),
  };
}

/** Asks whether to load a folder's code; the first line of `question` is the title. */
export function trustQuestion(question: string, answer: (trusted: boolean) => void): NewQuestion {
  const [title = "", ...lines] = clean(question).split("\n");
  return confirmation(title, lines, ["Not now: nothing of it is loaded", "Trust these files as they are now"], answer);
}
