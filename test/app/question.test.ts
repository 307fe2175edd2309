import { expect, test } from "vitest";
import type { Key } from "../../packages/tui/src/app/keys.ts";
import { Questions } from "../../packages/tui/src/app/question.ts";

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
  press("enter");
  expect(answers).toEqual(["trust 1"]);
});

test("questions come one after another, and the next one is armed anew", () => {
  const { ask, press, wait, answers, questions } = asking();
  ask("one");
  ask("two");
  wait(500);
  press("down");
  press("enter");
  expect(questions.current?.title).toBe("two");
  press("down");
  press("enter");
  expect(answers).toEqual(["one 1"]);
});

function asking() {
  let now = 1_000;
  const answers: string[] = [];
  const questions = new Questions(() => now);
  return {
    questions,
    answers,
    ask: (title: string) =>
      questions.ask({
        title,
        lines: [],
        choices: ["No", "Yes"],
        answer: (choice) => answers.push(`${title} ${choice}`),
      }),
    wait: (ms: number) => {
      now += ms;
    },
    press: (name: Key["name"]) => questions.key({ name, text: "", ctrl: false, alt: false, shift: false }),
  };
}
