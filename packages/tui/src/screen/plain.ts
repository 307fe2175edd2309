import { clearLine, createInterface, cursorTo, type Interface } from "node:readline";
import type { Clock } from "@sluice/core";
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

/** Lines that are written above what is typed. */
export interface PlainLines {
  print(text: string): void;
  /** Begins to read what is typed for an app. Returns how to end it. */
  serve(app: App, print: (lines: readonly Line[]) => void): () => void;
}

const PROMPT = "sluice> ";
/** An Enter sooner after the key before it comes of a paste: what it ends may be a command, but no answer. */
const PASTE_MS = 50;
const ANSWERS = /^\/(?:approve|answer)\b/;

/** The app in lines: each is written once and stays, so that a screen reader reads it as it comes. */
export function createPlainLines({ input, output, width, clock, env }: PlainOptions): PlainLines {
  const lines = createInterface({ input, output, prompt: PROMPT, terminal: true, historySize: 0 });
  let keyAt: number | undefined;
  // Readline listens first: when it tells of a line, this is the key before its Enter.
  input.on("keypress", () => {
    keyAt = clock.now();
  });
  const isPasted = (): boolean => keyAt !== undefined && clock.now() - keyAt < PASTE_MS;
  return {
    print: (text) => {
      // The prompt and what is typed behind it move down.
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
  /** Whether the line that was just ended came too fast to be typed. */
  readonly isPasted: () => boolean;
}

function serve(app: App, lines: Interface, { print, width, env, isPasted }: Served): () => void {
  const bodies = new CardBodies(env);
  const told = new Set<string>();
  let asked: Question | undefined;
  /** The line that is being typed was begun before the question came. */
  let begun = false;
  const look = (): void => {
    const { cards, question, view, others } = app.state();
    bodies.keep(cards.cards);
    const waiting = app.waiting();
    for (const named of waiting) {
      const { card } = named;
      if (told.has(card.key)) continue;
      told.add(card.key);
      const run = [view, ...others].find((one) => one?.runId === card.request.runId.split("/", 1)[0]);
      print(requestLines(named, bodies.lines(card, run, width(), false), waiting.length));
    }
    if (question !== undefined && question !== asked) {
      begun = lines.line !== "";
      print(questionRows(question));
    }
    asked = question;
  };
  const takeLine = (text: string): void => {
    const question = begun ? undefined : asked;
    begun = false;
    if (isPasted() && (question === undefined ? ANSWERS.test(text.trim()) : text.trim() === "yes")) {
      app.say("that came at once, as a paste does, and is no answer yet: press Enter to send it", "notice");
      lines.write(text);
    } else if (question !== undefined) {
      asked = undefined;
      app.answerQuestion(question, text.trim() === "yes" ? 1 : 0);
    } else if (text.trim() !== "") app.submit(text);
  };
  const unsubscribe = app.subscribe(look);
  lines.on("line", (text) => {
    takeLine(text);
    lines.prompt(true);
  });
  lines.on("SIGINT", () => app.quit(130));
  lines.on("close", () => app.quit());
  lines.prompt();
  look();
  return () => {
    unsubscribe();
    lines.removeAllListeners("close");
    lines.close();
  };
}

function requestLines({ card, name }: NamedCard, body: readonly Line[], waiting: number): readonly Line[] {
  const { request, form, fault } = card;
  const { kind } = request;
  const isLeave = form.options.some((option) => option.kind === "approve");
  const ways = isLeave
    ? `Type /deny ${name} with or without a reason${fault === undefined ? `, or /approve ${name} to let this one call run` : ""}.`
    : `Type /answer ${name} and the answer, or /deny ${name}.`;
  return [
    [],
    [{ text: `Request: ${[KIND_NAMES[kind], ...askerOf(request)].join(", ")}. ${waiting} waiting.`, style: "strong" }],
    ...body,
    [{ text: `${ways} It stays open until then.` }],
    [],
  ];
}

function questionRows({ title, lines, choices }: Question): readonly Line[] {
  const [no = "", yes = ""] = choices;
  return [[], [{ text: title, style: "strong" }], ...lines, [{ text: `Type yes for: ${yes}. Anything else: ${no}.` }]];
}
