// HTML for the summary of a job. GitHub reads it as Markdown: text of others stands only inside elements, escaped, and without an
// empty line, which would end the element and start Markdown.
import { oneLine } from "./runner.mjs";

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text of others in one line, as code: GitHub makes no links and mentions of it there. */
export function code(text, most = 200) {
  return `<code>${escaped(oneLine(text, most))}</code>`;
}

/** A JSON value in lines. */
export function jsonBlock(value, most = 20_000) {
  // JSON has no empty lines and escapes line breaks; other control characters of its strings are shown as spaces.
  const text = JSON.stringify(value, null, 2).split("\n");
  const lines = text.map((line) => `${/^ */.exec(line)?.[0] ?? ""}${oneLine(line.trimStart(), 2_000)}`).join("\n");
  const cut = lines.length > most ? `${lines.slice(0, most)}\n…` : lines;
  return `<pre><code>${escaped(cut)}</code></pre>`;
}

/** A table whose cells are HTML. `rows` is cut after 50. */
export function table(head, rows) {
  const line = (cells, tag) => `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join("")}</tr>`;
  const shown = rows.slice(0, 50).map((cells) => line(cells, "td"));
  const more = rows.length > shown.length ? [`<tr><td>and ${rows.length - shown.length} more</td></tr>`] : [];
  const heads = head.length === 0 ? [] : [line(head, "th")];
  return ["<table>", ...heads, ...shown, ...more, "</table>"].join("\n");
}

/** Blocks of a page, apart by an empty line. */
export function page(blocks) {
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n\n`;
}

function escaped(text) {
  return text.replaceAll(/[&<>"']/g, (letter) => ENTITIES[letter]);
}
