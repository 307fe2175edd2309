import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { field, parseJson } from "@sluice/core";
import { messageOf, sha256 } from "@sluice/core/runtime";
import type { SessionStore } from "@sluice/gateway";
import { type Environment, stateFolder } from "@sluice/tui/user";
import { textAt, textsAt } from "@sluice/view/words";

/**
 * The runs of sessions, in the user's state folder, where no run may write. Ids of sessions come from clients: files are named by
 * their digests.
 */
export function sessionFiles(env: Environment, say: (text: string) => void): SessionStore {
  const folder = join(stateFolder(env), "acp");
  const fileOf = (sessionId: string): string => join(folder, `${sha256(sessionId).slice(0, 32)}.json`);
  return {
    recall(sessionId) {
      const json = parseJson(readText(fileOf(sessionId)));
      if (!json.ok || field(json.value, "sessionId") !== sessionId) return undefined;
      return { cwd: textAt(json.value, "cwd"), runIds: textsAt(json.value, "runIds") };
    },
    remember(sessionId, { cwd, runIds }) {
      const file = fileOf(sessionId);
      const draft = `${file}.${process.pid}`;
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        writeFileSync(draft, JSON.stringify({ version: 1, sessionId, cwd, runIds }), { mode: 0o600 });
        renameSync(draft, file);
      } catch (thrown) {
        say(`the session could not be stored, so a client can load it only by the run's id: ${messageOf(thrown)}`);
      }
    },
  };
}

/** A missing or unreadable file means that the session is unknown. */
function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown) return "";
    throw thrown;
  }
}
