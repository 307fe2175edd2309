import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  HOSTS,
  type HostName,
  hookAdapter,
  hookRoutes,
  hostProofs,
  type LaunchRequest,
  launcherCommand,
  launcherScript,
  launchPlan,
  nativeTools,
  newGatewayToken,
  newHookProof,
  opencodePlugin,
  ownServerName,
  privateFolder,
  readVersion,
  type StartedHost,
  startGatewayServer,
  startHost,
  TOKEN_VARIABLE,
  userPlaces,
} from "@sluice/gateway";
import { readSettings, refuseInsideRun, stateFolder } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { ownVersion } from "../../options.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { realPath, workspaceOf } from "../../project/project-paths.ts";
import { type AgentRunFlags, openAgentRun } from "../../runs/agent-run.ts";
import { onStopSignal } from "../../runs/follow-run.ts";
import { leave, sayTo } from "./action.ts";

/** The time limit of a hook: below the one of each host. */
const HOOK_SECONDS = 590;
/** How long a call waits for a person: below the time limit of its hook. */
const PATIENCE_MS = 45_000;

export type RunHostFlags = AgentRunFlags & { readonly class: "hard" | "guarded"; readonly native?: boolean };

/** `sluice gateway run <host>`: starts an agent's program behind the gate and waits for its end. */
export async function runHost(
  context: CommandContext,
  host: HostName,
  args: readonly string[],
  flags: RunHostFlags,
): Promise<number> {
  refuseInsideRun(readSettings(context.env), "gateway run");
  const say = sayTo(context.terminal);
  const version = await readVersion(HOSTS[host].command, { ...context.env });
  const native = flags.native === true;
  const proven = hostProofs(stateFolder(context.env)).read({ host, mode: flags.class, native }, version);
  const folder = privateFolder(stateFolder(context.env));
  const token = newGatewayToken();
  const keepsTools = flags.class === "guarded" || flags.native === true;
  const proof = newHookProof();
  const launcher = join(folder.path, "hook.sh");
  const workspace = realPath(workspaceOf(flags, context.here));
  const ownServer = ownServerName(stateFolder(context.env), workspace);
  const requestOf = (url: string, tools: readonly string[]): LaunchRequest => ({
    url,
    token,
    workspace,
    folder: folder.path,
    mode: flags.class,
    ...(flags.native === true ? { native: true } : {}),
    server: ownServer,
    tools,
    ...(flags.task === undefined ? {} : { task: flags.task }),
    args,
    version,
    proven,
    user: userPlaces(context.env),
    hookCommand: (event) => launcherCommand(launcher, event),
    ...(host === "opencode" ? { plugin: opencodePlugin({ url, token, proof, seconds: HOOK_SECONDS }) } : {}),
  });
  try {
    // The class follows from the host and its version: the run records it when it starts.
    const planned = launchPlan(host, requestOf("http://127.0.0.1:1", []));
    const agent = { name: host, class: planned.class, ...(version === undefined ? {} : { version }) };
    // Known to the session as a secret: an agent's own shell has it, and could print it into the record.
    const env = { ...context.env, [TOKEN_VARIABLE]: token };
    const open = await openAgentRun(flags, agent, { ...context, env }, keepsTools ? nativeTools : undefined);
    const server = await startGatewayServer({
      run: open.run,
      token,
      version: ownVersion(),
      routes: keepsTools
        ? hookRoutes({
            run: open.run,
            adapters: [hookAdapter(host, { ownServers: [ownServer] })],
            proof,
            patienceMs: PATIENCE_MS,
          })
        : [],
      onError: ({ message }) => say(message),
    });
    try {
      const tools = (await open.run.tools()).map(({ name }) => name);
      const plan = launchPlan(host, requestOf(server.url, tools));
      say(`${HOSTS[host].title} ${version ?? ""} in class ${plan.class} (${plan.form})`);
      for (const note of plan.notes) say(note);
      if (keepsTools && host !== "opencode") {
        const script = launcherScript({ host, url: server.url, token, proof, seconds: HOOK_SECONDS });
        writeFileSync(launcher, script, { mode: 0o600 });
      }
      const exitCode = await untilEnded(() => startHost(plan, { env: { ...context.env }, folder: folder.path }));
      if (exitCode !== 0) return exitCode;
      const { end } = open.run.now();
      if (end === undefined || end.status === "suspended") return EXIT.suspended;
      return end.status === "completed" ? EXIT.completed : EXIT.failed;
    } finally {
      await server.close();
      await leave(open, context, ["gateway", "run", host]);
    }
  } finally {
    folder.remove();
  }
}

/** The exit code of a host. A signal to this process, and a terminal that is closed, end the host first. */
async function untilEnded(start: () => Promise<StartedHost>): Promise<number> {
  const stopped = new AbortController();
  const end = (): void => stopped.abort();
  const ignoreSignals = onStopSignal(end);
  process.on("SIGHUP", end);
  try {
    const { ended, stop } = await start();
    const stopNow = (): void => void stop();
    if (stopped.signal.aborted) stopNow();
    else stopped.signal.addEventListener("abort", stopNow);
    return await ended;
  } finally {
    ignoreSignals();
    process.off("SIGHUP", end);
  }
}
