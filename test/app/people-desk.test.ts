import { describe, expect, test } from "vitest";
import { answerFailed, answerSent } from "../../packages/tui/src/cards/card-stack.ts";
import { ctrl, deskOf, grant, key, question, typed } from "../support/desk.ts";

const rm = grant({ command: "rm -rf build" });
const ls = grant({ command: "ls" }, { requestId: "execute#1/a1/t3.c1" });
const cat = grant({ command: "cat a" }, { runId: "r1/fan-2/lint", requestId: "lint#1/a1/t1.c0" });
const TAB = key("tab");
const UP = key("up");
const DOWN = key("down");
const ENTER = key("enter");
const ESC = key("escape");

describe("a card that comes up", () => {
  test("leaves every key but Tab and Esc to the composer", () => {
    const at = deskOf(rm);
    for (const pressed of [typed("y"), typed("1"), ENTER, UP, DOWN, key("paste", "y\n"), ctrl("n"), key("pageDown")])
      expect(at.press(pressed)).toBe(false);
    expect(at.sent).toEqual([]);
    expect(at.up?.open.focused).toBe(false);
  });

  test.each([
    ["Tab", TAB],
    ["Esc", ESC],
  ])("takes %s and does nothing with it until it stood for 400 ms", (_, pressed) => {
    const at = deskOf(rm);
    expect(at.press(pressed, 399)).toBe(true);
    expect(at.up?.open.focused).toBe(false);
    expect(at.press(pressed, 400)).toBe(true);
    expect(at.up?.open.focused).toBe(true);
    expect(at.sent).toEqual([]);
  });

  test("is not focused while a person types, also where another took the keys", () => {
    const at = deskOf(rm);
    for (let times = 0; times < 20; times += 1) {
      at.pressElsewhere(399);
      expect(at.press(TAB, 1)).toBe(true);
      expect(at.up?.open.focused).toBe(false);
    }
    at.press(TAB, 400);
    expect(at.up?.open.focused).toBe(true);
  });

  test("waits from the frame it was first drawn in, not from when it was asked", () => {
    const at = deskOf();
    at.ask([rm]);
    at.pressUndrawn(TAB, 10_000);
    expect(at.up?.open.focused).toBe(false);
    at.draw();
    expect(at.press(TAB, 399)).toBe(true);
    expect(at.up?.open.focused).toBe(false);
  });

  test("waits again after something covered it", () => {
    const at = deskOf(rm);
    at.press(TAB);
    at.hide();
    expect(at.up?.open.focused).toBe(false);
    at.pressUndrawn(TAB, 10_000);
    expect(at.up?.open.focused).toBe(false);
  });

  test("waits again when the clock is put back", () => {
    const at = deskOf(rm);
    at.pressUndrawn(TAB, -3_600_000);
    expect(at.up?.open.focused).toBe(false);
    expect(at.press(TAB, 399)).toBe(true);
    expect(at.up?.open.focused).toBe(false);
    at.press(TAB, 400);
    expect(at.up?.open.focused).toBe(true);
  });
});

