import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { analyseShell, type ShellCommand, type ShellFacts } from "../../packages/stages/src/tools/shell/analyse.ts";
import { BashRecorder, findRecordingBash } from "../support/bash-recorder.ts";
import { brokenLine, grammarLine, soupLine } from "../support/shell-lines.ts";

type Facts = Extract<ShellFacts, { ok: true }>;

/** Whether words that ran are a reported command; a dynamic word may have become any number of words. */
function matches(ran: readonly string[], command: ShellCommand, word = 0, at = 0): boolean {
  if (at === command.argv.length) return word === ran.length;
  if (command.dynamic[at] !== true) {
    return word < ran.length && ran[word] === command.argv[at] && matches(ran, command, word + 1, at + 1);
  }
  for (let next = word; next <= ran.length; next++) if (matches(ran, command, next, at + 1)) return true;
  return false;
}

/** A command whose own name is dynamic stands for anything, so such a line proves nothing. */
function isCertain(facts: Facts): boolean {
  return facts.commands.every((command) => command.dynamic[0] !== true);
}

const shell = findRecordingBash();

describe.skipIf(shell === undefined)("what bash runs was reported", () => {
  test.each([
    ["lines as people write them", grammarLine, 300],
    ["lines with mistakes in them", brokenLine, 500],
    ["pieces of shell in any order", soupLine, 400],
  ] as const)("%s", { timeout: 120_000 }, async (_, lines, numRuns) => {
    using bash = new BashRecorder(shell ?? "");
    let checked = 0;
    const property = fc.asyncProperty(lines, async (line) => {
      const facts = analyseShell(line);
      if (!facts.ok || !isCertain(facts)) return;
      const { ran, files } = await bash.run(line);
      checked += ran.length;
      for (const words of ran)
        expect(
          facts.commands.some((command) => matches(words, command)),
          JSON.stringify(words),
        ).toBe(true);
      const written = facts.paths.filter((path) => path.access === "write");
      for (const file of files)
        expect(
          written.some((path) => path.dynamic || path.path === file),
          file,
        ).toBe(true);
    });
    await fc.assert(property, { numRuns });
    expect(checked).toBeGreaterThan(0);
  });

  test("the recorder sees commands and files", async () => {
    using bash = new BashRecorder(shell ?? "");
    const { ran, files } = await bash.run("aa 'b c' \"$(dd)\" > f; { ee & } ; (gg)");
    expect(ran.map((words) => words.join("|")).toSorted()).toEqual(["aa|b c|", "dd", "ee", "gg"]);
    expect(files).toEqual(["f"]);
  });
});

const plainText = fc.string({
  unit: fc.constantFrom(...'aZ0 -_./$`"\\*?[]{}()<>|&;!#~=:,%@^+é日\n\t'.split("")),
  maxLength: 12,
});

test("quoted words are reported as they are", () => {
  const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
  const property = fc.property(
    fc.array(fc.oneof(plainText, fc.constant("it's")), { minLength: 1, maxLength: 6 }),
    (words) => {
      const facts = analyseShell(["aa", ...words.map(quoted)].join(" "));
      // A backslash at the end of a line is refused wherever it stands.
      if (words.some((word) => word.includes("\\\n"))) return;
      expect(facts.ok && facts.commands.map((command) => command.argv)).toEqual([["aa", ...words]]);
    },
  );
  fc.assert(property, { numRuns: 500 });
});

test("any text gives facts or a refusal, the same ones each time", () => {
  const text = fc.oneof(fc.string({ unit: "binary", maxLength: 200 }), soupLine, brokenLine);
  const property = fc.property(text, (line) => {
    const facts = analyseShell(line);
    expect(analyseShell(line)).toEqual(facts);
    if (!facts.ok) return;
    for (const command of facts.commands) {
      expect(command.argv.length).toBeGreaterThan(0);
      expect(command.dynamic).toHaveLength(command.argv.length);
      for (const [at, word] of command.argv.entries()) expect(word.startsWith("\u0001")).toBe(command.dynamic[at]);
      if (command.dynamic[0] === true || command.assignments.length > 0) expect(command.readOnly).toBe(false);
    }
  });
  fc.assert(property, { numRuns: 400 });
});

test("a command is found behind any number of wrappers and quotes", () => {
  const wrap = fc.constantFrom<(line: string) => string>(
    (line) => `env ${line}`,
    (line) => `timeout -k 1 5 nice -n 3 ${line}`,
    (line) => `sh -c '${line.replaceAll("'", "'\\''")}'`,
    (line) => `bash -ec "${line.replace(/[\\"$`]/g, "\\$&")}"`,
    (line) => `xargs -n1 ${line}`,
    (line) => `find . -exec ${line} \\;`,
    (line) => `sudo -u root ${line}`,
  );
  const property = fc.property(fc.array(wrap, { maxLength: 5 }), (wraps) => {
    const facts = analyseShell(wraps.reduce((line, add) => add(line), "sluice answer r1 q1 approve"));
    const found =
      facts.ok &&
      facts.commands.some((command) => command.argv.slice(0, 5).join(" ") === "sluice answer r1 q1 approve");
    expect(found).toBe(true);
  });
  fc.assert(property, { numRuns: 300 });
});
