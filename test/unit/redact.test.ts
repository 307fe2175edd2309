import { createSecretFilter, REDACTION_MARKER, redactJson, redactText } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";
import { redactedJson } from "../../packages/core/src/journal/redaction.ts";

const letters = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
const of = (length: number): string => letters.slice(0, length);
const key = (kind: string, end = true): string =>
  `-----BEGIN ${kind}PRIVATE KEY-----\n${letters}\n${end ? `-----END ${kind}PRIVATE KEY-----` : ""}`;

/** What is replaced, by the name it is replaced with; each is as short as it may be. */
const SECRETS: readonly (readonly [string, string])[] = [
  ["private-key", key("")],
  ["private-key", key("RSA ")],
  ["private-key", key("ENCRYPTED ")],
  ["private-key", key("PGP ").replaceAll("KEY-", "KEY BLOCK-")],
  ["api-key", `sk-${of(16)}`],
  ["api-key", "sk-ant-api03_aaaaaaaaa"],
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"].map((start) => ["github-token", start + of(20)] as const),
  ["github-token", `github_pat_${of(10)}_${of(9)}`],
  ["google-key", `AIza${of(30)}`],
  ["google-key", `AIza_-${of(28)}`],
  ["aws-key", "AKIAABCDEFGHIJKLMNOP"],
  ["aws-key", "ASIAABCDEFGHIJ012345"],
  ...["a", "b", "e", "o", "p", "r", "s"].map((kind) => ["slack-token", `xox${kind}-${of(10)}`] as const),
  ["slack-token", "xoxb-1-2-3-4567"],
  ["slack-token", `xapp-1-${of(10)}`],
  ["npm-token", `npm_${of(30)}`],
  ["stripe-key", `sk_live_${of(16)}`],
  ["stripe-key", `rk_live_${of(16)}`],
  ["gitlab-token", `glpat-${of(20)}`],
  ["gitlab-token", `glpat-_-${of(18)}`],
  ["huggingface-token", `hf_${of(30)}`],
  ["jwt", `eyJ${of(10)}.eyJ${of(10)}.${of(10)}`],
  ["jwt", "eyJ_-aaaaaaaaa.eyJ_-aaaaaaaaa._-aaaaaaaaa"],
  ["bearer", `Bearer ${of(16)}`],
  ["bearer", `bearer \t ${of(10)}._~+/-==`],
];

/** What looks similar and is no secret: too short, or a part of a longer word. */
const PLAIN: readonly string[] = [
  `sk-${of(15)}`,
  `task-${letters}`,
  `ghp_${of(19)}`,
  `ghx_${letters}`,
  `xghp_${letters}`,
  `github_pat_${of(19)}`,
  `AIza${of(29)}`,
  `xAIza${letters}`,
  "AKIAABCDEFGHIJKLMNO",
  "AKIAABCDEFGHIJKLMNOPQ",
  "XAKIAABCDEFGHIJKLMNOP",
  "ABIAABCDEFGHIJKLMNOP",
  `xoxb-${of(9)}`,
  `xoxz-${letters}`,
  `axoxb-${letters}`,
  `xapp-1-${of(9)}`,
  `xapp-${letters}`,
  `sk_live_${of(15)}`,
  `sk_test_${letters}`,
  `xsk_live_${letters}`,
  `glpat-${of(19)}`,
  `hf_${of(29)}`,
  "hf_hub_download_of_all_that_there_is",
  `chf_${letters}`,
  `npm_${of(29)}`,
  `xnpm_${letters}`,
  `eyJ${of(9)}.eyJ${of(10)}.${of(10)}`,
  `eyJ${of(10)}.eyJ${of(9)}.${of(10)}`,
  `eyJ${of(10)}.eyJ${of(10)}.${of(9)}`,
  `xeyJ${letters}.eyJ${letters}.${letters}`,
  `Bearer ${of(15)}`,
  `xBearer ${letters}`,
  `Bearer${letters}`,
  "-----BEGIN PUBLIC KEY-----",
  "https://user:pw@example.org/",
  "https://user@example.org/",
  "https://example.org:8080/a",
  "https://user:a b@example.org/",
  "https://u ser:secretive@example.org/",
  `https://${"u".repeat(65)}:hunter2@example.org/`,
];

