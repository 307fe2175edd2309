import { join } from "node:path";
import type { JsonObject } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { HOST_NAMES, type HostName } from "../../../packages/gateway/src/host-names.ts";
import type { LaunchRequest } from "../../../packages/gateway/src/hosts/host.ts";
import { HOSTS, launchPlan, reaches } from "../../../packages/gateway/src/hosts/launch-plan.ts";
import { versionIn } from "../../../packages/gateway/src/hosts/version.ts";

const TOKEN = "a-token-that-nobody-may-see";

function request(name: HostName, more: Partial<LaunchRequest> = {}): LaunchRequest {
  return {
    url: "http://127.0.0.1:4711",
    token: TOKEN,
    workspace: "/home/ada/project",
    folder: "/home/ada/.local/state/sluice/hosts/run-1",
    mode: "hard",
    server: "sluice",
    tools: ["Bash", "Edit", "transition"],
    args: [],
    version: HOSTS[name].measured[1],
    user: { home: "/home/ada", env: {}, read: () => undefined, exists: () => false },
    ...more,
  };
}

describe.each(HOST_NAMES)("%s", (name) => {
  test("class hard leaves the agent the gateway's tools only", () => {
    const plan = launchPlan(name, request(name));
    expect(plan).toMatchObject({ class: "hard", form: "gateway tools only", cwd: "/home/ada/project" });
  });

  test("class guarded uses hooks", () => {
    expect(launchPlan(name, request(name, { mode: "guarded" }))).toMatchObject({ class: "guarded", form: "hooks" });
  });

  test.each(["hard", "guarded"] as const)("the token is not in the arguments in class %s", (mode) => {
    const plan = launchPlan(name, request(name, { mode, task: "fix the bug" }));
    expect(plan.args.join("\n")).not.toContain(TOKEN);
    expect(Object.values(plan.env)).toContain(TOKEN);
  });

  test("every file is in the private folder", () => {
    for (const mode of ["hard", "guarded"] as const) {
      const { files, links } = launchPlan(name, request(name, { mode }));
      const paths = [...files, ...links].map(({ path }) => path);
      expect(paths.filter((path) => !path.startsWith("/home/ada/.local/state/sluice/hosts/run-1/"))).toEqual([]);
    }
  });

  test("a version that was not measured gets no class", () => {
    const plan = launchPlan(name, request(name, { version: "99.0.0" }));
    expect(plan.class).toBe("advisory");
    expect(plan.notes[0]).toContain(`sluice hook doctor ${name}`);
    expect(launchPlan(name, request(name, { version: undefined })).class).toBe("advisory");
  });

  test("a version that doctor proved gets the proven class, and no more", () => {
    expect(launchPlan(name, request(name, { version: "99.0.0", proven: "hard" })).class).toBe("hard");
    expect(launchPlan(name, request(name, { version: "99.0.0", proven: "guarded" })).class).toBe("guarded");
    expect(launchPlan(name, request(name, { version: "99.0.0", proven: "hard", mode: "guarded" })).class).toBe(
      "guarded",
    );
  });

  test("each option that lifts the class is refused with the reason", () => {
    for (const [option, reason] of Object.entries(HOSTS[name].arguments.refused)) {
      const run = () => launchPlan(name, request(name, { args: [option, "x=y"] }));
      expect(run, option).toThrow(expect.objectContaining({ code: "host_argument" }));
      expect(run, option).toThrow(reason);
      if (option.startsWith("--")) expect(() => launchPlan(name, request(name, { args: [`${option}=x`] }))).toThrow();
    }
  });

  test.each([["--no-such-option"], ["--Tools=x"], ["-pz"], ["--prompt"], ["mcp"], ["serve"], ["--=x"], ["---tools"]])(
    "an argument that is not known is refused: %s",
    (...args) => {
      expect(() => launchPlan(name, request(name, { args }))).toThrow(
        expect.objectContaining({ code: "host_argument" }),
      );
    },
  );

  test("no option is both allowed and refused", () => {
    const { flags, values, refused } = HOSTS[name].arguments;
    expect([...flags, ...values].filter((option) => Object.hasOwn(refused, option))).toEqual([]);
  });

  test("the task is the first prompt of a session", () => {
    const plan = launchPlan(name, request(name, { task: "--tools=all" }));
    expect(plan.args.at(-1)).toMatch(/(?:^|=)--tools=all$/);
  });

  test("the notes say what the class does not cover", () => {
    expect(launchPlan(name, request(name)).notes).not.toEqual([]);
    expect(launchPlan(name, request(name, { mode: "guarded" })).notes.join()).toContain("with your rights");
  });
});

describe("native tools in class hard", () => {
  test("Claude Code asks for every call, and only the gate's hook can say yes", () => {
    const hookCommand = (event: string): string => `/bin/sh '/private/hook.sh' ${event}`;
    const plan = launchPlan("claude", request("claude", { native: true, hookCommand }));
    expect(plan).toMatchObject({ class: "hard", form: "inverted default" });
    const settings = JSON.parse(plan.files.find(({ path }) => path.endsWith("claude-settings.json"))?.text ?? "{}");
    expect(settings).toMatchObject({
      permissions: { ask: ["*"], disableBypassPermissionsMode: "disable" },
      disableAllHooks: false,
      disableSkillShellExecution: true,
    });
    // Not over HTTP: only the launcher's answers carry a proof of who gave them.
    expect(settings.hooks.PermissionRequest[0].hooks[0]).toMatchObject({
      type: "command",
      command: hookCommand("PermissionRequest"),
      onFailure: "block",
    });
    expect(JSON.stringify(settings)).not.toContain(TOKEN);
  });

  test("no other host has it", () => {
    for (const name of HOST_NAMES.filter((one) => one !== "claude"))
      expect(() => launchPlan(name, request(name, { native: true }))).toThrow(
        expect.objectContaining({ code: "host_mode" }),
      );
  });
});

