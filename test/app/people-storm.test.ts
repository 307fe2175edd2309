import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Key } from "../../packages/tui/src/composer/keys.ts";
import { ctrl, deskOf, grant, key, question, type TestDesk, typed } from "../support/desk.ts";

const KEYS: readonly Key[] = [
  key("tab"),
  key("tab", "", { shift: true }),
  key("up"),
  key("up"),
  key("down"),
  key("enter"),
  key("enter"),
  key("enter", "", { alt: true }),
  key("escape"),
  typed("y"),
  typed("1"),
  typed(" "),
  typed("approve"),
  key("paste", "approve\n"),
  key("paste", "\n"),
  ctrl("n"),
  ctrl("p"),
  ctrl("a"),
  key("left"),
  key("right"),
  key("home"),
  key("end"),
  key("pageUp"),
  key("pageDown"),
  key("backspace"),
  key("delete"),
];

const requests = [
  grant({ command: "one" }),
  grant({ command: "two" }, { requestId: "execute#1/a1/t3.c1" }),
  question({ type: "string", enum: ["a", "b"] }),
  grant({ command: "three" }, { runId: "r2" }),
  question({ type: "string" }, "And now?"),
];

/** What happens: a key after a gap, that another may take, or another list of open requests. */
type Happening =
  | { readonly kind: "key"; readonly key: Key; readonly gap: number; readonly taken: boolean }
  | { readonly kind: "open"; readonly count: number; readonly from: number };

const happenings = (gap: fc.Arbitrary<number>): fc.Arbitrary<Happening> =>
  fc.oneof(
    {
      weight: 30,
      arbitrary: fc.record({
        kind: fc.constant("key" as const),
        key: fc.constantFrom(...KEYS),
        gap,
        taken: fc.integer({ min: 0, max: 7 }).map((one) => one === 0),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("open" as const),
        count: fc.integer({ min: 0, max: requests.length }),
        from: fc.integer({ min: 0, max: requests.length }),
      }),
    },
  );

function happen(at: TestDesk, one: Happening): void {
  if (one.kind === "open") {
    at.requests(...requests.slice(one.from, one.from + one.count));
    return;
  }
  if (one.taken && at.up?.open.focused !== true) at.pressElsewhere(one.gap);
  else at.pressUndrawn(one.key, one.gap);
  at.draw();
}

describe("a key storm", () => {
  test("of keys of all kinds with gaps under 400 ms never answers anything, while cards come and go", () => {
    fc.assert(
      fc.property(fc.array(happenings(fc.integer({ min: 0, max: 399 })), { maxLength: 400 }), (all) => {
        const at = deskOf(...requests);
        for (const one of all) happen(at, one);
        expect(at.sent).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test("10,000 keys long neither", () => {
    const at = deskOf(...requests);
    let seed = 1;
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let times = 0; times < 10_000; times += 1) {
      const pressed = KEYS[random(KEYS.length)] ?? key("enter");
      happen(at, { kind: "key", key: pressed, gap: random(400), taken: false });
    }
    expect(at.sent).toEqual([]);
    expect(at.up?.open.focused).toBe(false);
  });
});

describe("keys at any pace", () => {
  const gap = fc.oneof(
    fc.integer({ min: 0, max: 2_000 }),
    fc.constantFrom(249, 250, 399, 400, 600),
    fc.integer({ min: 400, max: 700 }),
  );
  /** Someone who wants to, with other keys in between. */
  const meant: readonly Key[] = [key("tab"), key("up"), key("enter")];

  test("approve only as: the card drawn, Tab or Esc or Ctrl+N to it, Up, a pause, Enter; and each once", () => {
    let approved = 0;
    const chunk = fc.oneof(
      { weight: 3, arbitrary: happenings(gap).map((one) => [one]) },
      {
        weight: 1,
        arbitrary: fc
          .tuple(fc.integer({ min: 200, max: 600 }), fc.integer({ min: 0, max: 6 }), fc.constantFrom(...KEYS))
          .map(([pace, place, other]) =>
            [...meant.slice(0, place), ...(place < 4 ? [other] : []), ...meant.slice(place)].map(
              (pressed): Happening => ({ kind: "key", key: pressed, gap: pace, taken: false }),
            ),
          ),
      },
    );
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 60 }), (chunks) => {
        const at = deskOf(...requests);
        const keys: { readonly key: Key; readonly at: number }[] = [];
        const drawnAt = new Map<string, number>();
        let up = at.up?.card.key;
        const look = (): void => {
          const now = at.up?.card.key;
          if (now !== undefined && (now !== up || !drawnAt.has(now))) drawnAt.set(now, at.now);
          up = now;
        };
        look();
        for (const one of chunks.flat()) {
          const before = at.up;
          const sent = at.sent.length;
          happen(at, one);
          const [answer] = at.sent.slice(sent);
          if (answer?.answer.kind === "approve" && one.kind === "key") {
            approved += 1;
            const last = keys.at(-1);
            const drawn = drawnAt.get(answer.key) ?? Number.POSITIVE_INFINITY;
            const since = keys.filter(({ at: when }) => when >= drawn);
            const turned = since.findLastIndex(({ key: { name } }) => name === "up" || name === "down");
            const to = since.findLastIndex(
              ({ key: { name, ctrl: held } }, index) => index < turned && (name === "tab" || name === "escape" || held),
            );
            // The card that was on the screen, and no other.
            expect(answer.request).toBe(before?.card.request);
            expect(one.key).toEqual(key("enter"));
            expect(at.now - (last?.at ?? 0)).toBeGreaterThanOrEqual(250);
            expect(since[turned]?.key.name).toBe("up");
            expect(to).toBeGreaterThanOrEqual(0);
            expect((since[turned]?.at ?? 0) - drawn).toBeGreaterThanOrEqual(400);
            // Nothing typed or pasted between the way to it and the Enter.
            const between = since.slice(to + 1).map(({ key: { name, ctrl: c, alt } }) => (c || alt ? "chord" : name));
            expect(between).not.toContain("text");
            expect(between).not.toContain("paste");
          }
          if (one.kind === "key") keys.push({ key: one.key, at: at.now });
          look();
        }
        const answered = at.sent.map((send) => send.key);
        expect(new Set(answered).size).toBe(answered.length);
      }),
      { numRuns: 150 },
    );
    // Else nothing was shown by it.
    expect(approved).toBeGreaterThan(20);
  });
});
