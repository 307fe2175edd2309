import { createHash } from "node:crypto";
import { moment } from "../words/words.ts";
import { decisionsMarkup, routesMarkup } from "./decisions.ts";
import { graphMarkup } from "./graph.ts";
import { chainMarkup, headMarkup, inputMarkup, type ReportFacts, requestsMarkup, resultMarkup } from "./head.ts";
import { html, type Markup, textOf } from "./markup/markup.ts";
import { STYLE } from "./markup/style.ts";
import { capsMarkup, spendingMarkup } from "./spending-tables.ts";
import { shownStages, stagesMarkup } from "./stages.ts";
import { timelineMarkup } from "./timeline.ts";
import { withoutBodies } from "./without-bodies.ts";

/** A run as one HTML page without scripts, fetches or outgoing links. Untrusted text is escaped, bounded and made visible. */
export function reportPage(facts: ReportFacts): string {
  const { chain, madeAt, version } = facts;
  const view = facts.view.meta.captureOutput === false ? withoutBodies(facts.view) : facts.view;
  const shown = shownStages(view.executions);
  const byKey = new Map(shown.map(({ key }, at) => [key, `s${at + 1}`]));
  const sections: readonly (readonly [id: string, title: string, body: Markup])[] = [
    ["result", view.error === undefined ? "Result" : "Error", resultMarkup({ ...facts, view })],
    ["path", "Path", graphMarkup(view, byKey)],
    ["timeline", "Timeline", timelineMarkup(view, byKey)],
    ["decisions", "Grants and denials", decisionsMarkup(view, byKey)],
    ["stages", "Stages", html`${inputMarkup(view)}${stagesMarkup(view, byKey)}`],
    ["spending", "Tokens and cost", spendingMarkup(view, byKey)],
    ["limits", "Limits", capsMarkup(view)],
    ["routes", "Routes", routesMarkup(view, byKey)],
    ["record", "Record", chainMarkup(chain)],
  ];
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Sluice ${version}">
<title>${view.pipeline} ${view.status} · ${view.runId}</title>
<style>${STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
${headMarkup({ ...facts, view })}
<nav aria-label="Sections"><ul>${sections.map(([id, title]) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>
<main id="main">
${requestsMarkup(view)}${sections.map(
  ([id, title, body]) => html`<section id="${id}"><h2>${title}</h2>
${body}
</section>
`,
)}</main>
<footer><p>Made by Sluice ${version} on ${moment(madeAt)} from the record of run ${view.runId}.</p></footer>
</body>
</html>
`;
  return textOf(page);
}

/** Allows only the page's own style, by its hash; injected styles and scripts have no effect. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(textOf(STYLE)).digest("base64")}'; base-uri 'none'; form-action 'none'`;