describe("a focused card", () => {
  test("starts on Deny, and approves with Up, a pause, Enter: exactly this request, once", () => {
    const at = deskOf(rm);
    at.press(TAB);
    expect(at.selected).toBe("deny");
    at.press(UP);
    expect(at.selected).toBe("approve");
    at.press(ENTER, 250);
    at.press(ENTER);
    expect(at.sent).toEqual([{ key: expect.any(String), request: rm, answer: { kind: "approve" } }]);
  });

  test("ignores an Enter that follows a key too soon, and takes the next", () => {
    const at = deskOf(rm);
    at.press(TAB);
    at.press(UP);
    at.press(ENTER, 249);
    expect(at.sent).toEqual([]);
    expect(at.up?.open.hint).toContain("very soon");
    at.press(ENTER, 250);
    expect(at.sent).toHaveLength(1);
  });

  test("does not go around: Down, however often, never comes to Approve", () => {
    const at = deskOf(rm);
    at.press(TAB);
    for (let times = 0; times < 20; times += 1) {
      at.press(DOWN, 30);
      expect(at.selected).not.toBe("approve");
    }
    for (let times = 0; times < 20; times += 1) at.press(UP, 30);
    expect(at.selected).toBe("approve");
  });

  test("denies with Enter and with Esc", () => {
    for (const pressed of [ENTER, ESC]) {
      const at = deskOf(rm);
      at.press(TAB);
      at.press(pressed);
      expect(at.sent.map(({ answer }) => answer)).toEqual([{ kind: "deny" }]);
    }
  });

  test.each([
    ["a letter", typed("y")],
    ["a digit", typed("1")],
    ["a space", typed(" ")],
    ["a paste that ends in a line break", key("paste", "yes\n")],
  ])("gives %s to the composer, and the focus with it", (_, pressed) => {
    const at = deskOf(rm);
    at.press(TAB);
    at.press(UP);
    expect(at.press(pressed)).toBe(false);
    expect(at.up?.open.focused).toBe(false);
    expect(at.selected).toBe("deny");
    expect(at.press(ENTER)).toBe(false);
    expect(at.sent).toEqual([]);
  });

  test("leaves the app its own chords, and no others", () => {
    const at = deskOf(rm);
    at.press(TAB);
    expect(at.press(ctrl("c"))).toBe(false);
    expect(at.press(key("enter", "", { alt: true }))).toBe(true);
    expect(at.press(key("enter", "", { ctrl: true }))).toBe(true);
    expect(at.up?.open.focused).toBe(true);
    expect(at.sent).toEqual([]);
  });

  test("is left by Tab", () => {
    const at = deskOf(rm);
    at.press(TAB);
    expect(at.press(TAB)).toBe(true);
    expect(at.up?.open.focused).toBe(false);
  });

  test.each([
    ["approve a call", rm, ["tab", "up"], { kind: "approve" }],
    ["choose an answer", question({ enum: ["run", "reject"] }), ["tab", "down"], { kind: "value", value: "run" }],
  ] as const)("does not %s that was not shown to its end", (_what, request, keys, answer) => {
    const at = deskOf();
    at.ask([request]);
    const shown = (from: number, to: number): void => {
      at.show(at.up?.card.key ?? "", { from, to, lines: 30 });
    };
    const press = (name: Parameters<typeof key>[0]): void => {
      at.pressUndrawn(key(name), 500);
    };
    shown(0, 10);
    for (const name of [...keys, "enter"] as const) press(name);
    expect(at.sent).toEqual([]);
    expect(at.up?.open.hint).toContain("not all of it was shown");
    press("pageDown");
    expect(at.up?.open.scroll).toBe(9);
    shown(9, 19);
    press("enter");
    expect(at.sent).toEqual([]);
    press("end");
    expect(at.up?.open.scroll).toBe(20);
    shown(20, 30);
    press("enter");
    expect(at.sent.map((one) => one.answer)).toEqual([answer]);
  });

  test("does not send a written answer to what was not shown to its end, but denies it", () => {
    for (const [request, keys, sent] of [
      [question({ type: "string" }), ["tab", "enter"], []],
      [rm, ["tab", "down", "enter"], [{ kind: "deny", reason: "Yes." }]],
    ] as const) {
      const at = deskOf();
      at.ask([request]);
      at.show(at.up?.card.key ?? "", { from: 0, to: 10, lines: 30 });
      for (const name of keys) at.pressUndrawn(key(name), 500);
      at.pressUndrawn(typed("Yes."), 500);
      at.pressUndrawn(ENTER, 500);
      expect(at.sent.map(({ answer }) => answer)).toEqual(sent);
    }
  });

  test("does not approve where no line of it has room", () => {
    const at = deskOf();
    at.ask([rm]);
    at.show(at.up?.card.key ?? "", { from: 0, to: 0, lines: 30 });
    for (const name of ["tab", "up", "end", "enter"] as const) at.pressUndrawn(key(name), 500);
    expect(at.sent).toEqual([]);
  });

  test("has to be read to its end again only where it was not before a resize", () => {
    const at = deskOf(rm);
    at.draw(40, 12);
    expect(at.up?.open.seen).toBe(40);
    const part = deskOf();
    part.ask([rm]);
    part.draw(40, 30);
    part.draw(20, 5);
    expect(part.up?.open.seen).toBe(5);
  });
});