describe("arguments of a person", () => {
  test("a command of the host comes first, the prompt last", () => {
    const plan = launchPlan("codex", request("codex", { args: ["exec", "--json", "fix the bug"] }));
    expect(plan.args[0]).toBe("exec");
    expect(plan.args.slice(-2)).toEqual(["--json", "fix the bug"]);
  });

  test("a prompt replaces the task", () => {
    const plan = launchPlan("gemini", request("gemini", { args: ["-p", "fix the bug"], task: "another" }));
    expect(plan.args.join(" ")).not.toContain("another");
  });

  test.each([["-c", "model=gpt-5"], ["-c", 'model_provider="mine"'], ["--config=model_reasoning_effort=high"]])(
    "Codex takes settings about the model: %s %s",
    (...args) => {
      expect(launchPlan("codex", request("codex", { args })).args).toEqual(expect.arrayContaining(args));
    },
  );

  test.each([
    ["-c", "features.hooks=false"],
    ["-c", "sandbox_mode=danger-full-access"],
    ["-c", 'mcp_servers.x.command="sh"'],
    ["--config=features.shell_tool=true"],
    ["-c", "model_x.y=1\nfeatures.hooks=false"],
  ])("Codex refuses other settings: %s %s", (...args) => {
    expect(() => launchPlan("codex", request("codex", { args }))).toThrow(/only settings about the model/);
  });
});

describe("opencode", () => {
  const user = (settings: object, exists: readonly string[] = []) => ({
    home: "/home/ada",
    env: {},
    read: (path: string) =>
      path.endsWith("opencode/opencode.json") ? JSON.parse(JSON.stringify(settings)) : undefined,
    exists: (path: string) => exists.includes(path),
  });

  test("agents and permissions of the user have no effect, providers do", () => {
    const given = {
      provider: { p: {} },
      model: "p/m",
      agent: { build: { permission: { "*": "allow" } } },
      tools: { bash: true },
    };
    const plan = launchPlan("opencode", request("opencode", { user: user(given) }));
    const kept = plan.files.find(({ path }) => path.endsWith(join("opencode", "opencode.json")));
    expect(JSON.parse(kept?.text ?? "")).toEqual({ provider: { p: {} }, model: "p/m" });
  });

  test("agents in ~/.opencode lower the class, since no switch leaves them out", () => {
    const plan = launchPlan("opencode", request("opencode", { user: user({}, ["/home/ada/.opencode/agent"]) }));
    expect(plan.class).toBe("guarded");
    expect(plan.notes[0]).toContain("~/.opencode/agent");
  });
});

test.each([
  ["2.1.330 (Claude Code)\n", "2.1.330"],
  ["codex-cli 0.169.0", "0.169.0"],
  ["GitHub Copilot CLI 1.0.102.\nRun 'copilot update'", "1.0.102"],
  ["1.18.33", "1.18.33"],
  ["no version", undefined],
  ["1.2", undefined],
])("the version in %j is %s", (text, version) => {
  expect(versionIn(text)).toBe(version);
});

describe("Gemini CLI, which skips system settings that others than root could change", () => {
  const plan = (project: JsonObject | undefined, isOfRoot: boolean, mode: "hard" | "guarded" = "guarded") =>
    launchPlan(
      "gemini",
      request("gemini", {
        mode,
        user: {
          home: "/home/ada",
          env: {},
          exists: (path) => path === "/home/ada/project/.gemini/settings.json" && project !== undefined,
          read: (path) =>
            path.startsWith("/home/ada/project/") ? project : { security: { auth: { selectedType: "a" } } },
          isOfRoot: () => isOfRoot,
        },
      }),
    );

  test("gets the same settings as those of a user of the run, with the user's login", () => {
    const { files, env, links } = plan(undefined, false);
    expect(env.GEMINI_CLI_HOME).toBe("/home/ada/.local/state/sluice/hosts/run-1/gemini");
    const own = files.find(({ path }) => path === `${env.GEMINI_CLI_HOME}/.gemini/settings.json`);
    expect(JSON.parse(own?.text ?? "")).toMatchObject({
      security: { auth: { selectedType: "a" } },
      hooksConfig: { enabled: true },
      mcpServers: { sluice: { trust: true } },
    });
    expect(links.map(({ target }) => target)).toContain("/home/ada/.gemini/oauth_creds.json");
  });

  test("is advisory where the settings of the project could win, and says so", () => {
    for (const mode of ["hard", "guarded"] as const) {
      const { class: level, notes } = plan({ hooksConfig: { enabled: false } }, false, mode);
      expect(level).toBe("advisory");
      expect(notes[0]).toContain(".gemini/settings.json, win over those of the gateway (it sets hooksConfig)");
      expect(plan({ hooksConfig: { enabled: false } }, true, mode).class).toBe(mode);
      expect(plan({ ui: { theme: "x" } }, false, mode).class).toBe(mode);
    }
  });
});

test("a class reaches itself and every weaker one", () => {
  expect(reaches("hard", "guarded")).toBe(true);
  expect(reaches("guarded", "hard")).toBe(false);
  expect(reaches("guarded", "guarded")).toBe(true);
});
