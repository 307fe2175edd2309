import { clearLine, createInterface, cursorTo, type Interface } from "node:readline";
import type { Clock } from "@sluice/core";
import { rootRunId } from "@sluice/core/runtime";
import type { Line } from "@sluice/view/text";
import type { App } from "../app/app.ts";
import type { Question } from "../app/overlay/question.ts";
import { CardBodies } from "../cards/bodies.ts";
import { askerOf } from "../cards/card.ts";
import type { NamedCard } from "../cards/card-controller.ts";
import { KIND_NAMES } from "../cards/card-stack.ts";
import type { Environment } from "../user/environment.ts";

export interface PlainOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly width: () => number;
  readonly clock: Clock;
  readonly env: Environment;
}

/** Prints lines above the input line. */
export interface PlainLines {
  print(text: string): void;
  /** Passes typed lines to an app. Returns how to stop. */
  serve(app: App, print: (lines: readonly Line[]) => void): () => void;
}

const PROMPT = "sluice> ";
/** An Enter sooner than this after the previous key is part of a paste, and its line is not an answer, in milliseconds. */
const PASTE_MS = 50;
const ANSWERS = /^\/(?:approve|answer)\b/;

/** The app for screen readers: lines that are printed once and never redrawn. */
export function createPlainLines({ input, output, width, clock, env }: PlainOptions): PlainLines {
  const lines = createInterface({ input, output, prompt: PROMPT, terminal: true, historySize: 0 });
  let keyAt: number | undefined;
  // Readline listens first: on a line event, this is the key before its Enter.
  input.on("keypress", () => {
    keyAt = clock.now();
  });
  const isPasted = (): boolean => keyAt !== undefined && clock.now() - keyAt < PASTE_MS;
  return {
    print: (text) => {
      // The prompt and its text move down.
      cursorTo(output, 0);
      clearLine(output, 0);
      output.write(text);
      lines.prompt(true);
    },
    serve: (app, print) => serve(app, lines, { print, width, env, isPasted }),
  };
}

interface Served {
  readonly print: (lines: readonly Line[]) => void;
  readonly width: () => number;
  readonly env: Environment;
  /** Whether the line that just ended is part of a paste. */
  readonly isPasted: () => boolean;
}

function serve(app: App, lines: Interface, { print, width, env, isPasted }: Served): () => void {
  const bodies = new CardBodies(env);
  const printed = new Set<string>();
  let shown: Question | undefined;
  /** Whether the current line was begun before the question appeared. */
  let isEarlier = false;
  const update = (): void => {
    const { cards, question, view, others } = app.state();
    bodies.keep(cards.cards);
    const waiting = app.waiting();
    for (const named of waiting) {
      const { card } = named;
      if (printed.has(card.key)) continue;
      printed.add(card.key);
      const run = [view, ...others].find((one) => one?.runId === rootRunId(card.request.runId));
      print(requestLines(named, bodies.lines(card, run, width(), false), waiting.length));
    }
    if (question !== undefined && question !== shown) {
      isEarlier = lines.line !== "";
      print(questionRows(question));
    }
    shown = question;
  };
  const submit = (text: string): void => {
    const question = isEarlier ? undefined : shown;
    isEarlier = false;
    if (isPasted() && (question === undefined ? ANSWERS.test(text.trim()) : text.trim() === "yes")) {
      app.say("This looks like a paste. Press Enter again to send it.", "notice");
      lines.write(text);
    } else if (question !== undefined) {
      shown = undefined;
      app.answerQuestion(question, text.trim() === "yes" ? 1 : 0);
    } else if (text.trim() !== "") app.submit(text);
  };
  const unsubscribe = app.subscribe(update);
  lines.on("line", (text) => {
    submit(text);
    lines.prompt(true);
  });
  lines.on("SIGINT", () => app.quit(130));
  lines.on("close", () => app.quit());
  lines.prompt();
  update();
  return () => {
    unsubscribe();
    lines.removeAllListeners("close");
    lines.close();
  };
}

function requestLines({ card, name }: NamedCard, body: readonly Line[], waiting: number): readonly Line[] {
  const { request, form, fault } = card;
  const { kind } = request;
  const isApproval = form.options.some((option) => option.kind === "approve");
  const commands = isApproval
    ? `Type /deny ${name} with or without a reason${fault === undefined ? `, or /approve ${name} to approve this one call` : ""}.`
    : `Type ${fault === undefined ? `/answer ${name} and the answer, or ` : ""}/deny ${name}.`;
  return [
    [],
    [{ text: `Request: ${[KIND_NAMES[kind], ...askerOf(request)].join(", ")}. ${waiting} waiting.`, style: "strong" }],
    ...body,
    [{ text: `${commands} It stays open until then.` }],
    [],
  ];
}

function questionRows({ title, lines, choices }: Question): readonly Line[] {
  const [no = "", yes = ""] = choices;
  return [[], [{ text: title, style: "strong" }], ...lines, [{ text: `Type yes for: ${yes}. Anything else: ${no}.` }]];
}
