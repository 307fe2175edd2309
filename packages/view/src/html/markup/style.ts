import { html } from "./markup.ts";

/** The page's style, with system fonts and both colour schemes. The contrast of text is at least 4.5 to 1. */
export const STYLE = html`
:root {
  color-scheme: light dark;
  --paper: #f6f7f9; --card: #ffffff; --ink: #1b2330; --faint: #566173; --rule: #d5dae2; --code: #eef1f5;
  --accent: #1b5fb4; --good: #17693a; --bad: #b3261e; --notice: #8a5200;
  --model: #3b76c4; --tool: #2f855a; --person: #c77700; --stage: #e3e8ef; --gap: #f6f7f9;
  --added: #ddf4e4; --removed: #fde4e1; --added-word: #a6e3b8; --removed-word: #f7b7b0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12161d; --card: #1a2029; --ink: #e4e8ee; --faint: #a3adbb; --rule: #343d4a; --code: #232b36;
    --accent: #84b6f4; --good: #74d39a; --bad: #ff9a90; --notice: #f0b866;
    --model: #5b94dd; --tool: #47a877; --person: #d99a3b; --stage: #2a3340; --gap: #12161d;
    --added: #16351f; --removed: #43201d; --added-word: #23633a; --removed-word: #7d322c;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 0.9375rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 0.75rem; display: flex; flex-wrap: wrap; gap: 0.5rem 0.9rem; align-items: center; }
h2 { font-size: 1.2rem; margin: 0 0 0.8rem; }
h3 { font-size: 1.02rem; margin: 0.8rem 0 0.4rem; }
h4 { font-size: 0.95rem; margin: 1.2rem 0 0.4rem; padding-bottom: 0.2rem; border-bottom: 1px solid var(--rule); }
h5 { font-size: 0.85rem; margin: 1rem 0 0.3rem; }
h5 .faint { font-weight: normal; }
p { margin: 0.4rem 0; }
a { color: var(--accent); text-underline-offset: 0.15em; }
a:focus-visible, summary:focus-visible, [tabindex]:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -999rem; }
.skip:focus { position: static; }
code, pre, .line, .n, .digest { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace; }
code { font-size: 0.88em; }
code, pre:not([dir]), .diff .line { unicode-bidi: isolate-override; direction: ltr; }
pre {
  margin: 0.4rem 0; padding: 0.6rem 0.75rem; max-height: 30rem; overflow: auto; background: var(--code); border-radius: 6px;
  font-size: 0.82rem; line-height: 1.45; white-space: pre-wrap; tab-size: 4;
}
section, header { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 1.1rem 1.2rem; margin: 0 0 1rem; }
.kind { margin: 0 0 0.3rem; font-size: 0.75rem; letter-spacing: 0.08em; text-transform: uppercase; color: var(--faint); }
.task { font-size: 1.02rem; border-left: 3px solid var(--accent); padding-left: 0.8rem; margin: 0 0 1rem; }
.badge { font-size: 0.9rem; font-weight: 600; border: 1.5px solid currentColor; border-radius: 99px; padding: 0.15rem 0.7rem; }
.good { color: var(--good); } .bad { color: var(--bad); } .notice { color: var(--notice); } .faint { color: var(--faint); } .accent { color: var(--accent); }
.unseen { font-style: normal; color: var(--bad); outline: 1px dotted currentColor; font-size: 0.85em; unicode-bidi: isolate; }
.cut { color: var(--notice); font-family: system-ui, sans-serif; }
.label { font-size: 0.75rem; color: var(--faint); text-transform: uppercase; letter-spacing: 0.05em; margin: 0.7rem 0 0.2rem; }
.alarm { border: 2px solid var(--bad); border-radius: 8px; padding: 0.5rem 0.9rem; margin: 0 0 1rem; }
dl { margin: 0; } dd { margin: 0; }
.sums { display: grid; grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); gap: 0.6rem; margin: 0 0 1rem; }
.sums div { display: flex; flex-direction: column-reverse; background: var(--code); border-radius: 8px; padding: 0.45rem 0.7rem; }
.sums dt { font-size: 0.78rem; color: var(--faint); } .sums dd { font-size: 1.12rem; font-weight: 600; }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); gap: 0.3rem 1.5rem; }
dl.facts div { display: flex; gap: 0.6rem; } dl.facts dt { flex: 0 0 5.5rem; color: var(--faint); } dl.facts dd { min-width: 0; }
ul.facts { margin: 0.3rem 0; padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: 0.1rem 1.2rem; color: var(--faint); font-size: 0.85rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.2rem 1.1rem; list-style: none; margin: 0 0 1rem; padding: 0 0.3rem; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; width: 100%; font-size: 0.86rem; margin: 0.5rem 0; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem; border-bottom: 1px solid var(--rule); min-width: 5rem; overflow-wrap: break-word; }
th { color: var(--faint); font-weight: 600; font-size: 0.8rem; }
.n { text-align: right; font-variant-numeric: tabular-nums; min-width: 3rem; overflow-wrap: normal; white-space: nowrap; }
th.n { font-family: inherit; }
.digest { font-size: 0.72rem; display: inline-block; min-width: 9rem; word-break: break-all; }
tr.above td { border-bottom: 0; }
table.rows { font-size: 0.95em; margin: 0.2rem 0; } table.rows td { min-width: 4rem; }
#decisions td:nth-child(3) { min-width: 14rem; }
dl.values { border-left: 2px solid var(--rule); padding-left: 0.7rem; }
dl.values > div { margin: 0.2rem 0; } dl.values dt { display: inline; color: var(--faint); font-size: 0.88em; } dl.values dt::after { content: ": "; }
dl.values dd { display: inline; } dl.values dd > dl, dl.values dd > ol { margin: 0.15rem 0 0.3rem; }
ol.values { margin: 0.1rem 0; padding-left: 1.6rem; }
.text { unicode-bidi: isolate; white-space: pre-wrap; }
details { min-width: 0; }
summary { cursor: pointer; }
summary > * { display: inline; }
.stage { border-top: 1px solid var(--rule); padding: 0.7rem 0; } .stage > summary { font-size: 0.9rem; } .stage > summary h3 { margin: 0; }
.stage:target > summary h3, section:target > h2 { text-decoration: underline; text-decoration-color: var(--accent); text-underline-offset: 0.25em; }
.list > .stage { margin-left: 1.2rem; padding: 0.3rem 0; } .list > .item { margin: 0 0 0 1.2rem; padding: 0.3rem 0; border-top: 1px solid var(--rule); font-size: 0.9rem; }
.call { border: 1px solid var(--rule); border-radius: 7px; padding: 0.35rem 0.7rem; margin: 0.35rem 0; }
.thought { color: var(--faint); margin: 0.35rem 0; } .thought pre { color: var(--ink); }
.message { border-left: 3px solid var(--accent); padding-left: 0.8rem; margin: 0.5rem 0; }
.note { font-size: 0.88rem; }
.prose { max-width: 50rem; margin: 0.4rem 0; } .prose p, .prose li { white-space: pre-line; } .prose .h { font-weight: 700; margin-top: 0.8rem; }
.prose ul, .prose ol { margin: 0.3rem 0; padding-left: 1.5rem; } .prose li { white-space: normal; } .prose .lang { margin: 0.5rem 0 -0.3rem; font-size: 0.75rem; color: var(--faint); }
.prose code { background: var(--code); border-radius: 4px; padding: 0.05em 0.3em; } .prose .link { text-decoration: underline dotted; }
.prose table { width: auto; } blockquote { margin: 0.4rem 0; padding-left: 0.8rem; border-left: 3px solid var(--rule); }
.diff { font-size: 0.8rem; } .diff thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.diff td { border: 0; padding: 0 0.5rem; min-width: 0; } .diff .n { color: var(--faint); width: 1%; min-width: 2.2rem; user-select: none; }
.diff .sign { width: 1%; padding: 0 0.3rem; } .diff .line { white-space: pre-wrap; tab-size: 4; }
.diff tr.added td { background: var(--added); } .diff tr.removed td { background: var(--removed); }
span.added { color: var(--good); } span.removed { color: var(--bad); }
ins { background: var(--added-word); text-decoration: none; }
del { background: var(--removed-word); text-decoration: none; }
.gap td { color: var(--faint); }
.legend { color: var(--faint); font-size: 0.82rem; } .keys { list-style: none; display: flex; flex-wrap: wrap; gap: 0.2rem 1.1rem; padding: 0; margin: 0.6rem 0 0; }
.keys svg { vertical-align: -1px; }
.steps { margin: 0.3rem 0; padding-left: 1.8rem; }
.graph { display: block; margin: 0 auto; }
.graph text { fill: var(--ink); font-size: 12px; } .graph .name { font-size: 14px; font-weight: 600; } .graph .fact, .graph .often { fill: var(--faint); }
.graph .often { font-weight: 600; paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
.graph a { text-decoration: none; } .graph a:hover .name { text-decoration: underline; }
.box rect { fill: var(--code); stroke: var(--faint); stroke-width: 1.6; }
.box.completed rect, .box.done rect { stroke: var(--good); } .box.failed rect, .box.fail rect, .box.cancel rect { stroke: var(--bad); stroke-width: 2.4; }
.box:is(.running, .waiting, .retrying, .suspended, .sleeping) rect { stroke: var(--accent); stroke-width: 3; } .box.paused rect { stroke: var(--notice); }
.box.unreached rect { fill: none; stroke-dasharray: 5 4; } .box.unreached .name { fill: var(--faint); font-weight: 400; }
.box.skipped rect, .box.cancelled rect { stroke-dasharray: 2 3; }
.way { fill: none; stroke: var(--accent); stroke-width: 2.4; } .way.open { stroke: var(--faint); stroke-width: 1.3; stroke-dasharray: 5 4; }
.way.aside { stroke: var(--notice); stroke-width: 1.8; stroke-dasharray: 1 4; stroke-linecap: round; } .head.aside { fill: var(--notice); }
.box.pipeline rect { stroke: var(--accent); stroke-dasharray: 9 3; }
.head.taken { fill: var(--accent); } .head.open { fill: var(--faint); }
.patterns { position: absolute; }
.lane { display: grid; grid-template-columns: minmax(9rem, 15rem) minmax(0, 1fr); gap: 0 0.8rem; align-items: center; margin: 0.15rem 0; }
.lane .who { font-size: 0.86rem; } .lane.sibling .who { border-left: 3px solid var(--accent); padding-left: 0.5rem; }
.lane > svg { display: block; width: 100%; height: 28px; }
.grid { stroke: var(--rule); stroke-width: 1; vector-effect: non-scaling-stroke; }
.ticks { display: flex; justify-content: space-between; font-size: 0.75rem; color: var(--faint); border-top: 1px solid var(--rule); padding-top: 0.2rem; }
rect.stage { fill: var(--stage); } rect.model { fill: var(--model); } rect.tool { fill: var(--tool); } rect.interrupted { fill: none; stroke: var(--notice); stroke-dasharray: 1 4; stroke-linecap: round; } rect.pause { fill: none; stroke: var(--notice); stroke-dasharray: 2 2; }
rect.person { fill: url(#hatch-person); } rect.suspended { fill: url(#hatch-suspended); } rect.sleep { fill: url(#hatch-sleep); } rect.unknown { fill: url(#hatch-unknown); }
#hatch-person rect { fill: var(--stage); } #hatch-person path { stroke: var(--person); stroke-width: 5; }
#hatch-sleep rect, #hatch-unknown rect { fill: var(--card); } #hatch-sleep path { stroke: var(--accent); stroke-width: 1.5; } #hatch-unknown path { stroke: var(--faint); stroke-width: 1; }
#hatch-suspended rect { fill: var(--card); } #hatch-suspended path { stroke: var(--faint); stroke-width: 2; }
rect.gap { fill: var(--gap); fill-opacity: 0.75; stroke: var(--faint); stroke-width: 1; stroke-dasharray: 1 3; vector-effect: non-scaling-stroke; }
footer { color: var(--faint); font-size: 0.85rem; text-align: center; }
@media (max-width: 40rem) {
  body { padding: 0.75rem 0.6rem 2rem; } section, header { padding: 0.8rem 0.8rem; }
  .lane { grid-template-columns: minmax(0, 1fr); margin: 0.5rem 0; } .graph { margin: 0; }
}
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; background: none; } nav, .skip { display: none; }
  section, header { border: 0; padding: 0.4rem 0; } pre { max-height: none; } .scroll { overflow: visible; }
  h2, h3, h4, h5, summary, .label { break-after: avoid; } .call, .lane, tr, .graph { break-inside: avoid; }
  details::details-content { content-visibility: visible; display: block; block-size: auto; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`;
