import { Writable } from "node:stream";
import { redactText, visible } from "@sluice/core/runtime";
import { type GatewayRun, newGatewayToken, serveStdio, startGatewayServer } from "@sluice/gateway";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { ownVersion } from "../../options.ts";
import { EXIT, STOPPED, type StopSignal } from "../../output/exit-codes.ts";
import { usageError } from "../../output/output.ts";
import { reserveOutput } from "../../output/protocol-output.ts";
import { commandLine } from "../../project/project-paths.ts";
import { type AgentRunFlags, type OpenAgentRun, openAgentRun } from "../../runs/agent-run.ts";
import { onStopSignal } from "../../runs/follow-run.ts";

export type GatewayFlags = AgentRunFlags & { readonly http?: true | number };

/** `sluice gateway`: serves one run to an agent until the agent leaves or a signal stops it. */
export async function gateway(context: CommandContext, flags: GatewayFlags): Promise<number> {
  refuseInsideRun(readSettings(context.env), "gateway");
  if (flags.input?.includes("-") === true)
    throw usageError("--input - cannot be used here: stdin carries the protocol");
  const stopped = Promise.withResolvers<StopSignal>();
  const ignoreSignals = onStopSignal(stopped.resolve);
  // Beside an agent's own tools, nothing is promised.
  const open = await openAgentRun(flags, { name: "mcp", class: "advisory" }, context);
  try {
    const serving = flags.http === undefined ? serveHere(open.run, context) : serveHttp(open.run, flags.http, context);
    const signal = await Promise.race([stopped.promise, serving]);
    return signal === undefined ? EXIT.completed : STOPPED[signal];
  } finally {
    await leave(open, context);
    ignoreSignals();
  }
}

/** Serves the client on stdin and stdout until it closes them. */
async function serveHere(run: GatewayRun, { terminal }: CommandContext): Promise<undefined> {
  const say = sayTo(terminal);
  const output = reserveOutput(process.stdout, say);
  try {
    const server = serveStdio(run, {
      version: ownVersion(),
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
async function serveHttp(run: GatewayRun, http: true | number, { terminal }: CommandContext): Promise<undefined> {
  const token = newGatewayToken();
  const server = await startGatewayServer({
    run,
    token,
    version: ownVersion(),
    ...(http === true ? {} : { port: http }),
    onError: ({ message }) => sayTo(terminal)(message),
  });
  terminal.out(`MCP    ${server.url}/mcp\ntoken  ${token}\n`);
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
  const { status } = run.now();
  await close();
  if (runId === undefined) return;
  const next = status === "ended" ? ["show", runId] : [...command, "--resume", runId];
  const what = status === "ended" ? run.now().text : `run ${runId} is suspended`;
  terminal.err(`sluice: ${visible(`${what}\n  ${commandLine(next, place, here, env)}`)}\n`);
}

export function sayTo(terminal: CommandContext["terminal"]): (text: string) => void {
  return (text) => terminal.err(`sluice: ${visible(redactText(text))}\n`);
}
