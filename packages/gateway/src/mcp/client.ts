import { CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, type Server } from "@modelcontextprotocol/server";
import { visible } from "@sluice/core/runtime";
import { z } from "zod";

/** What a request, or the handshake of its connection, says about the client. Hostile. */
export interface ClientFacts {
  /** `claude-code 2.1.330`, safe to show and to journal. */
  readonly label: string;
  /** Whether it can show a person a form. */
  readonly canElicit: boolean;
}

const Info = z.object({ name: z.string(), version: z.string() });
const Capabilities = z.object({
  elicitation: z.object({ form: z.unknown().optional(), url: z.unknown().optional() }).optional(),
});
const Envelope = z.object({
  [CLIENT_INFO_META_KEY]: Info.optional(),
  [CLIENT_CAPABILITIES_META_KEY]: Capabilities.optional(),
});

/** Requests of revision 2026-07-28 carry the facts in their envelope; before it, the handshake of the connection did. */
export function clientFacts(envelope: unknown, server: Server): ClientFacts {
  const read = Envelope.safeParse(envelope ?? {});
  const given = read.success ? read.data : {};
  return {
    label: clientLabel(given[CLIENT_INFO_META_KEY] ?? server.getClientVersion()),
    canElicit: showsForms(given[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities()),
  };
}

const LONGEST_NAME = 64;

export function clientLabel(client: z.infer<typeof Info> | undefined): string {
  if (client === undefined) return "an unnamed client";
  return `${short(client.name)} ${short(client.version)}`.trim();
}

function short(text: string): string {
  return visible(text.slice(0, LONGEST_NAME)).replaceAll("\n", " ");
}

/** Without a mode, the capability means forms. */
function showsForms(capabilities: z.infer<typeof Capabilities> | undefined): boolean {
  const declared = capabilities?.elicitation;
  if (declared === undefined) return false;
  return declared.form !== undefined || declared.url === undefined;
}
