import { done, pipeline } from "@sluice/core";
import { createSecretFilter } from "@sluice/core/runtime";
import { expect, test } from "vitest";
import { z } from "zod";
import { sessionSecrets } from "../../packages/stages/src/secrets/detect.ts";
import { secretForms } from "../../packages/stages/src/secrets/encodings.ts";
import { caller, completed, noModel, session, work } from "../support/run-kit.ts";
import { tempFolder } from "../support/tools.ts";

// A secret as the programs that handle it write it, and the parts of one that has several.

function filterOf(...secrets: readonly string[]) {
  return createSecretFilter(secretForms(new Map(secrets.map((secret) => [secret, "SECRET"]))));
}

// As the encoders printed them.
test.each([
  ["Go's encoding/json", "cor<rect>&horse", String.raw`cor\u003crect\u003e\u0026horse`],
  ["Go's encoding/json", "line\u2028end-of-it", String.raw`line\u2028end-of-it`],
  ["Gson", "wJalrXUtnFEMI/K7M'DENG==", String.raw`wJalrXUtnFEMI/K7M\u0027DENG\u003d\u003d`],
  ["Python's json.dumps", "pässwörd-😀-mit", String.raw`p\u00e4ssw\u00f6rd-\ud83d\ude00-mit`],
  ["Python's json.dumps", 'say "delete" \u007f now', String.raw`say \"delete\" \u007f now`],
  ["PHP's json_encode", "wJalrXUtnFEMI/K7MDENG/bPx", String.raw`wJalrXUtnFEMI\/K7MDENG\/bPx`],
  ["PHP's json_encode", "schlüssel/für/alle", String.raw`schl\u00fcssel\/f\u00fcr\/alle`],
  [".NET's JsonSerializer", `a"b+c'd<e>f&g\`hé`, String.raw`a\u0022b\u002Bc\u0027d\u003Ce\u003Ef\u0026g\u0060h\u00E9`],
  [".NET's JsonSerializer", 'back\\slash-and-"', String.raw`back\\slash-and-\u0022`],
  ["a form in JavaScript", "S3cure!Pass'w0rd(2024) ~*", "S3cure%21Pass%27w0rd%282024%29+%7E*"],
  ["encodeURIComponent", "S3cure!Pass'w0rd(2024) ~*", "S3cure!Pass'w0rd(2024)%20~*"],
  ["Python's quote", "S3cure!Pass/w0rd(2024) ~*", "S3cure%21Pass/w0rd%282024%29%20~%2A"],
  ["Python's quote with no safe characters", "S3cure!Pass/w0rd ~*", "S3cure%21Pass%2Fw0rd%20~%2A"],
  ["Python's quote_plus, and Go's QueryEscape", "S3cure!Pass/w0rd ~*", "S3cure%21Pass%2Fw0rd+~%2A"],
  ["the password of a URL in JavaScript", "abc/def+ghi=jkl$mno", "abc%2Fdef+ghi%3Djkl$mno"],
  ["a program that writes codes in lower case", "abc/def+ghi=jkl", "abc%2fdef%2bghi%3djkl"],
])("a secret is found as %s writes it: %s", (_encoder, secret, written) => {
  const filter = filterOf(secret);
  expect(filter.text(`"${written}"`)).toBe('"[redacted:SECRET]"');
  const nested = JSON.stringify(written).slice(1, -1);
  if (!written.includes("%")) expect(filter.text(`"${nested}"`)).toBe('"[redacted:SECRET]"');
});

test("a secret is found as the encoders of this platform write it", () => {
  for (const secret of ["S3cure!Pass'w0rd(2024)", "wJalrXUtnFEMI/K7MDENG+bPxRfi==", "cor rect & <battery> ~*|^%41"]) {
    const filter = filterOf(secret);
    const address = new URL("https://host.example");
    address.password = secret;
    const written = [JSON.stringify(secret), new URLSearchParams({ k: secret }).toString(), address.password];
    for (const text of written) expect(filter.text(text), text).toContain("[redacted:SECRET]");
  }
});

test("a password in a URL is known as it stands there and decoded", () => {
  const env = { DATABASE_URL: "postgres://u:p%40ssw0rd%2Fvery%23long99@host/db" };
  const { filter } = sessionSecrets(env, { named: [], passed: [], values: [] });
  expect(filter.text("p%40ssw0rd%2Fvery%23long99 or p@ssw0rd/very#long99")).toBe(
    "[redacted:DATABASE_URL] or [redacted:DATABASE_URL]",
  );
});

test("a secret of more digits than a number holds is found in a number, and no other number is", () => {
  const filter = filterOf("12345678901234567891");
  expect(filter.json(JSON.parse('{"pin":12345678901234567891,"negative":-12345678901234567891}'))).toEqual({
    pin: "[redacted:SECRET]",
    negative: "[redacted:SECRET]",
  });
  const others = [1, 0, 1_234_567_890, 12_345_678_901_234_567_000 + 8192, 1e300, 0.5];
  expect(filterOf("12345678901234567891", "00000001", "1e000001").json(others)).toEqual(others);
});