describe("what cannot be approved on a card", () => {
  const approve = (request: typeof rm) => {
    const at = deskOf(request);
    at.press(TAB);
    at.press(UP);
    at.press(ENTER);
    return at;
  };
  test.each([
    ["arguments that are not those of the digest", { ...rm, body: { ...rm.body, input: { command: "ls" } } }],
    ["arguments that are missing", { ...rm, body: { tool: "Bash" } }],
    ["arguments with half a letter", { ...rm, body: { ...rm.body, input: { command: "\ud800" } } }],
    ["arguments too long to be shown", grant({ command: `ls ${"a".repeat(300_000)}` })],
    ["10 MB of arguments", grant({ command: "x".repeat(10_000_000) })],
  ])("%s", (_, request) => {
    const at = approve(request);
    expect(at.sent).toEqual([]);
    expect(at.up?.open.hint).toContain("cannot be approved here");
    at.press(DOWN);
    at.press(ENTER);
    expect(at.sent.map(({ answer }) => answer)).toEqual([{ kind: "deny" }]);
  });

  test("but arguments that a schema filled in can, with those that were digested beside them", () => {
    const proposed = { command: "ls" };
    const request = grant(proposed, { body: { input: { command: "ls", timeout: 1 }, proposed } });
    expect(approve(request).sent).toHaveLength(1);
  });
});

describe("several cards", () => {
  test("come up one after another; what comes after an answer is unfocused, unarmed and on Deny", () => {
    const at = deskOf(rm, ls);
    at.press(TAB);
    at.press(UP);
    at.press(ENTER);
    expect(at.up?.card.request).toBe(ls);
    expect([at.up?.open.focused, at.up?.open.armed, at.selected]).toEqual([false, false, "deny"]);
    expect(at.press(TAB, 399)).toBe(true);
    expect(at.up?.open.focused).toBe(false);
  });

  test("a new one does not take the place of the one that is up", () => {
    const at = deskOf(rm);
    at.press(TAB);
    at.requests(rm, ls);
    expect(at.up?.card.request).toBe(rm);
    expect(at.up?.open.focused).toBe(true);
  });

  test("Ctrl+N and Ctrl+P look through them, with the focus, but what comes up is not armed", () => {
    const at = deskOf(rm, ls, cat);
    at.press(TAB);
    at.press(UP);
    expect(at.press(ctrl("n"))).toBe(true);
    expect(at.up?.card.request).toBe(ls);
    expect([at.up?.open.focused, at.selected]).toEqual([true, "deny"]);
    for (const pressed of [UP, ENTER, ESC]) expect(at.press(pressed, 300)).toBe(true);
    expect([at.sent, at.selected]).toEqual([[], "deny"]);
    at.press(ctrl("p"));
    at.press(ctrl("p"));
    expect(at.up?.card.request).toBe(cat);
  });

  test("one that is put off goes to the end and comes back as new; when all are, none is up until Tab", () => {
    const at = deskOf(rm, ls);
    const defer = (): void => {
      at.press(TAB);
      for (let times = 0; times < 2; times += 1) at.press(DOWN);
      at.press(ENTER);
    };
    defer();
    expect(at.sent).toEqual([]);
    expect(at.up?.card.request).toBe(ls);
    defer();
    expect(at.up).toBeUndefined();
    at.press(typed("a"));
    expect(at.press(TAB, 399)).toBe(false);
    expect(at.press(TAB)).toBe(true);
    expect(at.up?.card.request).toBe(rm);
    expect([at.up?.open.focused, at.selected]).toEqual([false, "deny"]);
  });

  test("one that is asked again comes up although others were put off", () => {
    const at = deskOf(rm);
    at.press(TAB);
    at.press(DOWN);
    at.press(DOWN);
    at.press(ENTER);
    at.requests(rm, ls);
    expect(at.up?.card.request).toBe(ls);
  });
});

