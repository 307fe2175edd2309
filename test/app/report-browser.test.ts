import { parseJson } from "@sluice/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { ListBuilder } from "../../packages/view/src/projection/append-only-list.ts";
import type { TranscriptItem } from "../../packages/view/src/projection/run-view.ts";
import { dumpPage, findBrowser } from "../support/browser.ts";
import { execution, runView } from "../support/random-views.ts";
import { pageOf, reportOf } from "../support/report-kit.ts";
import { play, TROUBLED } from "../support/run-scenes.ts";

const browser = findBrowser();

const seen = z.array(
  z.object({
    width: z.number(),
    scrollWidth: z.number(),
    fetched: z.number(),
    styled: z.boolean(),
    sections: z.array(z.object({ id: z.string(), width: z.number(), height: z.number() })),
    faint: z.array(z.string()),
    scriptRan: z.boolean(),
  }),
);

/** Runs in the page around the report, whose own scripts are off: measures what a reader sees. */
const MEASURE = `
function channels(colour) { return (colour.match(/[\\d.]+/g) || []).map(Number); }
function luminance([r, g, b]) {
  const part = (c) => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
}
function behind(view, element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = channels(view.getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
}
function faintIn(view, page) {
  const faint = new Set();
  for (const element of page.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
    if (!own || element.closest("svg") || !element.checkVisibility()) continue;
    const [a, b] = [luminance(channels(view.getComputedStyle(element).color)), luminance(behind(view, element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.add(element.tagName + "." + element.className + " " + ratio.toFixed(2));
  }
  return [...faint];
}
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, view = frame.contentWindow;
    const sections = [...page.querySelectorAll("header, section, footer")].map((one) => {
      const { width, height } = one.getBoundingClientRect();
      return { id: one.id || one.tagName, width, height };
    });
    return {
      width: frame.clientWidth,
      scrollWidth: page.documentElement.scrollWidth,
      fetched: view.performance.getEntriesByType("resource").length,
      styled: view.getComputedStyle(page.querySelector("section")).borderTopWidth === "1px",
      sections,
      faint: faintIn(view, page),
      scriptRan: page.title === "scripts run",
    };
  });
  document.body.textContent = "FO" + "UND" + JSON.stringify(found) + "DNUOF";
});
`;

/** The texts with a letter that is written from right to left, and whether each character stands to the right of the one before it. */
const ORDER = `
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  for (const details of page.querySelectorAll("details")) details.open = true;
  const texts = [...page.querySelectorAll("code, pre, td.line")].filter((element) => /\\p{sc=Hebr}/u.test(element.textContent));
  const found = texts.map((element) => {
    const lefts = [];
    const nodes = page.createTreeWalker(element, 4);
    for (let node = nodes.nextNode(); node; node = nodes.nextNode())
      for (let at = 0; at < node.length; at++) {
        const range = page.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        lefts.push(range.getBoundingClientRect().left);
      }
    return { text: element.textContent, inOrder: lefts.every((left, at) => at === 0 || left > lefts[at - 1]) };
  });
  document.body.textContent = "FO" + "UND" + JSON.stringify(found) + "DNUOF";
});
`;

function around(page: string, widths: readonly number[], script = MEASURE): string {
  const source = page.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const frames = widths.map(
    (width) => `<iframe sandbox="allow-same-origin" width="${width}" height="900" srcdoc="${source}"></iframe>`,
  );
  return `<!doctype html><html><head><meta charset="utf-8"><script>${script}</script></head><body>${frames.join("")}</body></html>`;
}

function measured(file: string, page: string, flags: readonly string[] = []) {
  return seen.parse(foundIn(dumpPage(file, around(page, [390, 1280]), flags)));
}

function foundIn(dumped: string): unknown {
  const [, found = ""] = /FOUND(.*)DNUOF/s.exec(dumped) ?? [];
  const read = parseJson(found.replaceAll("&gt;", ">").replaceAll("&lt;", "<").replaceAll("&amp;", "&"));
  return read.ok ? read.value : undefined;
}

const where = browser === undefined ? " (skipped: no Chromium on this machine)" : "";

test.skipIf(browser === undefined).each([
  ["light", []],
  ["dark", ["--blink-settings=preferredColorScheme=0"]],
] as const)(
  `in a browser without scripts and network a %s page fits a telephone and a desk, and can be read${where}`,
  async (_name, flags) => {
    const { live, runId } = await play(TROUBLED);
    const { page } = await reportOf(live.host, runId);
    const found = measured(browser ?? "", page, flags);
    expect(found.map(({ width }) => width)).toEqual([390, 1280]);
    for (const { width, scrollWidth, fetched, styled, sections, faint, scriptRan } of found) {
      expect(scrollWidth).toBeLessThanOrEqual(width);
      expect([fetched, styled, scriptRan]).toEqual([0, true, false]);
      expect(sections.map(({ id }) => id)).toEqual([
        "HEADER",
        "result",
        "path",
        "timeline",
        "decisions",
        "stages",
        "spending",
        "limits",
        "routes",
        "record",
        "FOOTER",
      ]);
      for (const section of sections) {
        expect(section.height).toBeGreaterThan(20);
        expect(section.width).toBeLessThanOrEqual(width);
      }
      expect(faint).toEqual([]);
    }
  },
);

test.skipIf(browser === undefined)(
  `in a browser the letters of commands, paths and lines stand in their order, whatever their direction${where}`,
  () => {
    const command = "rm \u05d0\u05d1 \u05d2\u05d3 -r";
    const path = "\u05d0\u05d1/\u05d2\u05d3.ts";
    const call = { kind: "call", attempt: 1, turn: 1, state: "refused" } as const;
    const items: readonly TranscriptItem[] = [
      { ...call, callId: "c1", tool: "Bash", input: { command } },
      {
        ...call,
        callId: "c2",
        tool: "Edit",
        input: { file_path: path, old_string: `${path} 1`, new_string: `${path} 2` },
      },
      {
        kind: "command",
        attempt: 1,
        number: 1,
        isPoll: false,
        words: ["\u05d0\u05d1 - \u05d2\u05d3"],
        state: "ok",
        exitCode: 0,
        why: "",
        stdout: "",
        stderr: "",
        files: [],
        ms: 1,
      },
    ];
    const list = new ListBuilder<TranscriptItem>();
    for (const item of items) list.push(item);
    const page = pageOf(runView({ executions: [execution("plan", { items: list.view() })] }));
    const found = z
      .array(z.object({ text: z.string(), inOrder: z.boolean() }))
      .parse(foundIn(dumpPage(browser ?? "", around(page, [1280], ORDER))));
    expect(found.map(({ text }) => text)).toEqual(expect.arrayContaining([command, path, `${path} 1`, `${path} 2`]));
    expect(found.filter(({ inOrder }) => !inOrder)).toEqual([]);
  },
);
