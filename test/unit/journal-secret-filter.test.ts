import type { Json } from "@sluice/core";
import { createSecretFilter } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";

const filterOf = (...secrets: readonly (readonly [value: string, name: string])[]) =>
  createSecretFilter(new Map(secrets));

describe("a text", () => {
  test("has the name of each known value in its place, wherever and however often it stands", () => {
    const { text } = filterOf(["secret-one", "A"], ["other-value", "B"]);
    expect(text("secret-one, other-value; xsecret-onex")).toBe("[redacted:A], [redacted:B]; x[redacted:A]x");
    expect(text("SECRET-ONE secret-on secret_one")).toBe("SECRET-ONE secret-on secret_one");
    expect(text("")).toBe("");
  });

  test("keeps values of fewer than six characters, which are found in any text", () => {
    const { text } = filterOf(["short", "A"], ["sixsix", "B"]);
    expect(text("short sixsix")).toBe("short [redacted:B]");
  });

  test("loses the longest of several that lie in one another", () => {
    const nested = [
      ["inner-part", "inner"],
      ["outer-inner-part-outer", "outer"],
      ["r-inner-part-o", "middle"],
    ] as const;
    for (const order of [nested, [...nested].reverse()])
      expect(filterOf(...order).text("outer-inner-part-outer inner-part r-inner-part-o")).toBe(
        "[redacted:outer] [redacted:inner] [redacted:middle]",
      );
  });

  test("loses values of any signs, which stand for themselves alone", () => {
    for (const sign of "\\^$.*+?()[]{}|/-\"'`,:;<>=!@#%&~ \n\t😀") {
      const value = `ab${sign}cd${sign}${sign}`;
      const { text } = filterOf([value, "A"]);
      expect(text(`x${value}y`)).toBe("x[redacted:A]y");
      expect(text("ab cdXX abcd a c")).toBe("ab cdXX abcd a c");
    }
    expect(filterOf(["a.c.e.g", "A"]).text("abcdefg")).toBe("abcdefg");
    expect(filterOf(["abc|defgh", "A"]).text("abc defgh")).toBe("abc defgh");
  });

  test("does not get a value back by its name, whatever that is", () => {
    for (const name of ["$&", "A$&", "$`$'", "$$", "$1", "$<a>"])
      expect(filterOf(["secret-one", name]).text("a secret-one b")).toBe(`a [redacted:${name}] b`);
  });

  test("stays as it is where nothing is known", () => {
    const { text, json, begun } = filterOf();
    const value = { a: ["text"] };
    expect([text("any text"), text(""), begun("any text")]).toEqual(["any text", "", 0]);
    expect(json(value)).toBe(value);
  });
});

describe("a value", () => {
  const { json } = filterOf(["secret-one", "A"]);

  test("without any is itself, not a copy", () => {
    for (const value of [
      "text",
      7,
      true,
      null,
      ["a", [{ b: null }]],
      { a: { b: [1, "c"] }, none: undefined },
    ] as Json[])
      expect(json(value)).toBe(value);
  });

  test("loses them in texts, members, keys and lists, however deep, and nothing else", () => {
    expect(json("a secret-one")).toBe("a [redacted:A]");
    const given: Json = {
      n: 1,
      t: true,
      z: null,
      list: [0, "x", ["secret-one"]],
      in: { "k secret-one": { deep: "secret-one" } },
    };
    expect(json(given)).toEqual({
      n: 1,
      t: true,
      z: null,
      list: [0, "x", ["[redacted:A]"]],
      in: { "k [redacted:A]": { deep: "[redacted:A]" } },
    });
    expect(json([null, false, 2, "secret-one"])).toEqual([null, false, 2, "[redacted:A]"]);
    expect(json({ a: "secret-one", "secret-one": 1 })).toEqual({ a: "[redacted:A]", "[redacted:A]": 1 });
    expect(json({ only: null, "secret-one": null })).toEqual({ only: null, "[redacted:A]": null });
  });

  test("loses a number that is one, or holds one, and keeps every other as it is", () => {
    const pin = filterOf(["73951846", "PIN"], ["secret-one", "A"]).json;
    expect(pin({ pin: 73951846, list: [5, -739518460.5, 1.5, "secret-one"] })).toEqual({
      pin: "[redacted:PIN]",
      list: [5, "-[redacted:PIN]0.5", 1.5, "[redacted:A]"],
    });
    expect(pin(73951846)).toBe("[redacted:PIN]");
    const none = { a: 7395184, b: [0.5] };
    expect(pin(none)).toBe(none);
  });

  test("keeps a member that is called like a prototype", () => {
    const given: Json = JSON.parse('{"__proto__":{"a":"secret-one"},"b":1}');
    expect(JSON.stringify(json(given))).toBe('{"__proto__":{"a":"[redacted:A]"},"b":1}');
  });
});

describe("of a stream is held back", () => {
  test("as much of its end as may be the beginning of a value, the longest such end", () => {
    const { begun } = filterOf(["abcdefgh", "A"], ["defxyz-12", "B"]);
    for (const [text, held] of [
      ["", 0],
      ["nothing", 0],
      ["x a", 1],
      ["abcdefg", 7],
      ["x abcdefg", 7],
      // Whole values are replaced, not held back; what of them begins another one is.
      ["abcdefgh", 0],
      ["abcdef", 6],
      ["abcde-def", 3],
      ["defxyz-1", 8],
      ["defxyz-12", 0],
      ["abcdefxyz", 6],
      ["bcdefg", 0],
      ["abcdefgx", 0],
      ["ABC", 0],
    ] as const)
      expect([text, begun(text)]).toEqual([text, held]);
  });

  test("nothing for values that are too short, and only what can continue", () => {
    expect(filterOf(["short", "A"]).begun("shor")).toBe(0);
    const alike = filterOf(["abcdefgh", "A"], ["abcxyz-12", "B"]);
    expect([alike.begun("abcd"), alike.begun("abcx"), alike.begun("abc")]).toEqual([4, 4, 3]);
    const { begun } = filterOf(["aaaaaaaa", "A"]);
    expect([begun("a".repeat(7)), begun("a".repeat(8)), begun("a".repeat(20))]).toEqual([7, 7, 7]);
  });

  test("so that a value is found however a stream is cut", () => {
    const filter = filterOf(["abcdefgh", "A"], ["ijklmn-123", "B"]);
    const whole = "x abcdefgh y ijklmn-123 z abcdefghijklmn-123 abcdefg";
    for (let size = 1; size <= whole.length; size += 1) {
      let [out, rest] = ["", ""];
      for (let at = 0; at < whole.length; at += size) {
        const text = rest + whole.slice(at, at + size);
        const held = filter.begun(text);
        rest = text.slice(text.length - held);
        out += filter.text(text.slice(0, text.length - held));
      }
      const said = out + filter.text(rest);
      expect(said).toBe("x [redacted:A] y [redacted:B] z [redacted:A][redacted:B] abcdefg");
    }
  });
});