describe("a request that is answered elsewhere", () => {
  test("takes its card away, says so, and sends nothing, although Enter is pressed", () => {
    const at = deskOf(rm, ls);
    at.press(TAB);
    at.press(UP);
    at.pass(300).requests(ls);
    expect(at.press(ENTER, 1)).toBe(true);
    expect(at.press(ENTER, 1)).toBe(true);
    expect(at.sent).toEqual([]);
    expect(at.notices).toEqual(["Bash (r1 execute#1/a1/t3.c0): answered elsewhere, or no longer needed"]);
    expect([at.up?.card.request, at.up?.open.focused]).toEqual([ls, false]);
  });

  test("keys on their way to a card that went away do not reach the composer; what is typed does", () => {
    const at = deskOf(rm);
    at.press(TAB);
    at.press(UP);
    at.pass(100).requests();
    expect(at.press(ENTER, 299)).toBe(true);
    expect(at.press(typed("a"), 10)).toBe(false);
    expect(at.press(ENTER, 10)).toBe(false);
  });

  test("a key 400 ms after the previous one is not for the card that went away, nor are those after it", () => {
    const at = deskOf(rm);
    at.press(TAB);
    at.press(UP);
    at.pass(100).requests();
    expect(at.press(ENTER, 300)).toBe(false);
    expect(at.press(ENTER, 10)).toBe(false);
  });

  test("nor are those after a pause that ended with a key for something else", () => {
    const at = deskOf(rm);
    at.press(TAB);
    at.requests();
    at.pressElsewhere(400);
    expect(at.press(ENTER, 10)).toBe(false);
  });

  test("the same id about something else is another card", () => {
    const at = deskOf(rm);
    at.press(TAB);
    at.press(UP);
    const other = grant({ command: "rm -rf /" }, { requestId: rm.requestId });
    at.pass(300).requests(other);
    at.press(ENTER, 1);
    expect(at.sent).toEqual([]);
    expect([at.up?.card.request, at.up?.open.focused, at.selected]).toEqual([other, false, "deny"]);
  });
});

describe("an answer on its way", () => {
  const sending = () => {
    const at = deskOf(rm, ls);
    at.press(TAB);
    at.press(ENTER);
    const [{ key: sent, answer } = { key: "", answer: { kind: "deny" as const } }] = at.sent;
    return { at, sent, answer };
  };
  test("is reported when it is accepted, and its request does not come back", () => {
    const { at, sent, answer } = sending();
    at.requests(ls);
    at.take(answerSent(at.stack, sent, answer, "accepted"));
    at.requests(rm, ls);
    expect(at.notices).toEqual(["denied Bash (r1 execute#1/a1/t3.c0)"]);
    expect(at.stack.cards.map(({ request }) => request)).toEqual([ls]);
  });

  test.each([
    ["already_answered", "not accepted: Bash (r1 execute#1/a1/t3.c0) was already answered"],
    ["digest_mismatch", "not accepted: the content of Bash (r1 execute#1/a1/t3.c0) changed; look again"],
    ["unknown", "not accepted: Bash (r1 execute#1/a1/t3.c0) is no longer open"],
  ] as const)("that is refused as %s says why", (outcome, why) => {
    const { at, sent, answer } = sending();
    at.take(answerSent(at.stack, sent, answer, outcome));
    expect(at.notices).toEqual([why]);
  });

  test("that cannot be sent brings its card back, unfocused", () => {
    const { at, sent } = sending();
    at.take(answerFailed(at.stack, sent, "the store is full"));
    expect(at.notices[0]).toContain("the store is full");
    at.requests(rm);
    expect([at.up?.card.request, at.up?.open.focused]).toEqual([rm, false]);
  });

  test("a held Enter after it reaches neither the next card nor the composer", () => {
    const { at } = sending();
    for (let times = 0; times < 20; times += 1) expect(at.press(ENTER, 30)).toBe(true);
    expect(at.sent).toHaveLength(1);
    expect(at.press(ENTER, 400)).toBe(false);
    expect(at.sent).toHaveLength(1);
  });
});

