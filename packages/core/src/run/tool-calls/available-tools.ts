import type { Envelope } from "../../gate/envelope.ts";
import type { Tool } from "../../gate/tool.ts";
import type { Offer } from "../executor.ts";

/** A state's envelope against the session's live tools: what its model may be shown. */
export function offerTools(envelope: Envelope | undefined, tools: ReadonlyMap<string, Tool>): Offer {
  return {
    allowedTools: envelope?.allowedTools,
    tools: [...tools.values()].map(({ name, description, inputSchema, effect }) => ({
      name,
      description,
      inputSchema,
      effect,
      allowed: envelope !== undefined && envelope.rulesFor(name).length > 0,
    })),
  };
}
