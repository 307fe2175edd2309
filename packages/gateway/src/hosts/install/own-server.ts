import { randomBytes } from "node:crypto";
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SluiceError } from "@sluice/core";
import { sha256 } from "@sluice/core/runtime";
import { SERVER_NAME } from "../host.ts";

/** Names that `ownServerName` returns, and the one without a random part that hand-written settings have. */
export const OWN_SERVER = new RegExp(`^${SERVER_NAME}(?:[0-9a-f]{8})?$`);

/**
 * The name of the gateway's MCP server at the hosts of a workspace, or, without one, in the user's own settings. Hooks let the calls
 * of this server pass, because the gateway decides about them itself, so it follows from a secret that no project knows. Throws
 * Session `server_names_unreadable`.
 */
export function ownServerName(stateFolder: string, workspace: string | undefined): string {
  return nameFor(secretIn(stateFolder), workspace ?? "");
}

/** A name for one session. */
export function newServerName(): string {
  return nameFor(randomBytes(32).toString("hex"), "");
}

function nameFor(secret: string, place: string): string {
  return `${SERVER_NAME}${sha256(`${secret}\n${place}`).slice(0, 8)}`;
}

function secretIn(stateFolder: string): string {
  const file = join(stateFolder, "server-names.key");
  if (!existsSync(file)) writeSecret(stateFolder, file);
  const secret = readFileSync(file, "utf8");
  if (/^[0-9a-f]{64}$/.test(secret)) return secret;
  throw new SluiceError(
    "Session",
    "server_names_unreadable",
    `${file} is damaged; remove it, and install your hooks again with sluice hook install`,
  );
}

/** The file appears whole, and the first of two processes that write it wins. */
function writeSecret(stateFolder: string, file: string): void {
  mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.tmp`;
  writeFileSync(draft, randomBytes(32).toString("hex"), { mode: 0o600 });
  try {
    linkSync(draft, file);
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "EEXIST")) throw thrown;
  } finally {
    rmSync(draft);
  }
}
