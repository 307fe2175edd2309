import { type LiveView, span } from "@sluice/view";
import { createMarkdownStream, cut, type Line, type MarkdownStream } from "@sluice/view/text";
import { textRow, textWidth, thoughtLines } from "./transcript.ts";

/** Rows of an unfinished block. */
const MAX_UNFINISHED = 200;

/** The rows of streaming text; only new text is laid out. */
export class LiveRows {
  readonly #width: number;
  #stream: MarkdownStream;
  #text = "";
  #turn = 0;
  #final: Line[] = [];
  #shown: { readonly live: LiveView; readonly lines: readonly Line[] } | undefined;

  constructor(width: number) {
    this.#width = Math.max(1, width);
    this.#stream = createMarkdownStream(textWidth(this.#width));
  }

  lines(live: LiveView): readonly Line[] {
    if (this.#shown?.live === live) return this.#shown.lines;
    const { turn, text, reasoning, cut: dropped } = live;
    if (turn !== this.#turn || !text.startsWith(this.#text)) {
      this.#stream = createMarkdownStream(textWidth(this.#width));
      this.#final = [];
      this.#text = "";
      this.#turn = turn;
    }
    if (text.length > this.#text.length)
      this.#final.push(...this.#stream.push(text.slice(this.#text.length)).map(textRow));
    this.#text = text;
    const thought = reasoning === "" ? [] : thoughtLines(reasoning, { width: this.#width, folded: text !== "" });
    const earlier: Line[] = dropped === 0 ? [] : [[span(`… ${dropped} characters earlier`, "dim")]];
    const lines = [...thought, ...earlier, ...this.#final, ...this.#stream.rest(MAX_UNFINISHED).map(textRow)];
    this.#shown = { live, lines: lines.map((line) => cut(line, this.#width)) };
    return this.#shown.lines;
  }
}
