import { isJsonObject, parseJson } from "@sluice/core";
import { createSecretFilter, redactJson, redactText } from "@sluice/core/runtime";
import { expect, test } from "vitest";
import { SECRET_FORMS, SECRET_PATTERNS, SECRET_WORDS } from "../../packages/core/src/journal/redaction.ts";
import { secretForms } from "../../packages/stages/src/secrets/encodings.ts";
import { readPage } from "./pages.ts";

const security = readPage("docs/security.md").text;

/** The rows of the table whose head begins so, as cells. */
function rowsOf(head: string): readonly (readonly string[])[] {
  const [, after = ""] = security.split(`| ${head} |`);
  const lines = after.split("\n").slice(2);
  const end = lines.findIndex((line) => !line.startsWith("|"));
  return lines.slice(0, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}
/** What stands in backticks. */
const code = (cell = ""): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, text]) => text ?? []);

test("every way in which a text names a secret is documented, with what becomes of it", () => {
  const rows = rowsOf("Way | Such as | Becomes");
  expect(rows.map(([way]) => way)).toEqual(SECRET_PATTERNS.map(([way]) => way));
  for (const [way, before, after] of rows) {
    expect([way, redactText(code(before).join(""))]).toEqual([way, code(after).join("")]);
    // By this rule and by no other.
    const pattern = SECRET_PATTERNS.find(([name]) => name === way)?.[1];
    expect(pattern === undefined ? -1 : code(before).join("").search(pattern)).toBeGreaterThanOrEqual(0);
  }
});

test("every form of a secret is documented, and is replaced as a whole", () => {
  const [, after = ""] = security.split("By its form:");
  const rows =
    after
      .split("\n\n")[1]
      ?.split("\n")
      .slice(2)
      .map((line) =>
        line
          .split("|")
          .slice(1, -1)
          .map((cell) => cell.trim()),
      ) ?? [];
  expect(rows.map(([form]) => form)).toEqual(SECRET_FORMS.map(([form]) => form));
  for (const [form = "", example] of rows) {
    const [text = ""] = code(example);
    const marked = `[redacted:${form}]`;
    const wanted = form === "url-password" ? text.replace("hunter2", marked) : marked;
    expect(redactText(`a ${text} b`)).toBe(`a ${wanted} b`);
  }
});

test("every word that names a secret is documented, and hides what stands under it however it is written", () => {
  const words = code(security.split("\n").find((line) => line.startsWith("> `password`")));
  expect(words).toEqual([...SECRET_WORDS, "clientsecret"]);
  for (const word of SECRET_WORDS) {
    const camel = word.replace(/-(.)/, (_all, letter: string) => letter.toUpperCase());
    const pascal = camel.charAt(0).toUpperCase() + camel.slice(1);
    const names = [word, word.replace("-", "_"), word.replace("-", ""), word.toUpperCase(), camel];
    for (const name of [...names, ...names.flatMap((one) => [`my-${one}`, `my_${one}`, `my.${one}`]), `my${pascal}`]) {
      const hidden = redactJson({ [name]: "value", list: [{ [name]: ["value"] }] });
      expect(JSON.stringify(hidden), name).not.toContain("value");
      expect(redactJson({ [name]: 1, [`${name}x`]: "value" })).toEqual({ [name]: 1, [`${name}x`]: "value" });
    }
  }
});

test("a known secret is found in every form that is documented, and all its forms are", () => {
  const secret = 'pa"ss/word+1';
  expect(security).toContain(`here of \`${secret}\``);
  const forms = secretForms(new Map([[secret, "NAME"]]));
  const { text } = createSecretFilter(forms);
  const examples = rowsOf("Form | Such as").flatMap(([, example]) => code(example));
  expect(examples.length).toBe(17);
  for (const example of examples) expect(text(example)).toContain("[redacted:NAME]");
  const left = examples.map((example) => text(example)).join("\n");
  for (const form of forms.keys()) expect(left).not.toContain(form);
  const base64 = (form: string): boolean =>
    Buffer.from(`user:${secret}`).toString("base64").includes(form.slice(0, 12)) || /^[A-Za-z0-9+/_-]{12,}$/.test(form);
  // Of base64 one of three places stands for all.
  for (const form of forms.keys()) if (!base64(form)) expect(examples.join("\n")).toContain(form);
  const parsed = parseJson(examples.find((example) => example.startsWith("{")) ?? "");
  expect(parsed.ok && isJsonObject(parsed.value) ? parsed.value.a : undefined).toBe(secret);
});