describe("texts", () => {
  test.each(SECRETS)("%s: %j is replaced as a whole, and nothing around it", (name, secret) => {
    expect(redactText(`before ${secret} after`)).toBe(`before ${REDACTION_MARKER}${name}] after`);
    expect(redactText(`${secret}\n${secret}`)).toBe(`${REDACTION_MARKER}${name}]\n${REDACTION_MARKER}${name}]`);
  });

  /** What ends in a letter or a digit, and still ends the word before. */
  const BEFORE = [
    ...["n", "r", "t", "b", "f", "v", "x3d", "x3D", "u003d", "u003D", "0", "12", "075"].map((code) => `a\\${code}`),
    ...["%20", "%3d", "%3D", "\\\\n", "\\\\\\\\u003d"],
    ...["\u001b[m", "\u001b[31m", "\u001b[38;5;196m", "\u001b[38:2::1:2:3m", "\u001b[01;31m\u001b[K"],
    ...["\\u001b[1m", "\\u001B[1m", "\\\\x1b[1m", "\\033[0;1m", "\\e[K"],
  ];

  test.each(SECRETS)("%s: %j is replaced behind an escaped character and behind a colour", (name, secret) => {
    for (const before of BEFORE)
      expect(redactText(`{"h":"a${before}${secret}`)).toBe(`{"h":"a${before}${REDACTION_MARKER}${name}]`);
  });

  test.each([
    ["Authorization: ", "Basic dXNlcjpwYXNz"],
    ["Cookie: ", "session=abcdef"],
    ["api-key: ", "abcdef123456"],
    ["DB_PASSWORD: ", "hunter2hunter2"],
    ["TOKEN=", "hunter2hunter2"],
    ["--token ", "abcdef"],
    ["password=", "hunter2hunter2"],
    ["api_key = ", "hunter2hunter2"],
    ["-Dapi.token=", "hunter2hunter2"],
  ])("%j names a secret behind an escaped character and behind a colour", (name, value) => {
    for (const before of BEFORE) {
      const redacted = redactText(`printf 'GET /\\r${before}${name}${value}`);
      expect(redacted).toMatch(/\[redacted:[\w.-]+\]$/);
      expect(redacted.startsWith(`printf 'GET /\\r${before}${name}[redacted:`)).toBe(true);
    }
  });

  test.each([
    ["\\token=abcdef", "\\token=[redacted:token]"],
    ["C:\\password=abcdef", "C:\\password=[redacted:password]"],
    ["\\x1token=abcdef", "\\x1token=abcdef"],
    ["\\u12password=abcdef", "\\u12password=abcdef"],
    ["%2token=abcdef", "%2token=abcdef"],
  ])("a letter that is no escape belongs to its word: %j", (text, redacted) => {
    expect(redactText(text)).toBe(redacted);
  });

  test.each([
    ["\u001b[36mDB_PASSWORD\u001b[0m=", "hunter2hunter2"],
    ["\u001b[36mDB_PASSWORD\u001b[0m\u001b[2m=\u001b[0m\u001b[32m", "hunter2hunter2\u001b[0m"],
    ["\u001b[36mDB_PASSWORD\u001b[0m \u001b[2m:\u001b[0m \u001b[32m'", "hunter 22"],
    ["\u001b[35mX-Api-Key\u001b[0m: ", "hunter2hunter2"],
    ["\u001b[35mpassword\u001b[0m=", "correcthorse"],
    ["\u001b[35mpassword\u001b[0m = \u001b[1m", "hunter2hunter2"],
    ["\u001b[1m--token\u001b[0m ", "hunter2"],
    ["\u001b[1m--token\u001b[0m=\u001b[2m", "hunter2"],
    ['\u001b[34;1m"password"\u001b[0m\u001b[1;39m:\u001b[0m \u001b[0;32m"', "hunter 2"],
    ["\\033[36mDB_PASSWORD\\033[0m=", "hunter2hunter2"],
  ])("a colour may stand between a name and its value: %j", (before, value) => {
    expect(redactText(`${before}${value}`)).toMatch(/\[redacted:[\w-]+\]$/);
    expect(redactText(`${before}${value}`).startsWith(`${before}[redacted:`)).toBe(true);
  });

  test.each([
    "\u001b[31mtoken\u001b[0m = \u001b[33mnext_token\u001b[0m",
    "password\u001b[0m=\u001b[33muser.password\u001b[0m",
    "TOKEN=\u001b[32m$OTHER_TOKEN\u001b[0m",
    "\u001b[1mtokens\u001b[0m=\u001b[1mabcdefgh",
    "[ask-me-anything-about-this-place]",
    "\u001b[1mtask-list-of-everything-there-is",
  ])("colours make no secret of %j", (text) => {
    expect(redactText(text)).toBe(text);
  });

  test.each(PLAIN)("%j stays", (text) => {
    expect(redactText(`before ${text} after`)).toBe(`before ${text} after`);
  });

  test("longer ones are replaced to their end", () => {
    for (const secret of [`sk-${letters}`, `ghp_${letters}`, `AIza${letters}`, `npm_${letters}`, `xoxb-${letters}`]) {
      expect(redactText(`${secret}.`)).toMatch(/^\[redacted:[a-z-]+\]\.$/);
    }
    expect(redactText(`eyJ${letters}.eyJ${letters}.${letters}`)).toBe(`${REDACTION_MARKER}jwt]`);
  });

  test("a private key without its end hides all that follows; one with an end hides no more than itself", () => {
    expect(redactText(`a ${key("RSA ", false)} and all the rest`)).toBe(`a ${REDACTION_MARKER}private-key]`);
    expect(redactText(`${key("EC ")} between ${key("")} after`)).toBe(
      `${REDACTION_MARKER}private-key] between ${REDACTION_MARKER}private-key] after`,
    );
  });

  test("passwords in addresses are replaced, users and hosts stay", () => {
    for (const user of ["u", "user", "u".repeat(64)]) {
      for (const password of ["pwd", "hunter22", "with:colon"]) {
        expect(redactText(`see https://${user}:${password}@example.org/a`)).toBe(
          `see https://${user}:${REDACTION_MARKER}url-password]@example.org/a`,
        );
      }
    }
  });

  test("plain text stays as it is", () => {
    for (const text of ["", "npm test", "task-list sketchy", "a://b", "see https://example.org/a:b@c"]) {
      expect(redactText(text)).toBe(text);
    }
  });
});

