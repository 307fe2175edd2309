import { Writable } from "node:stream";
import { redactText, visible } from "@sluice/core/runtime";
import {
  type GatewayRun,
  HOSTS,
  type HostName,
  hookAdapter,
  hookClass,
  hookFolder,
  hookRoutes,
  hostProofs,
  type McpOptions,
  nativeTools,
  newGatewayToken,
  newHookProof,
  ownServerName,
  type PublishedHooks,
  publishHooks,
  readVersion,
  serveStdio,
  startGatewayServer,
} from "@sluice/gateway";
import type { ProcessLock } from "@sluice/sqlite";
import { readSettings, refuseInsideRun, stateFolder } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { ownVersion } from "../../options.ts";
import { EXIT, STOPPED, type StopSignal } from "../../output/exit-codes.ts";
import { usageError } from "../../output/output.ts";
import { reserveOutput } from "../../output/protocol-output.ts";
import { commandLine, realPath, workspaceOf } from "../../project/project-paths.ts";
import { type AgentRunFlags, type OpenAgentRun, openAgentRun } from "../../runs/agent-run.ts";
import { onStopSignal } from "../../runs/follow-run.ts";
import { type HookedFolder, holdHooks } from "./hold-hooks.ts";

export type GatewayFlags = AgentRunFlags & {
  readonly http?: true | number;
  /** What the answer to a form of the client may do. */
  readonly elicitation?: McpOptions["elicitation"];
  /** The host whose installed hooks ask this gateway. */
  readonly hooks?: HostName;
};

/** The time limit of a hook: below the one of each host. */
const HOOK_SECONDS = 590;
/** How long a call waits for a person: below the time limit of its hook. */
const HOOK_PATIENCE_MS = 45_000;

/** `sluice gateway`: serves one run to an agent until the agent leaves or a signal stops it. */
export async function gateway(context: CommandContext, flags: GatewayFlags): Promise<number> {
  refuseInsideRun(readSettings(context.env), "gateway");
  if (flags.input?.includes("-") === true)
    throw usageError("--input - cannot be used here: stdin carries the protocol");
  const stopped = Promise.withResolvers<StopSignal>();
  const ignoreSignals = onStopSignal(stopped.resolve);
  let held: ProcessLock | undefined;
  try {
    if (flags.hooks !== undefined) held = await holdHooks(flags.hooks, hookedFolder(flags, context));
    return await serveRun(flags, context, stopped.promise);
  } finally {
    held?.release();
    ignoreSignals();
  }
}

async function serveRun(flags: GatewayFlags, context: CommandContext, stopped: Promise<StopSignal>): Promise<number> {
  const open = await openRun(flags, context);
  const hooks = flags.hooks === undefined ? undefined : await serveHooks(open.run, flags.hooks, flags, context);
  try {
    const serving =
      flags.http === undefined ? serveHere(open.run, flags, context) : serveHttp(open.run, flags.http, flags, context);
    const signal = await Promise.race([stopped, serving]);
    return signal === undefined ? exitCodeOfRun(open.run) : STOPPED[signal];
  } finally {
    await hooks?.close();
    await leave(open, context);
  }
}

function hookedFolder(flags: GatewayFlags, { env, here }: CommandContext): HookedFolder {
  return { workspace: realPath(workspaceOf(flags, here)), stateFolder: stateFolder(env) };
}

/** The exit code of a gateway whose agent has left: that of its run, or 0 if the agent made no call. */
function exitCodeOfRun(run: GatewayRun): number {
  const { status, runId, end } = run.now();
  if (status === "not_started") return EXIT.completed;
  if (end === undefined) return runId === undefined ? EXIT.failed : EXIT.suspended;
  if (end.status === "suspended") return EXIT.suspended;
  return end.status === "completed" ? EXIT.completed : EXIT.failed;
}

async function openRun(flags: GatewayFlags, context: CommandContext): Promise<OpenAgentRun> {
  const { hooks } = flags;
  // Beside an agent's own tools, nothing is promised.
  if (hooks === undefined) return await openAgentRun(flags, { name: "mcp", class: "advisory" }, context);
  const version = await readVersion(HOSTS[hooks].command, { ...context.env });
  const proven = hostProofs(stateFolder(context.env)).read({ host: hooks, mode: "guarded", native: false }, version);
  const agent = {
    name: hooks,
    class: hookClass(hooks, version, proven),
    ...(version === undefined ? {} : { version }),
  };
  return await openAgentRun(flags, agent, context, nativeTools);
}