const PEM = [
  "-----BEGIN PRIVATE KEY-----",
  "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
  "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
  "-----END PRIVATE KEY-----",
];
const ACCOUNT = {
  type: "service_account",
  project_id: "my-project-123456",
  private_key_id: "0123456789abcdef0123456789abcdef01234567",
  private_key: `${PEM.join("\n")}\n`,
  client_email: "deploy-bot-for-production@my-project-123456.iam.gserviceaccount.com",
  client_id: "123456789012345678901",
  token_uri: "https://oauth2.googleapis.com/token",
  auth_provider_x509_cert_url: "https://www.googleapis.com/oauth2/v1/certs",
  client_x509_cert_url:
    "https://www.googleapis.com/robot/v1/metadata/x509/deploy-bot-for-production%40my-project-123456.iam",
};

test.each([
  ["with real ends of lines", JSON.stringify(ACCOUNT, null, 2)],
  ["on one line", JSON.stringify(ACCOUNT)],
])("of a service account in JSON %s, the keys are found alone, and nothing that other files name", (_how, value) => {
  const filter = filterOf(value);
  for (const key of [...PEM.slice(1, 3), ACCOUNT.private_key_id])
    expect(filter.text(`    12\t  "${key}"`)).toBe('    12\t  "[redacted:SECRET]"');
  const { private_key: _key, private_key_id: _id, ...others } = ACCOUNT;
  for (const ordinary of Object.values(others))
    expect(filter.text(`see ${ordinary} here`)).toBe(`see ${ordinary} here`);
});

test.each([
  ["a variable with \\n for the ends of lines", PEM.join("\\n")],
  ["a file with the line ends of Windows", PEM.join("\r\n")],
  ["a block that is indented in YAML", `key: |\n${PEM.map((line) => `    ${line}`).join("\n")}\n`],
])("a key in %s is found by its lines", (_how, value) => {
  const filter = filterOf(value);
  for (const line of PEM.slice(1, 3)) expect(filter.text(`7: ${line}`)).toBe("7: [redacted:SECRET]");
});

test("of a configuration with keys, these are found, and no path, name or id", () => {
  const config = [
    "apiVersion: v1",
    "clusters: [{ server: https://cluster-123456.example.com:6443/api/v1/namespaces/default1 }]",
    "    client-key: /home/user1/.minikube/profiles/minikube1/client.key",
    "    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVB",
    "    token: abcd.0123456789abcdef",
    "    subscriptionId: 0d1f2a3b-4c5d-6e7f-8091-a2b3c4d5e6f7",
    "    folder: src/components/dashboard2/widgets/charts",
    "NODE_ENV=production-eu-1",
  ].join("\n");
  const filter = filterOf(config);
  const keys = ["LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVB", "abcd.0123456789abcdef"];
  for (const key of keys) expect(filter.text(`x ${key} y`)).toBe("x [redacted:SECRET] y");
  const ordinary = [
    "https://cluster-123456.example.com:6443/api/v1/namespaces/default1",
    "/home/user1/.minikube/profiles/minikube1/client.key",
    "0d1f2a3b-4c5d-6e7f-8091-a2b3c4d5e6f7",
    "src/components/dashboard2/widgets/charts",
    "NODE_ENV=production-eu-1",
  ];
  for (const text of ordinary) expect(filter.text(`see ${text} here`)).toBe(`see ${text} here`);
});

test("a declared key in a file is masked for Read, Grep and Bash, however its variable writes the ends of lines", async () => {
  const folder = tempFolder();
  folder.put("key.pem", `${PEM.join("\n")}\n`);
  folder.put("account.json", JSON.stringify(ACCOUNT, null, 2));
  const env = { PATH: process.env.PATH ?? "", SIGNING: PEM.join("\\n"), GCP: JSON.stringify(ACCOUNT) };
  const live = session({ model: noModel, cwd: folder.root, env, secrets: ["SIGNING", "GCP"] });
  const looking = work({
    allowedTools: ["Read", "Grep", "Bash"],
    act: async (scope) => {
      const call = caller(scope);
      return completed([
        await call("Read", { file_path: "key.pem" }),
        await call("Read", { file_path: "account.json" }),
        await call("Grep", { pattern: "MII|BKcw|private_key", output_mode: "content" }),
        await call("Bash", { command: "cat key.pem account.json" }),
      ]);
    },
  });
  const made = pipeline({
    id: "keys",
    input: z.object({}),
    stages: { looking },
    initial: "looking",
    next: { looking: ({ output }) => done(output) },
  });
  const run = live.start(made, {});
  expect(await run).toMatchObject({ status: "completed", denied: [] });
  const recorded = JSON.stringify(await live.host.journal(run.runId));
  for (const key of [...PEM.slice(1, 3), ACCOUNT.private_key_id]) expect(recorded).not.toContain(key);
  expect(recorded).toContain(ACCOUNT.project_id);
});
