import { createSecretFilter } from "@sluice/core/runtime";
import fc from "fast-check";
import { expect, test } from "vitest";
import { maskedCut } from "../../packages/stages/src/secrets/cut-text.ts";

// Secrets that overlap in a text, which is cut at every character.

const letters = (of: string, longest: number) =>
  fc.array(fc.constantFrom(...of), { maxLength: longest }).map((chosen) => chosen.join(""));
const scene = fc
  .tuple(letters("abcde", 24), letters("abc", 8))
  .map(([one, other]) => `k${one}${other}kk-end`)
  .chain((base) => {
    const part = fc.tuple(fc.nat(base.length - 7), fc.integer({ min: 6, max: 16 }), letters("abk", 3));
    const secret = part.map(([at, length, end]) => `${base.slice(at, at + length)}${end}`);
    const secrets = fc.array(secret, { minLength: 1, maxLength: 4 });
    const piece = fc.oneof(letters("abk ", 4), fc.constant(base), fc.tuple(secret, fc.nat(20)).map(cutTo));
    return fc.record({ secrets, text: fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join("")) });
  });

function cutTo([text, length]: readonly [string, number]): string {
  return text.slice(0, length);
}

test("no cut of a text leaves the beginning of a secret that the whole text masks", () => {
  fc.assert(
    fc.property(scene, ({ secrets, text }) => {
      const filter = createSecretFilter(new Map(secrets.map((secret, at) => [secret, `S${at}`])));
      const whole = filter.text(text);
      for (let at = 0; at < text.length; at += 1) {
        const first = maskedCut(text.slice(0, at), filter);
        if (whole.startsWith(first)) continue;
        for (const secret of secrets)
          for (let length = 6; length <= secret.length; length += 1) {
            const begun = secret.slice(0, length);
            if (first.endsWith(begun))
              expect([text, at, first, whole.includes(begun)]).toEqual([text, at, first, true]);
          }
      }
    }),
    { numRuns: 3_000 },
  );
});

test("a long text that ends in a long secret is masked a few times only to find where it can be cut", () => {
  const lines = Array.from({ length: 60 }, (_line, at) => `line-${at}-`.padEnd(20, "x"));
  // Its end may be the beginning of another one.
  const secret = ["-----begin", ...lines, "end-----"].join("\n");
  const filter = createSecretFilter(new Map([[secret, "KEY"], ...lines.map((line) => [line, "LINE"] as const)]));
  const before = "word ".repeat(20_000);
  let characters = 0;
  const text = (given: string): string => {
    characters += given.length;
    return filter.text(given);
  };
  expect(maskedCut(`${before}${secret}`, { text, begun: filter.begun })).toBe(before);
  expect(characters).toBeLessThan(100 * before.length);
});
