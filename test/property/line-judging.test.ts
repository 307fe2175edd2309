// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { LONG_LINES } from "../fixtures/shell/long-lines.ts";
import { lineIn, printedLine } from "../support/lines.ts";

// Whatever a model writes is judged in a bounded number of steps, and what is written from it is judged alike.

const root = realpathSync(fileURLToPath(new URL("../..", import.meta.url)));

const token = fc.constantFrom(
  ..."ls cat git log diff find . -exec {} + ; ; grep -rn foo src xargs wc -l sed s/a/b/ awk {print} jq .a && || | |& ! ( ) < > 2>&1 >/dev/null".split(
    " ",
  ),
  ..."'a b' \"$HOME\" $X * ?.md {a,b} [a-z]* ~ \\ # \n CI=1 X=1 cd packages env timeout 5 bash -c 'ls' echo printf %s test -f a [ ] true exit".split(
    " ",
  ),
  ..."$(x) `x` <(x) <<EOF & for do done if then fi $((1)) ${x} ${x:-y} ../.. /etc/passwd -- - --output=x -o .sluice".split(
    " ",
  ),
);
const line = fc
  .array(fc.tuple(token, fc.constantFrom(" ", " ", " ", "", "\t", "\n")), { minLength: 1, maxLength: 25 })
  .map((parts) => parts.map((pair) => pair.join("")).join(""));

test.each([...LONG_LINES])("16 KB of %s are judged, or said to be too much", (_, text) => {
  expect(text.length).toBeLessThanOrEqual(16 * 1024);
  expect(lineIn(root, text).length).toBeGreaterThan(0);
});

test("what is written from a line is judged to do no less than the line itself", () => {
  let read = 0;
  for (const text of fc.sample(line, 3_000)) {
    const subjects = lineIn(root, text);
    const again = lineIn(root, printedLine(subjects) ?? "");
    const reading = (all: typeof subjects) =>
      all.flatMap((subject) => (subject.kind === "command" ? [subject.readOnly] : []));
    if (printedLine(again) === undefined) continue;
    read += 1;
    const before = reading(subjects);
    expect([text, reading(again).filter((only, at) => only && before[at] === false)]).toEqual([text, []]);
  }
  expect(read).toBeGreaterThan(300);
});

/** Commands that say where they ran and how they ended. */
const command = fc.constantFrom(
  ..."true,false,echo $?,echo \"code $?\",[ $? -eq 0 ],exit $?,echo a,echo b c,printf '%s|' x y,test -f a,test -d sub,[ x = x ],cat a,cat a b,cat none,ls,ls sub,wc -l a b,head -n 1 a,pwd,cd sub,cd .,cd none,exit 3,sort a,grep one a,grep -c o *,echo *,echo {p,q}*,cat < a,cat a > /dev/null,cat none 2>&1,cat none 2>/dev/null,echo e >&2,ls none &>/dev/null,: x,timeout 5 cat a,env CI=1 cat b,bash -c 'cat a; false',sh -c 'echo x && pwd',find . -name a,find . -name '*' | xargs wc -c,nice cat a,set -e,CI=1 cat a,export CI=2".split(
    ",",
  ),
);
const joint = fc.constantFrom(
  "; ",
  "\n",
  " && ",
  " || ",
  " | ",
  " |& ",
  " && ! ",
  "; ( ",
  " ); ",
  " && ( ",
  " ) || ",
  "; time ",
);
const composed = fc
  .array(fc.tuple(command, joint), { minLength: 1, maxLength: 5 })
  .map((parts) => parts.flat().slice(0, -1).join(""));

test("what is written from a line prints what the line prints, and ends as it ends", () => {
  const here = realpathSync(mkdtempSync(join(tmpdir(), "sluice-lines-")));
  onTestFinished(() => rmSync(here, { recursive: true }));
  mkdirSync(join(here, "sub"));
  writeFileSync(join(here, "a"), "one\ntwo\n");
  writeFileSync(join(here, "b"), "two\nthree\n");
  writeFileSync(join(here, "sub/c"), "c\n");
  const env = { PATH: "/usr/bin:/bin", LANG: "C.UTF-8", HOME: here };
  const run = (text: string) => {
    const ended = spawnSync("/bin/bash", ["--noprofile", "--norc", "-c", "--", text], {
      cwd: here,
      env,
      encoding: "utf8",
    });
    // What runs is called by its whole path, which it may print.
    return { out: ended.stdout.replaceAll("/usr/bin/", ""), code: ended.status };
  };
  let read = 0;
  for (const text of fc.sample(composed, Number(process.env.SLUICE_TEST_LINES ?? 6_000) / 10)) {
    const printed = printedLine(lineIn(here, text, env));
    if (printed === undefined) continue;
    read += 1;
    expect({ text, ...run(printed) }).toEqual({ text, ...run(text) });
  }
  expect(read).toBeGreaterThan(100);
});
