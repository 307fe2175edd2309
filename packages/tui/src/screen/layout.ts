import { rootRunId } from "@sluice/core/runtime";
import {
  type ExecutionView,
  moneyOf,
  type RunView,
  shortCount,
  stateLabel,
  symbolOf,
  timeLeft,
  tokensOf,
} from "@sluice/view";
import { cleanInline, cut, headOf, type Line, type Span, spanOf, wrap } from "@sluice/view/text";
import { count, isNothing } from "@sluice/view/words";
import type { AppState } from "../app/app-state.ts";
import { type Question, questionLines } from "../app/overlay/question.ts";
import { type FrameSize, topOf, type Viewer } from "../app/overlay/viewer.ts";
import { chosenOf } from "../app/watched.ts";
import { CardBodies } from "../cards/bodies.ts";
import { bodyWidth, type CardView, cardHeight, cardLines, deferredLine } from "../cards/card.ts";
import { openCardOf, waitingCards } from "../cards/card-stack.ts";
import { render } from "../composer/editing/render.ts";
import { endBelow } from "../run/end-rows.ts";
import { commandRows } from "../run/kind-rows.ts";
import { LiveRows } from "../run/live-rows.ts";
import { progressBar } from "../run/progress-bar.ts";
import { TranscriptWindow } from "../run/transcript-window.ts";
import type { Environment } from "../user/environment.ts";
import { PLACEHOLDER } from "./first-frame.ts";
import { type Frame, type Part, stack } from "./frame.ts";

/** A frame, and what the app needs to know once it is drawn. */
export interface DrawnFrame extends Frame {
  readonly card: CardView | undefined;
  readonly viewer: FrameSize | undefined;
}

/** Rows of streaming text above the progress bar; the scrollback has the earlier ones. */
const LIVE_ROWS = 12;
const BAR_ROWS = 5;
const COMPOSER_ROWS = 12;
/** The parts that get rows first. */
const ORDER = ["composer", "status", "question", "card", "waiting", "notices", "sent", "progress", "viewer", "main"];

/** Lays out frames from the state of the app, and caches expensive layouts. */
export class FrameRenderer {
  readonly #bodies: CardBodies;
  readonly #transcript = new TranscriptWindow();
  #live: { readonly key: string; readonly width: number; readonly rows: LiveRows } | undefined;

  constructor(env: Environment) {
    this.#bodies = new CardBodies(env);
  }

  draw(state: AppState): DrawnFrame {
    const { size, question, viewer, cards } = state;
    // One row shorter than the terminal: rows that scroll out cannot be redrawn.
    const height = Math.max(1, size.height - 1);
    const { width } = size;
    let card: CardView | undefined;
    let viewerSize: FrameSize | undefined;
    const parts: Part[] = [];
    if (viewer === undefined) parts.push(this.#main(state));
    if (state.view !== undefined) parts.push(progressPart(state, state.view));
    if (viewer !== undefined) {
      parts.push({
        name: "viewer",
        least: 3,
        most: height,
        lines: (room) => {
          viewerSize = { width, height: room - 2 };
          return viewerLines(viewer, viewerSize);
        },
      });
    }
    if (state.notices.length > 0) parts.push(fixedPart("notices", state.notices, width));
    if (question !== undefined) parts.push(questionPart(question, { width, height }));
    const unread = sentLines(state);
    if (unread.length > 0) parts.push(fixedPart("sent", unread, width));
    const current = openCardOf(cards);
    if (current !== undefined && question === undefined && viewer === undefined) {
      this.#bodies.keep(cards.cards);
      const view = [state.view, ...state.others].find((one) => one?.runId === rootRunId(current.card.request.runId));
      const body = this.#bodies.lines(current.card, view, bodyWidth(width), current.open.all);
      parts.push({
        name: "card",
        least: 3,
        most: cardHeight(cards, body),
        lines: (room) => {
          card = cardLines(cards, body, { width, height: room, now: state.now });
          return card?.lines ?? [];
        },
        cursor: () => card?.cursor,
      });
    } else {
      const waiting = waitingLine(state);
      if (waiting !== undefined) parts.push(fixedPart("waiting", [waiting], width));
    }
    parts.push(composerPart(state, current?.open.focused === true && card === undefined));
    parts.push(fixedPart("status", [cut(statusLine(state), width)], width));
    const frame = stack(parts, ORDER, height);
    return { ...frame, card, viewer: viewerSize };
  }

  /** Streaming text; in fullscreen, the end of the whole transcript. */
  #main({ view, focus, size, flags, welcome }: AppState): Part {
    const execution = view === undefined ? undefined : chosenOf(view, focus?.chosen);
    const { width } = size;
    if (view === undefined || execution === undefined) {
      const rows = welcome.flatMap((line) => wrap(line, width));
      const most = flags.fullscreen === true ? size.height : 0;
      return { name: "main", least: 1, most, lines: (room) => padded(rows.slice(0, room), room) };
    }
    if (flags.fullscreen === true) {
      const rows = this.#transcript;
      rows.update(execution, endBelow(view, execution.key));
      const count = rows.count(width);
      return {
        name: "main",
        least: 1,
        most: size.height,
        lines: (room) => {
          // Leaves an empty row if there is room.
          const shown = room > 3 ? room - 1 : room;
          return padded(rows.slice(Math.max(0, count - shown), count, width), room);
        },
      };
    }
    const lines = this.#liveLines(execution, width);
    return {
      name: "main",
      least: 3,
      most: lines.length === 0 ? 0 : Math.min(LIVE_ROWS, lines.length + 1),
      // Ends with an empty row.
      lines: (room) => [...lines.slice(0, 1), ...lines.slice(1).slice(-(room - 2)), []],
    };
  }