describe("values hidden by the name of their key, whatever they look like", () => {
  const names = [
    ...["password", "passwd", "passphrase", "secret", "token", "api-key", "api_key", "apiKey", "access-key"],
    ...["apikey", "accesskey", "privatekey", "secret-key", "secret_key", "secretKey", "SECRETKEY", "STRIPE_SECRET_KEY"],
    ...["access_key", "accessKey", "private-key", "private_key", "privateKey", "client-secret", "clientSecret"],
    ...["authorization", "Authorization", "cookie", "Set-Cookie", "credential", "credentials", "X-Auth-Token"],
    ...[
      "DB_PASSWORD",
      "db.password",
      "a-b_c.token",
      "accessToken",
      "oauth2Token",
      "dbPassword",
      "userApiKey",
      "passWord",
    ],
    ...["DBPassword", "JWTToken", "AWSSecret", "myAPIKey", "HTTPCookie"],
  ];
  test.each(names)("%s", (name) => {
    const hidden = { [name]: `${REDACTION_MARKER}${name}]` };
    for (const value of ["short", ["a"], { b: "c" }]) {
      expect(redactJson({ [name]: value })).toEqual(hidden);
      // Events go this way, where a text without any hint is not looked at twice.
      expect(JSON.parse(redactedJson({ [name]: value }))).toEqual(hidden);
    }
    // What can hold no secret stays to be read.
    for (const value of ["", 3, true, null]) expect(redactJson({ [name]: value })).toEqual({ [name]: value });
  });

  test.each([
    "tokens",
    "inputTokens",
    "mytoken",
    "secretary",
    "author",
    "cookies",
    "keyword",
    "passwordless",
    "tokenCount",
    "xsecret",
    "TOKENIZER",
    "XMLTokens",
    "secretKeyRef",
    // These name a secret only as a variable in a text.
    "PGPASSWORD",
    "DB_PASS",
    "MYSQL_PWD",
    "GH_PAT",
  ])("%s is the name of something else", (name) => {
    expect(redactJson({ [name]: "value" })).toEqual({ [name]: "value" });
    expect(JSON.parse(redactedJson({ [name]: "value" }))).toEqual({ [name]: "value" });
  });

  test.each([
    [
      ["login", "--password", "hunter2", "-u", "x"],
      ["login", "--password", "[redacted:password]", "-u", "x"],
    ],
    [
      ["--token", "-ecret1", "-api_key", "a"],
      ["--token", "[redacted:token]", "-api_key", "[redacted:api_key]"],
    ],
    [
      ["--db.token", "$X"],
      ["--db.token", "[redacted:db.token]"],
    ],
    [
      ["--token", "--TOKEN-1"],
      ["--token", "[redacted:token]"],
    ],
    // What can hold no secret stays, and so does another flag.
    ...[
      ["--token", "--dry-run", "x"],
      ["--token", "-v", "x"],
      ["--token", "", 1, ["x"]],
      ["token", "x", "--tokens", "x", "---", "x"],
      [["--token"], "x", { a: "--token" }, "x"],
      ["--token"],
    ].map((list) => [list, list]),
  ])("the words of a command in a list: %j", (list, wanted) => {
    expect(redactJson({ args: [list] })).toEqual({ args: [wanted] });
    expect(JSON.parse(redactedJson({ args: [list] }))).toEqual({ args: [wanted] });
  });

  test("40 characters of the name are kept", () => {
    const name = `${"x".repeat(50)}-token`;
    expect(redactJson({ [name]: "a" })).toEqual({ [name]: `${REDACTION_MARKER}${"x".repeat(40)}]` });
  });

  test("what a name holds is not shown by what replaces its value", () => {
    const secret = `ghp_${of(20)}`;
    const marked = `${REDACTION_MARKER}github-token]-token`;
    expect(redactJson({ [`${secret}-token`]: "x" })).toEqual({ [marked]: `${REDACTION_MARKER}${marked}]` });
    expect(JSON.stringify(redactJson([`--${secret}-token`, "x"]))).not.toContain(secret);
  });

  test("a name that is a secret is replaced, and so is what lies deep", () => {
    const secret = `ghp_${of(20)}`;
    const marked = `${REDACTION_MARKER}github-token]`;
    expect(redactJson({ [secret]: [{ a: [secret, 1, null] }] })).toEqual({ [marked]: [{ a: [marked, 1, null] }] });
    expect(redactJson([secret, false])).toEqual([marked, false]);
  });
});

