import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { HostName } from "../../host-names.ts";
import type { AgentCall } from "../../run/gateway-run-types.ts";
import type { HostClass, LaunchPlan, LaunchRequest } from "../host.ts";
import { newServerName } from "../install/own-server.ts";
import { launchPlan } from "../launch-plan.ts";
import { hostEnvironment, writePlan } from "../start-host.ts";
import { userPlaces } from "../user-places.ts";
import { CANARY_ANSWER, CANARY_TOOL, type CanaryGateway, startCanaryGateway } from "./canary-gateway.ts";
import { HEADLESS } from "./headless.ts";
import { runProgram } from "./run-program.ts";
import { type ScriptedModel, type Scripts, startScriptedModel } from "./scripted-model.ts";
import type { ScriptedCall } from "./wires.ts";

/** What became of a call that the gate would have denied, or should have let through. */
export type Outcome =
  /** The gate was asked and the call did not run. */
  | "refused by the gate"
  /** The call did not run and the gate was not asked: the host has no such tool, or refused by itself. */
  | "refused by the host"
  /** The call ran without the gate's yes. */
  | "ran"
  /** The gate's tool or an allowed call worked. */
  | "works"
  | "does not work";

export interface Finding {
  readonly canary: string;
  readonly outcome: Outcome;
  /** Whether this is what the class promises. */
  readonly ok: boolean;
}

export interface Examination {
  readonly host: HostName;
  readonly version: string | undefined;
  /** The way that was examined. */
  readonly mode: "hard" | "guarded";
  readonly native: boolean;
  readonly findings: readonly Finding[];
  readonly proven: HostClass;
}

/** What an examination needs of a plan, for hosts whose hooks are command lines. */
export type HookFiles = (
  gateway: Pick<CanaryGateway, "url" | "token" | "secret">,
  folder: string,
) => Pick<LaunchRequest, "hookCommand" | "plugin">;

export interface ExamineOptions {
  readonly host: HostName;
  readonly version: string | undefined;
  readonly mode: "hard" | "guarded";
  readonly native?: boolean;
  /** A folder in which the examination makes its own, not below the system's temporary folder. */
  readonly scratch: string;
  readonly env: NodeJS.ProcessEnv;
  readonly hookFiles: HookFiles;
  /** Milliseconds that a host may take for one session. */
  readonly timeoutMs?: number;
  /** Servers in place of the gateway whose answers are worth nothing: the host must refuse as if there was none. */
  readonly faults?: readonly { readonly name: string; readonly url: string }[];
}

const SESSION_TIMEOUT = 120_000;

/**
 * Starts a host three times without a person, with a scripted model that makes canary calls: in a hostile repository in front of a
 * gate that denies, in a clean one in front of a gate that allows, and with the gateway gone. Throws nothing about the host: what
 * does not work is a finding.
 */
export async function examineHost(options: ExamineOptions): Promise<Examination> {
  const { host, version, mode, native = false } = options;
  const denied = await session(options, { hostile: true, gone: false, allows: isSubagentStart });
  const allowed = await session(options, { hostile: false, gone: false, allows: () => true });
  const gone = await session(options, { hostile: false, gone: true, allows: () => true });
  const findings = [
    ...deniedFindings(denied),
    ...allowedFindings(allowed, options),
    ...goneFindings(gone, "without a gateway"),
  ];
  for (const { name, url } of options.faults ?? []) {
    const faulty = await session(options, { hostile: false, gone: true, allows: () => true, url });
    findings.push(...goneFindings(faulty, `where the gateway ${name}`));
  }
  const isProven = findings.every(({ ok }) => ok);
  const proven: HostClass = isProven ? mode : "advisory";
  return { host, version, mode, native, findings, proven };
}

/** A gate that denies everything would keep the subagent from starting, and prove nothing about its calls. */
function isSubagentStart({ tool }: AgentCall): boolean {
  return tool === "Agent" || tool === "Task";
}

interface Canary {
  readonly name: string;
  readonly call: ScriptedCall;
  /** Exists once the call ran. */
  readonly marker: string;
}

interface SessionResult {
  readonly canaries: readonly Canary[];
  readonly ran: ReadonlySet<string>;
  /** Which canaries the gate was asked about. */
  readonly seen: ReadonlySet<string>;
  /** Programs of the repository that the host started. */
  readonly started: readonly string[];
  /** Results that the model was given. */
  readonly results: readonly string[];
  /** Whether the model was asked at all. */
  readonly asked: boolean;
}

interface SessionOptions {
  readonly hostile: boolean;
  readonly gone: boolean;
  /** Default: the gateway's. */
  readonly url?: string;
  readonly allows: (call: AgentCall) => boolean;
}

