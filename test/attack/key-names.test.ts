import { describe, expect, test } from "vitest";
import { sessionSecrets } from "../../packages/stages/src/secrets/detect.ts";
import { type McpServerConfig, readMcpServers } from "../../packages/stages/src/tools/mcp/config.ts";
import { keysOf } from "../../packages/stages/src/tools/mcp/keys.ts";

const KEY = "q8Zk2mT5vXw9Lp3R";
const split = (env: Record<string, string>) => sessionSecrets(env, { named: [], passed: [], values: [] });

describe("a variable whose name says that it holds a key", () => {
  test.each([
    ...["API_KEY_1", "OPENAI_API_KEY_2", "APP_SECRET_1", "STRIPE_SECRET_KEY_LIVE", "DB_PASS_PROD", "NPM_TOKEN_STAGING"],
    ...["API_TOKEN_DEV", "SIGNING_KEY_TEST", "PASSWORD_2", "SERVICE_JWT", "JWT"],
  ])("%s is masked, and kept from child processes", (name) => {
    const { filter, childEnv } = split({ [name]: KEY });
    expect(filter.text(`x ${KEY}`)).toBe(`x [redacted:${name}]`);
    expect(childEnv).toEqual({});
  });

  test.each([
    ["RUN_AUTH_TEST", "true"],
    ["API_KEY_1", "none"],
    ["MAX_TOKEN_2", "4096"],
    ["SIGNING_KEY_DEV", "/home/user1/keys/signing-2024.pem"],
    ["SSH_AUTH_SOCK", "/run/user/1000/keyring-12ab34cd/ssh"],
    ["XDG_SESSION_ID", "c2d3e4f5a6b7c8d9e0f1"],
    ["XDG_RUNTIME_DIR", "/run/user/1000"],
    ["DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus,guid=0123456789abcdef0123456789abcdef"],
    ["npm_config_userconfig", "/home/user1/.npmrc"],
    ["npm_config_user_agent", "npm/10.2.4 node/v20.11.0 linux x64 workspaces/false"],
    ["npm_config_registry", "https://registry.npmjs.org/"],
    ["npm_package_scripts_test", "vitest run --project unit2"],
    ["GIT_AUTHOR_NAME", "Ada Lovelace 1815"],
    ["GIT_AUTHOR_EMAIL", "ada1815@example.com"],
    ["GIT_AUTHOR_DATE", "1700000000 +0000"],
    ["GITHUB_SHA", "0123456789abcdef0123456789abcdef01234567"],
    ["GITHUB_REPOSITORY", "owner-123/repository-456"],
    ["CI_COMMIT_SHA", "0123456789abcdef0123456789abcdef01234567"],
    ["CI_REPOSITORY_URL", "https://git.example.com/group/project-123456789.git"],
    ["LS_COLORS", "rs=0:di=01;34:ln=01;36:*.tar=01;31"],
    ["JAVA_OPTS", "-Xmx2g -Dkey=value1"],
    ["REPO", "https://deploy-user1@git.example.com/x.git"],
    ["SITE", "https://h:80/a@b"],
    ["WINDOWID", "12345678901234567890"],
  ])("%s=%s stays as it is, and reaches child processes", (name, value) => {
    const { filter, childEnv } = split({ [name]: value });
    expect(filter.text(value)).toBe(value);
    expect(childEnv).toEqual({ [name]: value });
  });

  test.each([
    ["GOOGLE_APPLICATION_CREDENTIALS", "/home/user1/keys/account-2024.json"],
    ["SSH_PRIVATE_KEY", "~/.ssh/id_ed25519_work"],
    ["DB_PASSWORD", "postgres"],
    ["SOME_TOKEN", "12345678901234567890"],
  ])("%s=%s is kept from child processes, and its value is not masked", (name, value) => {
    const { filter, childEnv } = split({ [name]: value });
    expect(filter.text(value)).toBe(value);
    expect(childEnv).toEqual({});
  });

  test("a key in base64 that begins with a slash is masked", () => {
    for (const key of ["/JalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1", "/opt1rXUtnFEMI+K7MDENGbPxRfiCYEXAMPLEKEY"])
      expect(split({ AWS_SECRET_KEY: key }).filter.text(key)).toBe("[redacted:AWS_SECRET_KEY]");
  });

  test.each([
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU1\nAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNT\n-----END OPENSSH PRIVATE KEY-----\n",
    "-----BEGIN RSA PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU1\\nAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNT\\n-----END RSA PRIVATE KEY-----",
  ])("a private key is masked, whole and by its lines: %j", (pem) => {
    for (const name of ["SSH_PRIVATE_KEY", "DEPLOY_KEY", "TLS_KEY_PROD"]) {
      const { filter, childEnv } = split({ [name]: pem });
      expect(filter.text(pem)).not.toMatch(/b3Blb|AAAA/);
      expect(filter.text("3: AAAAAAAAABAAAAMwAAAAtzc2gtZWQyNT")).toBe(`3: [redacted:${name}]`);
      expect(childEnv).toEqual({});
    }
    expect(split({ JWT_PUBLIC_KEY: pem.replaceAll("PRIVATE", "PUBLIC") }).filter.text(pem)).toBe(pem);
  });
});