describe("values that a text gives the name of a secret", () => {
  /** Each with what becomes of it. */
  const named: readonly (readonly [string, string])[] = [
    ['{"password":"hunter 22","n":1,"accessToken":"a b"}', '{"password":"[…]","n":1,"accessToken":"[…]"}'],
    [
      String.raw`{\"db.password\": \"hunter22\", \"note\": \"x\"}`,
      String.raw`{\"db.password\": \"[…]\", \"note\": \"x\"}`,
    ],
    ["{'client_secret': 'a'}", "{'client_secret': '[…]'}"],
    ["X-Api-Key: abcdef123456\nAccept: text/html", "X-Api-Key: […]\nAccept: text/html"],
    ["curl -H 'Cookie: sid=abcdefgh; b=c' https://h/", "curl -H 'Cookie: […]' https://h/"],
    ["authorization: Basic dXNlcjpwYXNzd29yZA==", "authorization: […]"],
    ["https://h/a?token=abcd&x=1&api_key=zzzz#top", "https://h/a?token=[…]&x=1&api_key=[…]#top"],
    ["deploy --api-key abcd --token=xyz1 --dry-run", "deploy --api-key […] --token=[…] --dry-run"],
    ['deploy --password "abc1"', 'deploy --password "[…]"'],
    ["DB_PASSWORD=hunter22\nPORT=8080", "DB_PASSWORD=[…]\nPORT=8080"],
    [String.raw`DB_PASSWORD=DOMAIN\cdefgh12 --token corp\admin12 x`, "DB_PASSWORD=[…] --token […] x"],
    ["API_KEY: 'abc defg'", "API_KEY: '[…]'"],
    ['export NPM_TOKEN="abcdef"', 'export NPM_TOKEN="[…]"'],
    ["Api-Key: abcdef123456", "Api-Key: […]"],
    ["SECRET_KEY=django-insecure-abc", "SECRET_KEY=[…]"],
    ["deploy --secret-key abcd --x", "deploy --secret-key […] --x"],
    ["PGPASSWORD=hunter22 psql -h db", "PGPASSWORD=[…] psql -h db"],
    ["MYSQL_PWD='hunter 22' mysql", "MYSQL_PWD='[…]' mysql"],
    ["DB_PASS: hunter22\nDB_PATH: hunter22", "DB_PASS: […]\nDB_PATH: hunter22"],
    ["export GH_PAT=hunter22", "export GH_PAT=[…]"],
    // What could be a value is no call.
    ['API_KEY=config("API_KEY")', 'API_KEY=[…]"API_KEY")'],
    ["DB_PASSWORD: hunter2(x)", "DB_PASSWORD: […]"],
    ["DB_PASSWORD = hunter2()x", "DB_PASSWORD = […]"],
    ["DB_PASSWORD = hunter2(", "DB_PASSWORD = […]"],
    ["DB_PASSWORD = 2hunter()", "DB_PASSWORD = […]"],
    ["API_KEY = settings.API_KEY", "API_KEY = […]"],
    // What could be a value is no prose.
    ["db-password: correct horse battery staple", "db-password: […]"],
    ["x-api-key: correct horse battery staple", "x-api-key: […]"],
    ["Authorization: Basic of all things here", "Authorization: […]"],
    ["Authorization: token of all things here", "Authorization: […]"],
    ["Authorization: check the role", "Authorization: […]"],
    ["Authorization: check the role abcdef12", "Authorization: […]"],
    ["Authorization: check the role abcdefghijklmno", "Authorization: […]"],
    ["Authorization: check the role before the call: abcdef", "Authorization: […]"],
    ["Cookie: allow the value a=b again", "Cookie: […]"],
    [`"Authorization: check the role it's hunter2"`, '"Authorization: […]"'],
    // A value in quotes ends with them.
    ['deploy --password "horse battery staple" --x', 'deploy --password "[…]" --x'],
    ["deploy --password='two words' --x", "deploy --password='[…]' --x"],
    ['deploy --password "a\\" b" --x', 'deploy --password "[…]" --x'],
    [String.raw`deploy --password 'it'\''s mine' --x`, "deploy --password '[…]' --x"],
    [`deploy --password 'it'"'"'s mine' --x`, "deploy --password '[…]' --x"],
    [String.raw`deploy --password horse\ battery\ staple --x`, "deploy --password […] --x"],
    ['deploy --password "horse battery', 'deploy --password "[…]'],
    [String.raw`{"a":"deploy --password \"horse battery\" --x"}`, String.raw`{"a":"deploy --password \"[…]\" --x"}`],
    ["deploy --db_password 'two words' --DBPassword x1y2", "deploy --db_password '[…]' --DBPassword […]"],
    ["DB_PASSWORD='ab\"cdefghij' x", "DB_PASSWORD='[…]' x"],
    ['DB_PASSWORD="ab\'cdefghij" x', 'DB_PASSWORD="[…]" x'],
    // Nothing is expanded between single quotes.
    ["A_TOKEN='$uper-one' B_TOKEN='<two-two' C_TOKEN='(three-3'", "A_TOKEN='[…]' B_TOKEN='[…]' C_TOKEN='[…]'"],
    ["DB_PASSWORD  =  hunter22", "DB_PASSWORD  =  […]"],
    ["DB_PASSWORD=hunter'22\"x", "DB_PASSWORD=[…]"],
    ['CMD="deploy A_TOKEN=abcdef B_TOKEN=ghijkl"', 'CMD="deploy A_TOKEN=[…] B_TOKEN=[…]"'],
    // An escaped quote does not end a value.
    [String.raw`{"password":"ab\"cd","x":"y"}`, '{"password":"[…]","x":"y"}'],
    [String.raw`{"password":"ab\\","x":"y"}`, '{"password":"[…]","x":"y"}'],
    [String.raw`{\"password\":\"ab\\\"cd\",\"x\":1}`, String.raw`{\"password\":\"[…]\",\"x\":1}`],
    [String.raw`{\"password\":\"ab\\\\\",\"x\":1}`, String.raw`{\"password\":\"[…]\",\"x\":1}`],
    [
      String.raw`{\\\"password\\\":\\\"ab\\\\\\\"cd\\\",\\\"x\\\":1}`,
      String.raw`{\\\"password\\\":\\\"[…]\\\",\\\"x\\\":1}`,
    ],
    // Whole words in quotes.
    ["deploy '--password=two words' --x", "deploy '--password=[…]' --x"],
    ['docker run -e "DB_PASSWORD=two words" image', 'docker run -e "DB_PASSWORD=[…]" image'],
    ["curl -d 'password=hunter22&a=b' https://h/", "curl -d 'password=[…]' https://h/"],
    [`curl -H 'Authorization: Digest username="a", response="0123"' x`, "curl -H 'Authorization: […]' x"],
    ['curl -H "X-Api-Key: it\'s" x', 'curl -H "X-Api-Key: […]" x'],
    // Settings, in any case.
    ["db_password=lowerSECRET1 deploy", "db_password=[…] deploy"],
    ["spring.datasource.password=correcthorse", "spring.datasource.password=[…]"],
    ["mvn -Dspring.datasource.password=correcthorse test", "mvn -Dspring.datasource.password=[…] test"],
    ["aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/b", "aws_secret_access_key = […]"],
    ["    7\tpassword = hunter2hunter2", "    7\tpassword = […]"],
    ["const dbPassword = 'hunter 22';", "const dbPassword = '[…]';"],
  ];
  test.each(named)("%s", (text, wanted) => {
    const redacted = redactText(text);
    expect(redacted.replaceAll(/\[redacted:[\w.-]+\]/g, "[…]")).toBe(wanted);
    // What was redacted once is not redacted further: a text may pass several doors.
    expect(redactText(redacted)).toBe(redacted);
    expect(JSON.parse(redactedJson({ text: [text] }))).toEqual({ text: [redacted] });
  });

  test.each([
    "token: string; password: string; cookie: string",
    "const TOKEN = process.env.TOKEN",
    "PASSWORD=$SOME_PASSWORD PASSWORD=$(cat x)",
    "--token <token> --token $TOKEN --no-token --secret --other",
    "max_tokens=4096, inputTokens: 100000, tokens=abcdefgh",
    "https://h/?sort_key=abcdef&key=abcdef",
    '{"tokens":"abcdef","author":"someone","password":12345678,"token":""}',
    "TOKEN=short",
    "const password = readPassword(); token = next()",
    "password = user.password",
    "this.token = token; self.token = next_token",
    "const token = parser?.next; token = this->token; token = Kind::Token",
    "key=value max_tokens=500 --token-limit 5",
    "COMPASS=northwest BYPASS=everything MY_BYPASS=everything PWD=/home/someone OLDPWD=/home/someone PASS=a/b/c/d",
    "DB_PASSES=hunter22 DB_PATH=/var/lib/db PATTERN=abcdefgh DB_PASS=short GH_PATH=abcdefgh",
    "db_pass=hunter22 pgpassword=hunter22 --DB_PASS hunter22",
    "DB_PASS=$OTHER_PASS GH_PAT=$(cat pat)",
    // Calls.
    'API_KEY = config("API_KEY")',
    'private static final String API_KEY = System.getenv("API_KEY");',
    "z.object({ GITHUB_TOKEN: z.string().min(1), NPM_TOKEN: optional() })",
    "const SLACK_TOKEN = getRequiredEnv('SLACK_TOKEN')",
    String.raw`{"text":"API_KEY = config(\"API_KEY\")"}`,
    // Prose.
    "Authorization: check the role before the call",
    'git commit -m "Authorization: Check the role, before the call."',
    "access-token: refreshed once per hour by the job\nmore",
    "connect(host=host, password=password)",
    "    password=password,",
    "def connect(host, user=None, password=None):",
    'PASSWORD = "k-123"; API_TOKEN=\'short\'; token = "none"',
    "secret = undefined; password == other; token => token.value",
    "token = tokens[0]\ntoken = await next()\ntoken = 12345678",
    "token: Token | undefined, password: string",
    "<Field token={token} password={passwords.first} />",
    'add("--token=", token); ["--token=","abc"]; "--token=" + token',
    '\'password=\' + encode(password); f"password={password}&user={user}"; "token=%s" % token',
    'DB_PASSWORD="$OTHER" --token "$TOKEN" --token "$(cat x)" API_TOKEN="<token>"',
    "API_TOKEN=\\$OTHER_TOKEN",
    "fetch(url, { credentials: 'include' })",
    `GITHUB_TOKEN: ${"$"}{{ secrets.GITHUB_TOKEN }}`,
  ])("%s stays", (text) => {
    expect(redactText(text)).toBe(text);
  });
});