/** Answers the hooks that are installed for this folder, on a port of its own. */
async function serveHooks(
  run: GatewayRun,
  host: HostName,
  flags: GatewayFlags,
  context: CommandContext,
): Promise<{ close(): Promise<void> }> {
  const token = newGatewayToken();
  const proof = newHookProof();
  const { workspace, stateFolder: state } = hookedFolder(flags, context);
  // No hook has the token before.
  let hooks: PublishedHooks | undefined;
  const server = await startGatewayServer({
    run,
    token,
    version: ownVersion(),
    routes: hookRoutes({
      run,
      // Hooks are installed for a folder, or for all of the user's.
      adapters: [hookAdapter(host, { ownServers: [workspace, undefined].map((place) => ownServerName(state, place)) })],
      proof,
      onDriver: (session) => hooks?.drivenBy(session),
      patienceMs: HOOK_PATIENCE_MS,
    }),
    onError: ({ message }) => sayTo(context.terminal)(message),
  });
  hooks = publishHooks(hookFolder(state, workspace), {
    host,
    url: server.url,
    token,
    proof,
    seconds: HOOK_SECONDS,
  });
  return {
    close: async () => {
      hooks?.end({ isReleased: run.now().end?.isReleased === true });
      await server.close();
    },
  };
}

function mcpOptions({ elicitation }: GatewayFlags): McpOptions {
  return { version: ownVersion(), ...(elicitation === undefined ? {} : { elicitation }) };
}

/** Serves the client on stdin and stdout until it closes them. */
async function serveHere(run: GatewayRun, flags: GatewayFlags, { terminal }: CommandContext): Promise<undefined> {
  const say = sayTo(terminal);
  const output = reserveOutput(process.stdout, say);
  try {
    const server = serveStdio(run, {
      ...mcpOptions(flags),
      stdout: Writable.fromWeb(output.stream),
      onError: ({ message }) => say(message),
    });
    await server.closed;
    return undefined;
  } finally {
    output.release();
  }
}

/** Serves over HTTP until the run is over. */
async function serveHttp(
  run: GatewayRun,
  http: true | number,
  flags: GatewayFlags,
  context: CommandContext,
): Promise<undefined> {
  const { terminal } = context;
  const token = newGatewayToken();
  const server = await startGatewayServer({
    run,
    token,
    ...mcpOptions(flags),
    ...(http === true ? {} : { port: http }),
    onError: ({ message }) => sayTo(terminal)(message),
  });
  // The hooks of a host pass the calls of a server with this name only.
  const { workspace, stateFolder: state } = hookedFolder(flags, context);
  const name = flags.hooks === undefined ? "" : `name   ${ownServerName(state, workspace)}\n`;
  terminal.out(`MCP    ${server.url}/mcp\ntoken  ${token}\n${name}`);
  try {
    await run.ended;
    return undefined;
  } finally {
    await server.close();
  }
}

/** Suspends the run if it is not over, and says how to continue it. */
export async function leave(
  { run, place, close }: OpenAgentRun,
  { terminal, here, env }: CommandContext,
  command: readonly string[] = ["gateway"],
): Promise<void> {
  const { runId } = run;
  const { status, end, text } = run.now();
  await close();
  if (runId === undefined) {
    if (status === "ended") terminal.err(`sluice: ${visible(text)}\n`);
    return;
  }
  const isOver = end !== undefined && end.status !== "suspended";
  const next = isOver ? ["show", runId] : [...command, "--resume", runId];
  const what = isOver ? text : `run ${runId} is suspended`;
  terminal.err(`sluice: ${visible(`${what}\n  ${commandLine(next, place, here, env)}`)}\n`);
}

export function sayTo(terminal: CommandContext["terminal"]): (text: string) => void {
  return (text) => terminal.err(`sluice: ${visible(redactText(text))}\n`);
}
