import { hookAdapter } from "../../hooks/adapters.ts";
import { newHookProof } from "../../hooks/answer-proof.ts";
import { hookRoutes } from "../../hooks/hook-routes.ts";
import type { HostName } from "../../host-names.ts";
import { startGatewayServer } from "../../mcp/http-server.ts";
import { newGatewayToken } from "../../mcp/token.ts";
import type { AgentCall, CallReply, GatewayRun, PhaseNow } from "../../run/gateway-run-types.ts";

/** A gateway whose gate decides by a function and remembers what it saw. No workflow, no journal. */
export interface CanaryGateway {
  readonly url: string;
  readonly token: string;
  readonly secret: string;
  /** The calls that reached the gate, in order. */
  readonly seen: readonly AgentCall[];
  close(): Promise<void>;
}

/** The one tool that the gateway offers. */
export const CANARY_TOOL = "Read";
export const CANARY_ANSWER = "the canary gateway answered";
const DENIED = "The canary gateway denies this call.";

export async function startCanaryGateway(
  host: HostName,
  ownServer: string,
  allows: (call: AgentCall) => boolean,
): Promise<CanaryGateway> {
  const seen: AgentCall[] = [];
  const run = canaryRun(allows, (call) => seen.push(call));
  const token = newGatewayToken();
  const proof = newHookProof();
  const routes = hookRoutes({
    run,
    adapters: [hookAdapter(host, { ownServers: [ownServer] })],
    proof,
  });
  const server = await startGatewayServer({ run, token, routes, version: "0.0.0" });
  return { url: server.url, token, secret: proof.secret, seen, close: () => server.close() };
}

function canaryRun(allows: (call: AgentCall) => boolean, onCall: (call: AgentCall) => void): GatewayRun {
  const now: PhaseNow = { status: "waiting", state: "canary", tools: [CANARY_TOOL], text: "A canary workflow." };
  const reply: CallReply = { ok: true, output: CANARY_ANSWER, text: CANARY_ANSWER };
  return {
    runId: undefined,
    tools: async () => [
      {
        name: CANARY_TOOL,
        description: "Reads a file.",
        inputSchema: { type: "object", properties: { path: { type: "string" } } },
        effect: "read",
      },
    ],
    start: async () => undefined,
    call(call) {
      onCall(call);
      return {
        verdict: Promise.resolve(allows(call) ? { kind: "allow", input: call.input } : { kind: "deny", text: DENIED }),
        answer: Promise.resolve(reply),
        report: () => undefined,
      };
    },
    now: () => now,
    onPhase: () => () => undefined,
    // A canary run neither ends nor waits.
    ended: new Promise(() => undefined),
    answer: async () => "unknown",
    close: async () => undefined,
  };
}