test.each(SECRETS)("%s: %j is replaced in the text of an event too", (name, secret) => {
  expect(JSON.parse(redactedJson({ a: [secret] }))).toEqual({ a: [`${REDACTION_MARKER}${name}]`] });
});

test("known secrets are replaced wherever they stand, longer ones first, those of five letters never", () => {
  const filter = createSecretFilter(
    new Map([
      ["sesame", "SHORT"],
      ["five5", "TINY"],
      ["open sesame now", "LONG"],
    ]),
  );
  expect(filter.begun("say open sesame no")).toBe("open sesame no".length);
  expect(filter.begun("say open sesame now")).toBe(0);
  expect(filter.begun("a sesam")).toBe(5);
  expect(filter.text("sesame, open sesame now, sesame, five5")).toBe(
    "[redacted:SHORT], [redacted:LONG], [redacted:SHORT], five5",
  );
  expect(filter.json({ "a sesame": [{ b: ["sesame", 1, null, true] }], c: "x" })).toEqual({
    "a [redacted:SHORT]": [{ b: ["[redacted:SHORT]", 1, null, true] }],
    c: "x",
  });
  // Each of these holds it in one place only.
  const marked = "[redacted:SHORT]";
  expect(filter.json("sesame")).toBe(marked);
  expect(filter.json(["x", "sesame"])).toEqual(["x", marked]);
  expect(filter.json({ a: "x", b: "sesame" })).toEqual({ a: "x", b: marked });
  expect(filter.json({ a: "x", sesame: 1 })).toEqual({ a: "x", [marked]: 1 });
  expect(filter.json([{ a: [["sesame"]] }])).toEqual([{ a: [[marked]] }]);
  const clean = { a: ["x", null, 1, { b: "y" }] };
  expect(filter.json(clean)).toBe(clean);
  expect(createSecretFilter(new Map()).begun("anything")).toBe(0);
});

