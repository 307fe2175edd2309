import { createHash } from "node:crypto";
import { moment } from "../words/words.ts";
import { decisionsMarkup } from "./decisions/decision-table.ts";
import { routesMarkup } from "./decisions/routes.ts";
import type { ReportFacts } from "./facts.ts";
import { graphMarkup } from "./graph/graph.ts";
import { chainMarkup, headMarkup, inputMarkup, requestsMarkup, resultMarkup } from "./head.ts";
import { html, type Markup, textOf } from "./markup/markup.ts";
import { STYLE } from "./markup/style.ts";
import { capsMarkup, spendingMarkup } from "./spending-tables.ts";
import { shownStages, stagesMarkup } from "./stages.ts";
import { timesOf } from "./timeline/spans.ts";
import { timelineMarkup } from "./timeline/timeline.ts";

/**
 * A run as one HTML page that needs nothing else: no script, no fetch, no link out of it. All text of models, tools and people is
 * escaped and bounded; what is unseen in it is marked. The facts have to be redacted already.
 */
export function reportPage(facts: ReportFacts): string {
  const { view, events, chain, madeAt, version } = facts;
  const times = timesOf(events, view.endedAt ?? view.startedAt);
  const shown = shownStages(view.executions);
  const byKey = new Map(shown.map(({ key }, at) => [key, `s${at + 1}`]));
  const byState = new Map(shown.map(({ stateId, key }) => [stateId, byKey.get(key) ?? ""]));
  const sections: readonly (readonly [id: string, title: string, body: Markup])[] = [
    ["result", view.error === undefined ? "Result" : "Error", resultMarkup(view)],
    ["path", "Path", graphMarkup(view, byState)],
    ["timeline", "Timeline", timelineMarkup(view, times, byKey)],
    ["decisions", "Grants and denials", decisionsMarkup(facts, byKey)],
    ["stages", "Stages", html`${inputMarkup(events)}${stagesMarkup(view, times, byKey)}`],
    ["spending", "Tokens and money", spendingMarkup(view, times.end, byKey)],
    ["limits", "Limits", capsMarkup(view)],
    ["routes", "Routes", routesMarkup(events, byKey)],
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
<a class="skip" href="#main">To the content</a>
${headMarkup(facts, times.end)}
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

/** The page's own style is known by its hash: a style or a script that came with a text would do nothing. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(textOf(STYLE)).digest("base64")}'; base-uri 'none'; form-action 'none'`;
