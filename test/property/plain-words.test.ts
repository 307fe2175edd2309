// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NO_MASK } from "../../packages/stages/src/secrets/cut-text.ts";
import {
  EXIT_CODE,
  type ExpansionScene,
  expandSingle,
  expandWord,
} from "../../packages/stages/src/tools/bash/language/expand.ts";
import { OutsideLanguage } from "../../packages/stages/src/tools/bash/language/line.ts";
import { readLine } from "../../packages/stages/src/tools/bash/language/read-line.ts";

// What the reader makes of the words of a line is what bash makes of them; where it is not sure, it says so.

/** `SLUICE_TEST_LINES=100000` for the long form. */
const LINES = Number(process.env.SLUICE_TEST_LINES ?? 20_000);
const ENV = { A: "one", B: "two words", C: "", D: "x*", HOME: "/nowhere", PATH: "/usr/bin:/bin", LC_ALL: "C.UTF-8" };

let outer: string;
let folder: string;
beforeAll(() => {
  outer = realpathSync(mkdtempSync(join(tmpdir(), "sluice-words-")));
  folder = join(outer, "here");
  mkdirSync(folder);
  for (const name of ["dir", "dir/sub", "d1", "empty"]) mkdirSync(join(folder, name));
  const files = [
    "a",
    "b",
    "ab",
    "abc",
    "Ab",
    "a b",
    "a.txt",
    "b.txt",
    ".hid",
    "x=1",
    "é",
    "dir/a",
    "dir/b.txt",
    "d1/x",
  ];
  for (const name of [...files, "dir/sub/y", "{a", "a,b", "~", "[a]", "a\\b"]) writeFileSync(join(folder, name), "");
  symlinkSync("dir", join(folder, "link"));
  symlinkSync("nothing", join(folder, "dangling"));
});
afterAll(() => rmSync(outer, { recursive: true }));

const plain = fc.constantFrom(..."ab.x/=,:1-@%+^!#é".split(""), "dir/", "ab", "./", "--o=", "HEAD");
const piece = fc.oneof(
  { weight: 6, arbitrary: plain },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "*",
      "?",
      "[ab]",
      "[a-c]",
      "[!a]",
      "[^b]*",
      "**",
      "*.txt",
      "[",
      "]",
      "[[:alpha:]]",
      "[a",
      ".*",
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "{a,b}",
      "{a,{b,x}}",
      "{,a}",
      "{a}",
      "{}",
      "{",
      "}",
      ",",
      "{a..c}",
      "{1..3}",
      "{'a,b',x}",
      "{a,",
      "{*,b}",
      '{"",a}',
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "'a b'",
      '"a b"',
      "''",
      '""',
      "'*'",
      '"*"',
      '"{a,b}"',
      "'$A'",
      '"\\$A"',
      '"a\\b"',
      '"`"',
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "$A",
      "${A}",
      '"$A"',
      '"${B}"',
      "$B",
      "$C",
      '"$C"',
      "$D",
      '"$D"',
      "$Z",
      '"$Z"',
      "$",
      '"$"',
      '"a$"',
      "$1",
      "$?",
      "$$",
      '"$A[0]"',
      '"$(x)"',
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "\\a",
      "\\*",
      "\\ ",
      "\\{",
      "\\,",
      "\\$",
      "\\\\",
      "\\\n",
      "\\'",
      '\\"',
      "~",
      "\\~",
      "`x`",
      "$'a'",
      '$"a"',
      "&",
      ";",
      "|",
      "<",
      ">",
      "(",
      ")",
      "\n",
      "\t",
      " #c",
      "\u00a0",
    ),
  },
);
const word = fc.array(piece, { minLength: 1, maxLength: 5 }).map((pieces) => pieces.join(""));
const line = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => `p ${words.join(" ")}`);

/** The words after the first, where the line is one plain command without anything else. */
function readWords(text: string): readonly string[] | undefined {
  const scene: ExpansionScene = {
    cwd: folder,
    env: ENV,
    unrecorded: [],
    secrets: NO_MASK,
    changed: new Set(),
    seen: { entries: 0, folders: 0 },
    listed: () => undefined,
  };
  try {
    const [item, ...more] = readLine(text);
    const command = item?.[0]?.pipeline.commands[0]?.command;
    const only = more.length === 0 && item?.length === 1 && item[0]?.pipeline.commands.length === 1;
    if (!only || command?.kind !== "simple" || command.redirects.length + command.assignments.length > 0)
      return undefined;
    const [first, ...rest] = command.words;
    if (first === undefined || expandSingle(first, scene) !== "p") return undefined;
    const words = rest.flatMap((one) => expandWord(one, scene));
    // What stands for `$?` is written as such.
    return words.some((one) => one.includes(EXIT_CODE)) ? undefined : words;
  } catch (thrown) {
    if (thrown instanceof OutsideLanguage) return undefined;
    throw thrown;
  }
}

/** What a function sees as its words in bash, for each line; undefined where it is not run exactly once. */
function bashWords(lines: readonly string[]): readonly (readonly string[] | undefined)[] {
  const program = `
    p() { n=$((n + 1)); w=("$@"); }
    while IFS= read -r -d '' line; do
      n=0; w=()
      eval "$line" 2>/dev/null
      printf '%s\\0%s\\0' "$n" "\${#w[@]}"
      [ "\${#w[@]}" = 0 ] || printf '%s\\0' "\${w[@]}"
    done`;
  const { stdout } = spawnSync("bash", ["--noprofile", "--norc", "-c", program], {
    cwd: folder,
    env: ENV,
    input: lines.map((one) => `${one}\0`).join(""),
    maxBuffer: 1 << 30,
    encoding: "utf8",
  });
  const fields = stdout.split("\0");
  let at = 0;
  return lines.map(() => {
    const runs = fields[at];
    const count = Number(fields[at + 1]);
    const words = fields.slice(at + 2, at + 2 + count);
    at += 2 + count;
    return runs === "1" ? words : undefined;
  });
}

test(`of ${LINES} random lines, every one that is read has the words that bash gives it`, () => {
  expect(execFileSync("bash", ["-c", "echo $BASH_VERSION"], { encoding: "utf8" })).toMatch(/^[45]\./);
  const accepted: { readonly text: string; readonly words: readonly string[] }[] = [];
  for (const text of fc.sample(line, LINES)) {
    const words = readWords(text);
    if (words !== undefined) accepted.push({ text, words });
  }
  // A test that reads nothing would prove nothing.
  expect(accepted.length).toBeGreaterThan(LINES / 6);
  const found: unknown[] = [];
  for (let at = 0; at < accepted.length; at += 5_000) {
    const batch = accepted.slice(at, at + 5_000);
    const bash = bashWords(batch.map(({ text }) => text));
    for (const [index, { text, words }] of batch.entries())
      if (JSON.stringify(words) !== JSON.stringify(bash[index])) found.push({ text, words, bash: bash[index] });
  }
  expect(found.slice(0, 5)).toEqual([]);
});