test("a long text made to look like the beginning of many secrets is done in time", () => {
  const size = 1_000_000;
  const parts = [
    "eyJ-",
    "eyJaaaaaaaaaa.",
    "eyJaaaaaaaaaa.eyJ-",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "bearer ",
    "://a:",
    "://a:b",
    "sk-",
    "xoxb-",
    "ghp_",
    "_",
    '"token',
    '\\\\\\"token\\\\\\":\\\\\\"',
    '"token":"',
    "x-token: ",
    "a-",
    "cookie:",
    "&token=",
    "--token ",
    "A_TOKEN=",
    "token",
    "a.",
    "token = a.",
    "A_PASS",
    "PASSWORD",
    "hf_",
    "sk_live_",
    "Authorization: a ",
    "Authorization: a b c d ",
    "x-token: a b c d e\n",
    "A_TOKEN: a.b.c.d.e",
    "A_TOKEN = a(",
    "token=a,",
    "token=\\",
    "'\\''",
    "token='\"",
    '--token "',
    "TOKEN  =  ",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "\u001b[1m",
    "\u001b[1mtoken",
    "token\u001b[1m",
    "TOKEN\u001b[1m=\u001b[1m",
    "x-token\u001b[1m:",
    '"token"\u001b[1m',
    "\u001b[1m--token\u001b[1m",
    "\u001b[1;1;1;1;1;1;1;1;1;1",
    "%3D",
    "%3Dtoken=",
    "%3DeyJaaaaaaaaaa.",
    "\\neyJaaaaaaaaaa.eyJ-",
    "\\",
    "\\ntoken=",
    "\\u003d",
    "a.a.a",
  ];
  for (const part of parts) {
    const text = part.repeat(size / part.length);
    // Whatever becomes of it: a pattern that tries every start to the end of the text would take hours.
    expect(redactText(text).length).toBeGreaterThan(0);
    expect(redactJson({ [text]: text })).toBeTypeOf("object");
  }
});
