import { describe, expect, test } from "vitest";
import { afterFailure } from "../../packages/stages/src/models/provider-faults.ts";
import type { ModelFailure } from "../../packages/stages/src/models/reply/reply.ts";
import { codesIn, readPage, sectionOf, tableOf } from "./pages.ts";
import { answeredIn, readSources, thrownIn } from "./sources.ts";

const page = readPage("docs/errors.md");
const CLASSES = ["Validation", "Session", "Host", "Cancellation", "ProviderCapability", "ProviderTransient"] as const;
const sources = readSources();
const isTool = ({ path }: { readonly path: string }): boolean => path.startsWith("packages/stages/src/tools/");
const { codes, unread } = thrownIn(sources);

/** `Class code` of each row below a class's heading; every row has a meaning and a fix. */
function listed(className: string): readonly string[] {
  return tableOf(sectionOf(page, `### ${className}`)).map(([code = "", meaning, fix]) => {
    expect(`${code}: ${meaning} ${fix}`).toMatch(/^`[a-z_]+`: \S.* \S.*$/);
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

describe("docs/errors.md says what follows each failure of a model call", () => {
  const rows = tableOf(sectionOf(page, "## Model failures"));
  const kindOf = (code: string, isRetried: boolean): ModelFailure["kind"] =>
    code === "aborted" || code === "context_overflow" ? code : isRetried ? "transient" : "permanent";
  const then = (code: string, isRetried: boolean, now: number): string => {
    const error = { kind: kindOf(code, isRetried), code, message: "" };
    const retry = { maxAttempts: Number.POSITIVE_INFINITY, maxElapsedMs: 300_000, initialMs: 1_000, factor: 2 };
    const policy = { onProviderFault: "suspend", retry } as const;
    return afterFailure(error, { count: 1, since: 0 }, policy, { now, hasFallback: false }).kind;
  };

  test.each(rows)("%s", (cell = "", _meaning, retried = "", written = "") => {
    const [code = ""] = codesIn(cell);
    const isRetried = !retried.startsWith("no");
    expect(then(code, isRetried, 0) === "retry").toBe(isRetried);
    const outcomes = { suspends: ["suspend"], fails: ["fail"], "suspends if retried": ["suspend", "fail"] };
    const found = written === "suspends if retried" ? [true, false] : [isRetried];
    expect(outcomes).toHaveProperty(
      [written],
      found.map((again) => then(code, again, 300_000)),
    );
  });
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
