import type { SecretFilter } from "@sluice/core";
import type { ServerWall } from "./server-wall.ts";

/** What the start of a server takes from the run that needs it first. */
export interface McpStart {
  /** The run; children of the server's are found by it. */
  readonly runId: string;
  /** For the server's process; without the session's secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** What a server says when it fails is told to people, and may hold a key. */
  readonly secrets: Pick<SecretFilter, "text">;
  /** What its process is started behind, where the session has a wall. */
  readonly wall?: ServerWall;
}