describe("a reason", () => {
  const writing = () => {
    const at = deskOf(rm);
    at.press(TAB);
    at.press(DOWN);
    at.press(ENTER);
    return at;
  };
  test("is written on the card and sent with Enter", () => {
    const at = writing();
    for (const letter of "not tdoay") at.press(typed(letter), 80);
    for (let times = 0; times < 4; times += 1) at.press(key("backspace"), 80);
    at.press(typed("oday"), 80);
    at.press(ENTER, 80);
    expect(at.sent.map(({ answer }) => answer)).toEqual([{ kind: "deny", reason: "not today" }]);
  });

  test("Esc leaves the line before it denies anything; what was written stays", () => {
    const at = writing();
    at.press(typed("because"));
    at.press(ESC);
    expect([at.up?.open.writing, at.up?.open.editor.text, at.sent]).toEqual([false, "because", []]);
    at.press(ESC, 249);
    expect(at.sent).toEqual([]);
    at.press(ESC, 250);
    expect(at.sent.map(({ answer }) => answer)).toEqual([{ kind: "deny" }]);
  });

  test("nothing pasted sends it: neither a paste nor lines that come in one piece", () => {
    const at = writing();
    at.press(key("paste", "one\ntwo\n"));
    at.press(typed("three"), 0);
    at.press(ENTER, 0);
    expect(at.sent).toEqual([]);
    expect(at.up?.open.editor.text).toBe("one\ntwo\nthree\n");
    for (const pressed of [ctrl("u"), ctrl("w"), key("home"), ctrl("z")]) at.press(pressed);
    at.press(ENTER);
    expect(at.sent).toHaveLength(1);
  });

  test("an empty one is not sent, nor one too long written", () => {
    const at = writing();
    at.press(ENTER);
    expect(at.sent).toEqual([]);
    at.press(key("paste", "x".repeat(30_000)));
    expect(at.up?.open.editor.text).toBe("");
    expect(at.up?.open.hint).toContain("20,000");
  });
});

describe("a question", () => {
  const focused = (answer: Parameters<typeof question>[0]) => {
    const at = deskOf(question(answer));
    at.press(TAB);
    return at;
  };
  test("with a list has nothing selected, and Enter does nothing then", () => {
    const at = focused({ type: "string", enum: ["red", "blue"] });
    expect(at.selected).toBeUndefined();
    at.press(ENTER);
    expect(at.sent).toEqual([]);
    at.press(DOWN);
    at.press(DOWN);
    at.press(ENTER);
    expect(at.sent.map(({ answer }) => answer)).toEqual([{ kind: "value", value: "blue" }]);
  });

  test.each([
    ["a boolean", { type: "boolean" }, [true, false]],
    ["constants", { anyOf: [{ const: 1 }, { const: "two" }] }, [1, "two"]],
    ["one constant", { const: null }, [null]],
  ])("with %s is a list too", (_, schema, values) => {
    const at = focused(schema);
    expect(at.up?.card.form.options.flatMap((option) => (option.kind === "value" ? [option.value] : []))).toEqual(
      values,
    );
  });

  test.each([
    ["text", { type: "string", minLength: 1 }, "as it is", "as it is"],
    ["a number", { type: "integer" }, "12", 12],
    ["an object", { type: "object", properties: { n: { type: "number" } }, required: ["n"] }, '{"n": 1}', { n: 1 }],
  ])("for %s is written", (_, schema, written, value) => {
    const at = focused(schema);
    expect(at.selected).toBe("write");
    at.press(ENTER);
    at.press(typed(written));
    at.press(ENTER);
    expect(at.sent.map(({ answer }) => answer)).toEqual([{ kind: "value", value }]);
  });

  test("takes no answer that does not fit, and says what is wrong", () => {
    const at = focused({ type: "integer", minimum: 3 });
    at.press(ENTER);
    at.press(typed("two"));
    at.press(ENTER);
    expect(at.sent).toEqual([]);
    expect(at.up?.open.hint).toContain("integer");
  });

  test("can be declined and put off", () => {
    const at = focused({ type: "boolean" });
    at.press(ESC);
    expect(at.sent.map(({ answer }) => answer)).toEqual([{ kind: "deny" }]);
  });

  test("a list of very many is written instead", () => {
    expect(focused({ enum: Array.from({ length: 51 }, (_, at) => at) }).selected).toBe("write");
  });
});
