import { describe, expect, test } from "vitest";
import { codesIn, readPage, sectionOf, tableOf } from "./pages.ts";
import { answeredIn, readSources, thrownIn } from "./sources.ts";

const page = readPage("docs/errors.md");
const CLASSES = ["Validation", "Session", "Host", "Cancellation", "ProviderCapability", "ProviderTransient"] as const;
const sources = readSources();
const isTool = ({ path }: { readonly path: string }): boolean => path.startsWith("packages/stages/src/tools/");
const { codes, unread } = thrownIn(sources);

/** `Class code` of each row below a class's heading; every row has a meaning and a fix. */
function listed(className: string): readonly string[] {
  return tableOf(sectionOf(page, `### ${className}`)).map(([code = "", meaning, mend]) => {
    expect(`${code}: ${meaning} ${mend}`).toMatch(/^`[a-z_]+`: \S.* \S.*$/);
    return `${className} ${codesIn(code)[0]}`;
  });
}

test("every error of the packages is written where this test can read it", () => {
  expect(unread).toEqual([]);
});

describe("docs/errors.md lists the codes of every class, and no others", () => {
  test.each(CLASSES)("%s", (className) => {
    const thrown = [...codes].filter((code) => code.startsWith(`${className} `));
    expect(listed(className).toSorted()).toEqual(thrown.toSorted());
  });

  test("there are no further classes but that of tools, whose errors a model reads", () => {
    const others = [...codes].filter((code) => !CLASSES.some((name) => code.startsWith(`${name} `)));
    expect(others.filter((code) => !code.startsWith("ToolTerminal "))).toEqual([]);
  });
});

test("docs/errors.md lists every code that a tool answers a model with, and no others", () => {
  const thrown = [...codes].filter((code) => code.startsWith("ToolTerminal ")).map((code) => code.split(" ")[1] ?? "");
  const answered = answeredIn(
    sources.filter((source) => isTool(source) || source.path.startsWith("packages/core/src/run/")),
  );
  const rows = tableOf(sectionOf(page, "## What a model reads")).map(([code = ""]) => codesIn(code)[0] ?? "");
  expect(rows.toSorted()).toEqual([...new Set([...thrown, ...answered])].toSorted());
});

test("docs/errors.md lists every failure of a model call, and no others", () => {
  const models = readSources("packages/stages/src/models/reply/{failure,reply-builder}.ts").map(({ text }) => text);
  const used = models.flatMap((text) => [
    ...[...text.matchAll(/kind: (?:"\w+"|[^,]*), code: (?:opened \? )?"([a-z_]+)"/g)].map(([, code = ""]) => code),
    ...[...text.matchAll(/kind: "(?:cut_stream|permanent)",\n\s+code: "([a-z_]+)"/g)].map(([, code = ""]) => code),
    ...[...text.matchAll(/^ {2}AI_\w+: "([a-z_]+)"/gm)].map(([, code = ""]) => code),
    ...[...text.matchAll(/code: [^"\n]*\? "([a-z_]+)" : "([a-z_]+)"/g)].flatMap(([, one = "", other = ""]) => [
      one,
      other,
    ]),
  ]);
  const rows = tableOf(sectionOf(page, "## Model failures")).flatMap(([code = ""]) => codesIn(code));
  expect(rows.toSorted()).toEqual([...new Set(used)].toSorted());
});