test.each([
  [
    "AZURE_STORAGE_CONNECTION_STRING",
    "DefaultEndpointsProtocol=https;AccountName=myaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1==;EndpointSuffix=core.windows.net",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1==",
  ],
  [
    "BUS",
    "Endpoint=sb://bus-1.servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey1;SharedAccessKey=abcdEFGH0123abcdEFGH0123=",
    "abcdEFGH0123abcdEFGH0123=",
  ],
  ["SQL", "Server=db1.example.com;User Id=sa;Password=Hunter2Hunter2Hunter2;Encrypt=true", "Hunter2Hunter2Hunter2"],
  ["DSN", "host=localhost user=app password=Hunter2Hunter2Hunter2 dbname=app", "Hunter2Hunter2Hunter2"],
  ["GIT_REMOTE", "https://ghp_0123456789abcdefABCDEF@github.com/a/b.git", "ghp_0123456789abcdefABCDEF"],
  ["SENTRY_DSN", "https://0123456789abcdef0123456789abcdef@o0.ingest.sentry.io/1", "0123456789abcdef0123456789abcdef"],
])("of the variable %s, the key inside is masked, and nothing else", (name, value, key) => {
  const { filter, childEnv } = split({ [name]: value, HOME: "/h" });
  expect(filter.text(value)).toBe(value.replace(key, `[redacted:${name}]`));
  expect(filter.text(`key ${key}`)).toBe(`key [redacted:${name}]`);
  expect(childEnv).toEqual({ HOME: "/h" });
});

describe("the keys in the settings of an MCP server", () => {
  const found = (settings: McpServerConfig): readonly string[] => [...keysOf(readMcpServers({ one: settings })).keys()];

  test.each([
    [
      { url: "https://h.example/mcp?api_key=onlyletters&token=alsoletters&page=firstpage" },
      ["onlyletters", "alsoletters"],
    ],
    [{ url: `https://h.example/mcp?session=${KEY}` }, [KEY]],
    [
      { command: "docker", args: ["run", "-e", "GITHUB_TOKEN=onlyletters", "-e", "MODE=production", "image"] },
      ["onlyletters"],
    ],
    [
      { command: "docker", args: ["run", "--env", "DB_PASS=onlyletters", "--env=API_KEY=alsoletters", "image"] },
      ["onlyletters", "alsoletters"],
    ],
    [{ command: "env", args: ["API_KEY=onlyletters", "MODE=production", "server"] }, ["onlyletters"]],
    [
      { command: "npx", args: ["mcp-remote", "https://h.example", "--header", "Authorization: Bearer onlyletters"] },
      ["onlyletters"],
    ],
    [{ command: "npx", args: ["mcp-remote", "https://h.example", "--header=X-Api-Key:onlyletters"] }, ["onlyletters"]],
    [{ command: "curl", args: ["-H", `X-Session: ${KEY}`, "-H", "Accept: application/json"] }, [KEY]],
    [{ command: "npx", args: ["mcp-remote", "https://h.example/mcp?api_key=onlyletters"] }, ["onlyletters"]],
    [{ command: "server", args: ["--database-url=postgres://u:onlyletters@h/db"] }, ["onlyletters"]],
    [
      { command: "server", args: ["--api-key", "onlyletters", "--api-key=alsoletters"] },
      ["onlyletters", "alsoletters"],
    ],
    [{ command: "npx", args: ["mcp-remote", "https://h.example", "--header", "Authorization:$AUTH_HEADER"] }, []],
    [{ url: "https://h.example/mcp?monkey=bananas-and-more&accessKey=onlyletters" }, ["onlyletters"]],
    [{ command: "server", args: ["--token", "--verbose-output", "--secret=--onlyletters"] }, ["--onlyletters"]],
    [
      { command: "server", args: ["--config=settings.json", "--mode", "production", "--header", "Accept: text/plain"] },
      [],
    ],
  ])("%j", (settings, keys) => {
    expect(found(settings)).toEqual(keys);
  });
});
