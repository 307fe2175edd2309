import { expect, test } from "vitest";
import { Questions, questionLines } from "../../packages/tui/src/app/overlay/question.ts";
import type { Key } from "../../packages/tui/src/composer/keys.ts";
import type { Line } from "../../packages/view/src/text/line.ts";

test("a question starts with its first choice, the safe one, and Esc is that one", () => {
  const { ask, press, wait, answers } = asking();
  ask("first");
  ask("second");
  wait(500);
  press("enter");
  wait(500);
  press("down");
  press("escape");
  expect(answers).toEqual(["first 0", "second 0"]);
});

test("a key that was typed for something else answers nothing: 400 ms without any come first", () => {
  const { ask, press, wait, answers } = asking();
  ask("trust");
  for (let times = 0; times < 20; times += 1) {
    press(times % 2 === 0 ? "down" : "enter");
    wait(300);
  }
  expect(answers).toEqual([]);
  wait(400);
  press("down");
  wait(250);
  press("enter");
  expect(answers).toEqual(["trust 1"]);
});

test("questions come one after another, and the next one is armed again", () => {
  const { ask, press, wait, answers, questions } = asking();
  ask("one");
  ask("two");
  wait(500);
  press("down");
  wait(250);
  press("enter");
  expect(questions.current?.title).toBe("two");
  press("down");
  press("enter");
  expect(answers).toEqual(["one 1"]);
});

test("what is typed ahead with pauses answers nothing but the safe choice: a completion, an arrow and Enter, text and Enter", () => {
  const { ask, press, wait, answers, questions } = asking();
  ask("trust");
  wait(500);
  expect(press("text")).toBe(false);
  wait(300);
  press("down");
  press("enter");
  expect(answers).toEqual([]);
  wait(500);
  press("tab");
  wait(500);
  press("down");
  press("enter");
  expect(questions.current?.title).toBe("trust");
  wait(500);
  press("text");
  wait(500);
  press("enter");
  expect(answers).toEqual(["trust 0"]);
});

test("an answer in words is for the question that was shown, not for the one behind it", () => {
  const { ask, answers, questions } = asking();
  ask("one");
  ask("two");
  const shown = questions.current;
  if (shown === undefined) throw new Error("nothing is asked");
  questions.answer(shown, 1);
  questions.answer(shown, 1);
  expect(answers).toEqual(["one 1"]);
});

test("names of files neither push the title and the choices of a question away, nor pass for a choice", () => {
  const { ask, questions } = asking(
    Array.from({ length: 20 }, (_, at) => [
      { text: `  ${at}${"x".repeat(30)} ❯ Not now: nothing is loaded ${"y".repeat(300)}` },
    ]),
  );
  ask(`The code of /${"a".repeat(4_000)} runs with your rights:`);
  for (const [width, height] of [
    [80, 22],
    [20, 5],
    [200, 50],
  ] as const) {
    if (questions.current === undefined) throw new Error("nothing is asked");
    const rows = questionLines(questions.current, { width, height }).map((line) =>
      line.map(({ text }) => text).join(""),
    );
    expect(rows.length).toBeLessThanOrEqual(height);
    expect(rows[0]).toMatch(/^The code of/);
    expect(rows.slice(-2)).toEqual(["❯ No", "  Yes"]);
    expect(rows.slice(0, -2).filter((row) => /^\s*❯/.test(row))).toEqual([]);
  }
});

function asking(lines: readonly Line[] = []) {
  let now = 1_000;
  const answers: string[] = [];
  const questions = new Questions(() => now);
  return {
    questions,
    answers,
    ask: (title: string) =>
      questions.ask({
        title,
        lines,
        choices: ["No", "Yes"],
        answer: (choice) => answers.push(`${title} ${choice}`),
      }),
    wait: (ms: number) => {
      now += ms;
    },
    press: (name: Key["name"]) => questions.key({ name, text: "", ctrl: false, alt: false, shift: false }),
  };
}
