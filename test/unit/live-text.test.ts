import { expect, test } from "vitest";
import { LiveText } from "../../packages/view/src/projection/live-text.ts";

/** What a screen shows of a text that a model streams. */
function shownOf(text: string): string {
  const live = new LiveText();
  live.add("text", { attempt: 1, turn: 1, try: 1, text });
  return live.view()?.text ?? "";
}

test.each([
  ["a token", "ghp_", "0123456789abcdefghij0123456789abcdef", ""],
  ["a bearer token", "Bearer ", "0123456789abcdefghij0123", ""],
  ["a flag in quotes", "--password 'open sesame ", "wonderful cavern", " now'"],
  [
    "a private key",
    "-----BEGIN PRIVATE KEY-----\n",
    "MIIEvQIBADANBgkqhkiG\n9w0BAQEFAASC",
    "\n-----END PRIVATE KEY-----",
  ],
])("of %s, no part is shown where a long streamed text loses its beginning", (_name, before, secret, after) => {
  const whole = `${before}${secret}${after}`;
  for (let back = 0; back <= whole.length; back += 1) {
    const rest = 48_000 - back;
    const text = `${"x ".repeat(13_000)}${whole} ${"y ".repeat(rest / 2)}`;
    const shown = shownOf(text);
    expect(shown.length).toBeGreaterThan(47_000);
    for (let at = 0; at + 6 <= secret.length; at += 1) expect(shown).not.toContain(secret.slice(at, at + 6));
  }
});

test("a long streamed text begins with a line, if one ends in time, and is kept up to 72,000 characters", () => {
  expect(shownOf("a".repeat(72_000))).toHaveLength(72_000);
  expect(shownOf("a".repeat(72_001))).toHaveLength(48_000);
  expect(shownOf(`${"a".repeat(40_000)}\n${"b".repeat(40_000)}`)).toBe("b".repeat(40_000));
});
