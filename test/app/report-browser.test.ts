import { parseJson } from "@sluice/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { dumpPage, findBrowser } from "../support/browser.ts";
import { reportOf } from "../support/report-kit.ts";
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

function around(page: string, widths: readonly number[]): string {
  const source = page.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const frames = widths.map(
    (width) => `<iframe sandbox="allow-same-origin" width="${width}" height="900" srcdoc="${source}"></iframe>`,
  );
  return `<!doctype html><html><head><meta charset="utf-8"><script>${MEASURE}</script></head><body>${frames.join("")}</body></html>`;
}

function measured(file: string, page: string, flags: readonly string[] = []) {
  const [, found = ""] = /FOUND(.*)DNUOF/s.exec(dumpPage(file, around(page, [390, 1280]), flags)) ?? [];
  const read = parseJson(found.replaceAll("&gt;", ">").replaceAll("&lt;", "<").replaceAll("&amp;", "&"));
  return seen.parse(read.ok ? read.value : undefined);
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
