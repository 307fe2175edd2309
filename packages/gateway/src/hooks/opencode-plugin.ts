import { checkHook, type LauncherOptions } from "./launcher.ts";

/**
 * The source of an opencode plugin that asks the gateway about every call and refuses it unless the gateway says yes in time. A
 * plugin that throws is a refusal; opencode itself has no time limit. Only the user may read the file, since it has the token and the
 * secret of the run.
 */
export function opencodePlugin(options: Omit<LauncherOptions, "host">): string {
  checkHook(options);
  const { url, token, proof, seconds } = options;
  return `// Asks the permission gate of Sluice about every call. No answer means no.
import { createHash, randomBytes } from "node:crypto";

const address = ${JSON.stringify(`${url}/hook/opencode`)};
const token = ${JSON.stringify(token)};
const secret = ${JSON.stringify(proof.secret)};

async function ask(event, payload) {
  const nonce = randomBytes(16).toString("hex");
  const response = await fetch(address + "?event=" + event, {
    method: "POST",
    redirect: "error",
    headers: { authorization: "Bearer " + token, "content-type": "application/json", "x-sluice-nonce": nonce },
    body: JSON.stringify({ ...payload, event }),
    signal: AbortSignal.timeout(${seconds * 1_000}),
  });
  const text = await response.text();
  const end = text.lastIndexOf("\\n#");
  const body = text.slice(0, Math.max(0, end));
  const proof = createHash("sha256").update([secret, nonce, body, secret, ""].join("\\n")).digest("hex");
  if (response.status !== 200 || end < 0 || text.slice(end + 2) !== proof) throw new Error("the answer is not from the gateway");
  return JSON.parse(body);
}

async function decided(event, payload) {
  let answer;
  try {
    answer = await ask(event, payload);
  } catch (thrown) {
    throw new Error("The permission gate gave no answer (" + thrown.message + "), so this is refused. Start it again with: sluice gateway run opencode");
  }
  if (answer.decision !== "allow") throw new Error(answer.reason || "The permission gate denied this call.");
  return answer;
}

export const SluiceGate = async ({ client, directory }) => {
  const parents = new Map();
  const approved = new Set();
  const base = (id) => {
    let root = id;
    for (let depth = 0; depth < 32 && parents.has(root); depth += 1) root = parents.get(root);
    return { sessionID: root, cwd: directory, ...(root === id ? {} : { agent: id }) };
  };
  return {
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID, callID } = input;
      const answer = await decided("tool.execute.before", { ...base(sessionID), tool, callID, args: output.args });
      if (answer.args) Object.assign(output.args, answer.args);
      approved.add(callID);
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args = {} } = input;
      approved.delete(callID);
      // A lost report ends as an unknown outcome in the run.
      await ask("tool.execute.after", { ...base(sessionID), tool, callID, args, output: String(output?.output ?? "") }).catch(() => undefined);
    },
    "chat.message": async (input, output) => {
      const prompt = (output?.parts ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\\n");
      if (prompt !== "" && !parents.has(input.sessionID))
        await ask("chat.message", { ...base(input.sessionID), prompt }).catch(() => undefined);
    },
    "experimental.chat.system.transform": async (input, output) => {
      const answer = await ask("session.start", base(input?.sessionID ?? "unknown")).catch(() => undefined);
      if (answer?.context) output.system.push(answer.context);
    },
    event: async ({ event }) => {
      const { properties = {} } = event;
      if (event.type === "session.created" && properties.info?.parentID) parents.set(properties.info.id, properties.info.parentID);
      if (event.type === "session.idle") await ask("session.idle", base(properties.sessionID)).catch(() => undefined);
      if (event.type !== "permission.asked" || !approved.has(properties.tool?.callID)) return;
      await client.postSessionIdPermissionsPermissionId({
        path: { id: properties.sessionID, permissionID: properties.id },
        body: { response: "once" },
      });
    },
  };
};
`;
}
