import { describe, expect, test } from "vitest";
import { sessionSecrets } from "../../packages/stages/src/secrets/detect.ts";

const TOKEN = "q8Zk2mT5vXw9Lp3R";
const split = (env: Record<string, string>, options: { named?: string[]; passed?: string[]; values?: string[] } = {}) =>
  sessionSecrets(env, { named: options.named ?? [], passed: options.passed ?? [], values: options.values ?? [] });

describe("the environment of child processes", () => {
  test("lacks whatever is called a key, a token or a password", () => {
    const env = {
      PATH: "/bin",
      GITHUB_TOKEN: TOKEN,
      DB_PASSWORD: "postgres",
      AWS_ACCESS_KEY_ID: "A1",
      KEYBOARD: "us",
      TOKENIZER: "bpe",
    };
    expect(split(env).childEnv).toEqual({ PATH: "/bin", KEYBOARD: "us", TOKENIZER: "bpe" });
  });

  test("lacks a named variable, and any variable that holds a model's key", () => {
    const env = { HOME: "/h", MY_VALUE: "hunter2hunter2", COPY: "model-key-value" };
    expect(split(env, { named: ["MY_VALUE"], values: ["model-key-value"] }).childEnv).toEqual({ HOME: "/h" });
    for (const encoding of ["base64", "hex"] as const) {
      const auth = Buffer.from(`user:${TOKEN}`).toString(encoding);
      expect(split({ HOME: "/h", DOCKER_CFG: `{"auth":"${auth}"}` }, { values: [TOKEN] }).childEnv).toEqual({
        HOME: "/h",
      });
    }
  });

  test("lacks a variable that holds a known key among other text", () => {
    const env = { AUTH_HEADER: `Bearer ${TOKEN}`, LINE: `x=${TOKEN};y`, PATH: `/bin:/${TOKEN}`, LANG: "C" };
    const kept = { PATH: `/bin:/${TOKEN}`, LANG: "C" };
    expect(split(env, { values: [TOKEN] }).childEnv).toEqual(kept);
    expect(split({ ...env, SOME_TOKEN: TOKEN }).childEnv).toEqual(kept);
  });

  test.each([
    "PGPASSWORD",
    "MYSQL_PWD",
    "REDISCLI_AUTH",
    "DB_PASS",
    "GITHUB_PAT",
    "OPENAI_KEY",
    "SIGNING_KEY",
    "SECRET_KEY_BASE",
    "GPG_PASSPHRASE",
    "npm_config__auth",
  ])("lacks %s", (name) => {
    expect(split({ [name]: TOKEN }).childEnv).toEqual({});
  });

  test("has what programs need, and what is only called like a key", () => {
    const env = { PATH: "/bin", PWD: "/w", OLDPWD: "/v", HOME: "/h", SORT_KEY: "name", SSH_ASKPASS: "/bin/ask" };
    expect(split(env).childEnv).toEqual(env);
  });

  test("lacks a URL with a password, which is redacted where it looks random", () => {
    const env = { DATABASE_URL: `postgres://u:${TOKEN}@h/db`, CACHE_URL: "redis://:pw@h", SITE: "https://h:80/a@b" };
    const { childEnv, filter } = split(env);
    expect(childEnv).toEqual({ SITE: "https://h:80/a@b" });
    expect(filter.text(`psql ${TOKEN} pw`)).toBe("psql [redacted:DATABASE_URL] pw");
  });

  test("has what the session passes, which is still redacted", () => {
    const { childEnv, filter } = split({ NPM_TOKEN: TOKEN }, { passed: ["NPM_TOKEN"] });
    expect(childEnv).toEqual({ NPM_TOKEN: TOKEN });
    expect(filter.text(`//registry/:_authToken=${TOKEN}`)).toBe("//registry/:_authToken=[redacted:NPM_TOKEN]");
  });
});

describe("what is redacted", () => {
  test("a random value of a key variable is; a password that is a word is not, for files are full of it", () => {
    const { filter } = split({ API_KEY: TOKEN, PGPASSWORD: "postgres" });
    expect(filter.text(`key ${TOKEN} for postgres`)).toBe("key [redacted:API_KEY] for postgres");
  });

  test("a named variable's value is, whatever it looks like", () => {
    expect(split({ PHRASE: "open sesame" }, { named: ["PHRASE"] }).filter.text("say open sesame")).toBe(
      "say [redacted:PHRASE]",
    );
  });

  test("a model's key is, in keys and in nested values", () => {
    const { filter } = split({}, { values: [TOKEN] });
    expect(filter.json({ [TOKEN]: [`a ${TOKEN} b`] })).toEqual({
      "[redacted:model key]": ["a [redacted:model key] b"],
    });
  });
});
