import { existsSync, readFileSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { visible } from "@sluice/core/runtime";
import {
  type FileChange,
  HOOK_MARKER,
  HOSTS,
  type HostName,
  hookFolder,
  type InstalledServer,
  type InstallRequest,
  type InstallScope,
  noteChange,
  ownServerName,
  planInstall,
  planRemove,
  readVersion,
  removeLeft,
  trustCodexHooks,
} from "@sluice/gateway";
import { takeLock } from "@sluice/sqlite";
import { readSettings, refuseInsideRun, stateFolder } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { fileDiff, paintedDiff } from "../../output/diff.ts";
import { EXIT } from "../../output/exit-codes.ts";
import type { OutputFormat } from "../../output/formats.ts";
import { usageError, write } from "../../output/output.ts";
import { workspaceOf } from "../../project/project-paths.ts";
import { requireWorkflow } from "../../runs/agent-run.ts";
import { linePromptOf } from "../../runs/line-prompt.ts";

export interface RemoveFlags {
  readonly scope?: InstallScope;
  readonly cwd?: string;
  readonly yes?: true;
  readonly outputFormat: OutputFormat;
}

export interface InstallFlags extends RemoveFlags {
  readonly workflow?: string;
  readonly whenIdle: "deny" | "allow";
  readonly trust?: boolean;
  readonly config?: boolean;
}

/** `sluice hook install <host>`: adds hooks to an agent's settings, after it has shown them. */
export async function install(context: CommandContext, host: HostName, flags: InstallFlags): Promise<number> {
  refuseInsideRun(readSettings(context.env), "hook install");
  // The gateway that the host starts has no terminal to ask on.
  if (flags.workflow !== undefined) await requireWorkflow(flags, context);
  const { workflow } = flags;
  const server = workflow === undefined ? undefined : serverOf(context, host, flags, workflow);
  const request = requestOf(context, host, flags, flags.whenIdle, server);
  const { changes, apply } = planInstall(request);
  if (changes.length > 0 && !(await isAccepted(changes, flags, context))) return unchanged(context, flags);
  apply();
  const trust = host === "codex" ? await trusted(request, context) : [];
  const { title } = HOSTS[host];
  write(flags.outputFormat, context.terminal, {
    json: { host, scope: request.scope, changed: changes.map(({ path }) => path) },
    text: () => [
      changes.length === 0 ? `${title} has these hooks already.` : `${title} has the hooks.`,
      ...trust,
      ...(flags.workflow === undefined
        ? [
            `They ask the gateway of the folder: start it with sluice gateway --hooks ${host} --http, then ${HOSTS[host].command}.`,
          ]
        : [`Start ${HOSTS[host].command}: it starts the gateway of ${visible(flags.workflow)} by itself.`]),
      `Prove what reaches the gate: sluice hook doctor ${host} --class guarded`,
      `Remove them:                 sluice hook remove ${host}`,
    ],
  });
  return EXIT.completed;
}

/** `sluice hook remove <host>`: removes what an installation added. */
export async function remove(context: CommandContext, host: HostName, flags: RemoveFlags): Promise<number> {
  refuseInsideRun(readSettings(context.env), "hook remove");
  const request = requestOf(context, host, flags, "deny", undefined);
  const { changes, apply } = planRemove(request);
  if (changes.length > 0 && !(await isAccepted(changes, flags, context))) return unchanged(context, flags);
  apply();
  const active = removeLeftHooks(request);
  const { title } = HOSTS[host];
  write(flags.outputFormat, context.terminal, {
    json: { host, changed: changes.map(({ path }) => path) },
    text: () => [
      changes.length === 0 ? `${title} has no hooks of Sluice here.` : `The hooks of ${title} are removed.`,
      ...(active === undefined
        ? []
        : [`The gateway of this folder (${active}) keeps its session until it ends; then run this command once more.`]),
    ],
  });
  return EXIT.completed;
}

/** Removes what killed gateways left for the hooks of a host. Returns the process that answers them now, if there is one: it keeps all. */
function removeLeftHooks(request: InstallRequest): string | undefined {
  const folder = hookFolder(request.stateFolder, request.workspace);
  if (!existsSync(folder)) return undefined;
  const taken = takeLock(folder, request.host);
  if (typeof taken === "string") return taken;
  try {
    removeLeft(request);
    return undefined;
  } finally {
    taken.release();
  }
}

function requestOf(
  { env, here }: CommandContext,
  host: HostName,
  flags: RemoveFlags,
  whenIdle: "deny" | "allow",
  server: InstalledServer | undefined,
): InstallRequest {
  const scope = scopeOf(host, flags);
  if (host === "opencode" && scope === "user")
    throw usageError("opencode loads its plugin once for a folder; install it in each folder, without --scope user");
  return {
    host,
    scope,
    workspace: workspaceOf(flags, here),
    user: { home: env.HOME ?? homedir(), env },
    stateFolder: stateFolder(env),
    whenIdle,
    ...(server === undefined ? {} : { server }),
  };
}

function scopeOf(host: HostName, { scope = host === "codex" ? "user" : "project" }: RemoveFlags): InstallScope {
  return scope;
}

/** The program that runs now: the agent may have another PATH. */
function serverOf(
  { env, here }: CommandContext,
  host: HostName,
  flags: RemoveFlags,
  workflow: string,
): InstalledServer {
  const [, script = "sluice"] = process.argv;
  const state = stateFolder(env);
  const workspace = scopeOf(host, flags) === "user" ? undefined : workspaceOf(flags, here);
  return {
    name: ownServerName(state, workspace),
    command: [process.execPath, realpathSync(script), "gateway", "--workflow", workflow, "--hooks", host],
    env: { XDG_STATE_HOME: dirname(state) },
  };
}

/** Shows the changes and asks, unless the flags answer. */
async function isAccepted(
  changes: readonly FileChange[],
  { yes, outputFormat }: RemoveFlags,
  { terminal }: CommandContext,
): Promise<boolean> {
  const diff = changes.map(({ path, before, after }) => fileDiff({ old: path, now: path }, before, after)).join("");
  if (outputFormat === "text") terminal.out(`${paintedDiff(diff, terminal)}\n`);
  if (yes === true) return true;
  if (!terminal.facts().stdin || !terminal.facts().stderr)
    throw usageError("no one can be asked here; read the changes above and use --yes to make them");
  const line = await linePromptOf(terminal).ask("Make these changes? [y/N] ");
  return /^y(?:es)?$/i.test(line?.trim() ?? "");
}

function unchanged({ terminal }: CommandContext, { outputFormat }: RemoveFlags): number {
  write(outputFormat, terminal, { json: { changed: [] }, text: () => ["Nothing was changed."] });
  return EXIT.failed;
}

/** Codex skips hooks that are not trusted, so an installation without trust would guard nothing. */
async function trusted(request: InstallRequest, { env }: CommandContext): Promise<readonly string[]> {
  if ((await readVersion(HOSTS.codex.command, { ...env })) === undefined)
    return ["Codex is not installed here. It skips hooks that are not trusted: install them again once it is."];
  const path = join(request.user.env.CODEX_HOME ?? join(request.user.home, ".codex"), "config.toml");
  const before = textOf(path);
  const trust = await trustCodexHooks({ workspace: request.workspace, env: { ...env } }, HOOK_MARKER);
  const after = textOf(path);
  if (after !== undefined && after !== before) noteChange(request, { path, before, after });
  return trust === "trusted"
    ? ["Codex trusts the hooks."]
    : [`Codex does not run the hooks (${trust}): nothing is guarded. Trust them with /hooks in Codex.`];
}

function textOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