  #liveLines(execution: ExecutionView, width: number): readonly Line[] {
    const { live, key, stateId, status, items } = execution;
    if (live === undefined) {
      // A command streams nothing, and is not final before it ends.
      const last = items.at(items.length - 1);
      return last?.kind === "command" && last.state === "running" ? commandRows(last, { width, folded: true }) : [];
    }
    if (this.#live?.key !== key || this.#live.width !== width) this.#live = { key, width, rows: new LiveRows(width) };
    const head: Line = [
      { text: `${symbolOf(status).sign} ${stateLabel(stateId)}`, style: "accent" },
      { text: ` · turn ${live.turn}${live.text === "" ? " · thinking" : ""}`, style: "dim" },
    ];
    return [cut(head, width), ...this.#live.rows.lines(live)];
  }
}

function padded(lines: readonly Line[], height: number): readonly Line[] {
  return [...lines, ...Array.from({ length: Math.max(0, height - lines.length) }, (): Line => [])];
}

function fixedPart(name: string, lines: readonly Line[], width: number): Part {
  const rows = lines.flatMap((line) => wrap(line, width));
  return { name, least: 1, most: rows.length, lines: (room) => rows.slice(-room) };
}

/** The title and the choices get rows before longer parts. */
function questionPart(question: Question, { width, height }: FrameSize): Part {
  const most = questionLines(question, { width, height }).length + 1;
  return {
    name: "question",
    least: Math.max(1, Math.min(1 + question.choices.length, height - 2)),
    most,
    lines: (room) => {
      const above: readonly Line[] = room < most ? [] : [[]];
      return [...above, ...questionLines(question, { width, height: room - above.length })];
    },
  };
}

function progressPart({ size, now, focus }: AppState, view: NonNullable<AppState["view"]>): Part {
  const chosen = chosenOf(view, focus?.chosen)?.key;
  const barOf = (maxRows: number): readonly Line[] =>
    progressBar(view, { width: size.width, maxRows, now, ...(chosen === undefined ? {} : { chosen }) });
  const lines = barOf(BAR_ROWS);
  return {
    name: "progress",
    least: 1,
    most: lines.length,
    lines: (room) => (room >= lines.length ? lines : barOf(room)),
  };
}

function viewerLines(viewer: Viewer, size: FrameSize): readonly Line[] {
  const top = topOf(viewer, size);
  const count = viewer.rows.count(size.width);
  const markOf = (row: number): Line => (row === viewer.chosen ? [{ text: "❯ ", style: "accent" }] : [{ text: "  " }]);
  const rows = viewer.rows.slice(top, top + size.height, size.width);
  const shown = rows.map((line, index) => [...(viewer.selectable ? markOf(top + index) : []), ...line]);
  const position = count <= size.height ? "" : ` ${top + 1}–${Math.min(count, top + size.height)} of ${count}`;
  const head: Line = [
    { text: `── ${cleanInline(viewer.title)} ──`, style: "heading" },
    { text: position, style: "dim" },
  ];
  return [head, ...padded(shown, size.height), viewerFoot(viewer)].map((line) => cut(line, size.width));
}

function viewerFoot({ search, selectable, rows, hint }: Viewer): Line {
  if (search?.editing === true)
    return [{ text: "search: ", style: "accent" }, { text: cleanInline(search.text) }, { text: "▏" }];
  const matches: Span[] = [];
  if (search?.missed === true)
    matches.push({ text: `no more matches of ${cleanInline(search.text)} · `, style: "notice" });
  else if (search !== undefined) matches.push({ text: "n next, N previous · ", style: "dim" });
  const keys = [
    "↑↓ PgUp PgDn move",
    ...(selectable ? ["Enter opens"] : []),
    ...(rows.find === undefined ? [] : ["/ searches"]),
    ...(hint === "" ? [] : [hint]),
    "Esc closes",
  ];
  return [...matches, { text: keys.join(" · "), style: "dim" }];
}

function composerPart(state: AppState, hidden: boolean): Part {
  const { composer, size, viewer } = state;
  const placeholder = placeholderFor(state);
  const whole = render(composer, { width: size.width, maxRows: COMPOSER_ROWS, placeholder });
  const rendered = (room: number): ReturnType<typeof render> =>
    room >= whole.lines.length ? whole : render(composer, { width: size.width, maxRows: room, placeholder });
  return {
    name: "composer",
    least: 1,
    most: Math.max(1, whole.lines.length),
    lines: (room) => rendered(room).lines,
    cursor: (room) =>
      hidden || viewer !== undefined || state.question !== undefined ? undefined : rendered(room).cursor,
  };
}

function placeholderFor({ view }: AppState): string {
  if (view === undefined || view.endedAt !== undefined) return PLACEHOLDER;
  if (view.unattended === true) return "/resume continues the run; a message waits until then";
  const reader = view.status === "sleeping" ? "the next agent" : "the next turn";
  return `a message for ${reader}, or / for commands`;
}

/** Messages that are shown while no model has read them. */
const MOST_SENT = 2;
/** UTF-16 units of each. */
const LONGEST_SENT = 200;

function sentLines({ sent, size }: AppState): readonly Line[] {
  const left = sent.length - MOST_SENT;
  const more: readonly Line[] = left > 0 ? [[{ text: `  … and ${count(left, "older message")}`, style: "dim" }]] : [];
  const shown = sent.slice(-MOST_SENT).map(({ text }): Line => {
    const line: Line = [{ text: "❯ not read yet: ", style: "notice" }, spanOf(headOf(text, LONGEST_SENT), "dim")];
    return cut(line, size.width);
  });
  return [...more, ...shown];
}

/** Shown if requests wait and no card is open. */
function waitingLine({ cards, viewer, question, size }: AppState): Line | undefined {
  const waiting = waitingCards(cards).length;
  if (waiting === 0 || question !== undefined) return undefined;
  if (viewer === undefined) return deferredLine(cards, size.width);
  return [
    { text: `◆ ${waiting === 1 ? "1 request waits" : `${waiting} requests wait`} for you`, style: "notice" },
    { text: " · Tab shows it", style: "dim" },
  ];
}

function statusLine({ view, flags, others, busy, quitting, now }: AppState): Line {
  if (quitting) return [{ text: "suspending the runs …", style: "notice" }];
  const parts: Span[] = [];
  const add = (text: string, style: Span["style"] = "dim"): void => {
    if (text === "") return;
    if (parts.length > 0) parts.push({ text: " · ", style: "dim" });
    parts.push({ text, style });
  };
  if (busy !== undefined && busy !== "") add(`${cleanInline(busy)} …`, "accent");
  if (view === undefined) {
    add(flags.model === undefined ? "" : shortModel(flags.model));
    add(flags.mode === undefined ? "" : `mode ${flags.mode}`);
  } else {
    add(`${stateLabel(view.pipeline)} ${stateLabel(view.runId)}`.trim());
    add(wakeText(view, now), "notice");
    const { dangerLevel } = view.meta;
    if (dangerLevel !== undefined) add(`danger ${cleanInline(dangerLevel)}`, dangerLevel === "safe" ? "dim" : "notice");
    add(view.mode === "" ? "" : `mode ${cleanInline(view.mode)}`);
    const { agent } = view;
    add(agent === undefined ? view.models.map(shortModel).join(", ") : `agent ${cleanInline(agent)}`);
    if (agent === undefined || !isNothing(view.usage)) add(`${shortCount(tokensOf(view.usage))} tokens`);
    add(moneyOf(view.usage));
    if (view.denied.length > 0) add(`${view.denied.length} denied`, "notice");
  }
  const more = others.filter(({ endedAt }) => endedAt === undefined).length;
  if (more > 0) add(more === 1 ? "1 more run" : `${more} more runs`);
  add("/help");
  return parts;
}

/** When a run that sleeps continues, and what wakes it. */
function wakeText({ status, wakeAt, unattended }: RunView, now: number): string {
  if (status !== "sleeping" || wakeAt === undefined) return "";
  const time = wakeAt <= now ? "due" : `wakes in ${timeLeft(wakeAt, now)}`;
  return `☾ ${time}${unattended === true ? ", by sluice wake or /resume" : ""}`;
}

/** Without the folder of a script or cassette. */
function shortModel(model: string): string {
  return cleanInline(model.replace(/^(scripted|replay):.*[\\/]/s, "$1:"));
}
