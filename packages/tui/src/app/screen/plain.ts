import { clearLine, createInterface, cursorTo, type Interface } from "node:readline";
import type { App } from "../app.ts";
import { SHORT_DIGEST } from "../commands/answers.ts";
import { CardBodies } from "../people/bodies.ts";
import { type DeskCard, KIND_NAMES } from "../people/desk.ts";
import type { Question } from "../question.ts";
import { cleanInline } from "../text/clean.ts";
import type { Line } from "../text/line.ts";

export interface PlainOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly width: () => number;
}

/** Lines that are written above what is typed. */
export interface PlainLines {
  print(text: string): void;
  /** Begins to read what is typed for an app. Returns how to end it. */
  serve(app: App, print: (lines: readonly Line[]) => void): () => void;
}

const PROMPT = "sluice> ";

/** The app in lines: each is written once and stays, so that a screen reader reads it as it comes. */
export function createPlainLines({ input, output, width }: PlainOptions): PlainLines {
  const lines = createInterface({ input, output, prompt: PROMPT, terminal: true, historySize: 0 });
  return {
    print: (text) => {
      // The prompt and what is typed behind it move down.
      cursorTo(output, 0);
      clearLine(output, 0);
      output.write(text);
      lines.prompt(true);
    },
    serve: (app, print) => serve(app, lines, { print, width }),
  };
}

function serve(
  app: App,
  lines: Interface,
  { print, width }: { readonly print: (lines: readonly Line[]) => void; readonly width: () => number },
): () => void {
  const bodies = new CardBodies();
  const told = new Set<string>();
  let asked: Question | undefined;
  const look = (): void => {
    const { desk, question, view, others } = app.state();
    bodies.keep(desk.cards);
    const waiting = desk.cards.filter((card) => !card.sending);
    for (const card of waiting) {
      if (told.has(card.key)) continue;
      told.add(card.key);
      const run = [view, ...others].find((one) => one?.runId === card.request.runId.split("/", 1)[0]);
      print(requestLines(card, bodies.lines(card, run, width(), false), waiting.length));
    }
    if (question !== undefined && question !== asked) print(questionRows(question));
    asked = question;
  };
  const unsubscribe = app.subscribe(look);
  lines.on("line", (text) => {
    if (asked !== undefined) app.answerQuestion(text.trim() === "yes" ? 1 : 0);
    else if (text.trim() !== "") app.submit(text);
    lines.prompt();
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

function requestLines({ request, form, fault }: DeskCard, body: readonly Line[], waiting: number): readonly Line[] {
  const { kind, digest, runId } = request;
  const short = digest.slice(0, SHORT_DIGEST);
  const isLeave = form.options.some((option) => option.kind === "approve");
  const ways = isLeave
    ? `Type /deny ${short} with or without a reason${fault === undefined ? `, or /approve ${short} to let this one call run` : ""}.`
    : `Type /answer ${short} and the answer, or /deny ${short}.`;
  return [
    [],
    [{ text: `Request: ${KIND_NAMES[kind]}, run ${cleanInline(runId)}. ${waiting} waiting.`, style: "strong" }],
    ...body,
    [{ text: `${ways} It stays open until then.` }],
    [],
  ];
}

function questionRows({ title, lines, choices }: Question): readonly Line[] {
  const [no = "", yes = ""] = choices;
  return [[], [{ text: title, style: "strong" }], ...lines, [{ text: `Type yes for: ${yes}. Anything else: ${no}.` }]];
}