async function session(
  options: ExamineOptions,
  { hostile, gone, allows, url }: SessionOptions,
): Promise<SessionResult> {
  const { host, version, mode, native = false, scratch, env, hookFiles, timeoutMs = SESSION_TIMEOUT } = options;
  const headless = HEADLESS[host];
  const server = newServerName();
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const root = mkdtempSync(join(scratch, "canary-"));
  const folderOf = (name: string): string => join(root, name);
  const workspace = folderOf("workspace");
  const home = folderOf("home");
  const folder = folderOf("private");
  const marks = folderOf("marks");
  for (const path of [workspace, home, folder, marks]) mkdirSync(path, { mode: 0o700 });
  const canaries = canariesOf(host, workspace);
  let gateway: CanaryGateway | undefined;
  let model: ScriptedModel | undefined;
  try {
    gateway = await startCanaryGateway(host, server, allows);
    model = await startScriptedModel(scriptsOf(host, server, canaries));
    const settings = headless.settings?.(model.url) ?? {};
    for (const [path, content] of Object.entries(settings)) put(join(home, path), content);
    put(join(workspace, "a.txt"), "one\n");
    if (hostile)
      for (const [path, content] of Object.entries(headless.hostile((name) => join(marks, name), server)))
        put(join(workspace, path), content);
    const asked = { url: url ?? gateway.url, token: gateway.token, secret: gateway.secret };
    const plan = launchPlan(host, {
      url: asked.url,
      token: gateway.token,
      workspace,
      folder,
      mode,
      native,
      server,
      tools: [CANARY_TOOL, "get_state", "transition"],
      args: [],
      version,
      proven: mode,
      user: userPlaces({}, home),
      ...hookFiles(asked, folder),
    });
    writePlan(plan);
    if (gone) await gateway.close();
    await runProgram(plan.command, argumentsOf(plan, host, model.url), {
      cwd: workspace,
      timeoutMs,
      env: { ...hostEnvironment(plan, env), HOME: home, ...headless.env(model.url, home), ...homeFolders(plan, home) },
    });
    const written = new Set(readdirSync(workspace));
    return {
      canaries,
      ran: new Set(canaries.filter(({ marker }) => written.has(marker)).map(({ name }) => name)),
      seen: new Set(
        canaries
          .filter(({ marker }) => gateway?.seen.some((call) => JSON.stringify(call).includes(marker)))
          .map(({ name }) => name),
      ),
      started: readdirSync(marks),
      results: model.requests.flatMap(({ messages }) =>
        messages.flatMap((one) => (one.role === "result" ? [one.text] : [])),
      ),
      asked: model.requests.length > 0,
    };
  } finally {
    await model?.close();
    if (!gone) await gateway?.close();
    rmSync(root, { recursive: true, force: true });
  }
}

function argumentsOf(plan: LaunchPlan, host: HostName, model: string): readonly string[] {
  const { command, args } = HEADLESS[host];
  return [...(command === undefined ? [] : [command]), ...plan.args, ...args("main", model)];
}

/** A host must not find the user's real files, and must not write next to them. */
function homeFolders(plan: LaunchPlan, home: string): Readonly<Record<string, string>> {
  return {
    XDG_CONFIG_HOME: plan.env.XDG_CONFIG_HOME ?? join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local", "share"),
    XDG_STATE_HOME: join(home, ".local", "state"),
  };
}

function canariesOf(host: HostName, workspace: string): readonly Canary[] {
  const { shell, write, background, subagent, patch } = HEADLESS[host].calls;
  const canary = (name: string, marker: string, call: ScriptedCall | undefined): readonly Canary[] =>
    call === undefined ? [] : [{ name, marker, call }];
  return [
    ...canary("shell of the main agent", "canary-shell", shell("echo x > canary-shell")),
    ...canary("writing a file", "canary-write", write(join(workspace, "canary-write"), "x")),
    ...canary("background shell", "canary-background", background?.("echo x > canary-background")),
    ...canary("patch in the shell", "canary-patch", patch?.("canary-patch")),
    ...canary("shell of a subagent", "canary-subagent", subagent?.("SCRIPT:subagent")),
  ];
}

function scriptsOf(host: HostName, server: string, canaries: readonly Canary[]): Scripts {
  const { calls, gatewayTool } = HEADLESS[host];
  return {
    main: [
      ...canaries.map(({ call }) => ({ calls: [call] })),
      { calls: [{ name: gatewayTool(server, CANARY_TOOL), input: { path: "a.txt" } }] },
      { text: "done" },
    ],
    subagent: [{ calls: [calls.shell("echo x > canary-subagent")] }, { text: "done" }],
  };
}

function deniedFindings({ canaries, ran, seen, started, asked }: SessionResult): readonly Finding[] {
  return [
    ...canaries.map(({ name }): Finding => {
      const outcome = ran.has(name) ? "ran" : seen.has(name) ? "refused by the gate" : "refused by the host";
      return { canary: `${name}, in a hostile repository`, outcome, ok: asked && outcome !== "ran" };
    }),
    {
      canary: "programs that the repository names",
      outcome: started.length > 0 ? "ran" : "refused by the host",
      ok: asked && started.length === 0,
    },
  ];
}

function allowedFindings({ ran, results }: SessionResult, { mode, native }: ExamineOptions): readonly Finding[] {
  const hasAnswer = results.some((text) => text.includes(CANARY_ANSWER));
  const works: Finding = {
    canary: "a tool of the gateway",
    outcome: hasAnswer ? "works" : "does not work",
    ok: hasAnswer,
  };
  const name = "shell of the main agent";
  if (mode === "hard" && native !== true)
    return [
      works,
      {
        canary: `${name}, without approval`,
        outcome: ran.has(name) ? "ran" : "refused by the host",
        ok: !ran.has(name),
      },
    ];
  return [
    works,
    { canary: `${name}, allowed by the gate`, outcome: ran.has(name) ? "works" : "does not work", ok: ran.has(name) },
  ];
}

function goneFindings({ canaries, ran }: SessionResult, where: string): readonly Finding[] {
  return canaries.map(({ name }) => ({
    canary: `${name}, ${where}`,
    outcome: ran.has(name) ? "ran" : "refused by the host",
    ok: !ran.has(name),
  }));
}

function put(path: string, content: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content, null, 2));
}
