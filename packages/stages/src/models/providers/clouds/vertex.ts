import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { isJsonObject, type JsonObject, parseJson, SluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import type { ResolvedModel } from "../../model.ts";
import { claude } from "../anthropic.ts";
import { ANTHROPIC_MARK, cachedModel } from "../cache-marks.ts";
import { fetchHere } from "../fetch.ts";
import {
  accessOf,
  configuredUrl,
  hostPart,
  immutable,
  loadProvider,
  type ModelOptions,
  missingKey,
  requireSetting,
  setting,
  trimmedUrl,
} from "../settings.ts";

const CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS";
/** Members of a credentials file that are secrets. */
const SECRET_MEMBERS = ["private_key", "refresh_token", "client_secret"];

/**
 * `vertex/<model>`: Gemini and Claude on Google's Vertex AI. Reads GOOGLE_VERTEX_API_KEY (Gemini only), or GOOGLE_VERTEX_PROJECT,
 * GOOGLE_VERTEX_LOCATION and GOOGLE_APPLICATION_CREDENTIALS, whose default is the file that `gcloud` writes.
 */
export async function resolveVertex(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const isClaude = name.startsWith("claude-");
  const resolved = isClaude ? await claudeOnVertex(id, name, options) : await geminiOnVertex(id, name, options);
  const usesKey = !isClaude && setting(options.env, "GOOGLE_VERTEX_API_KEY") !== undefined;
  const variables = { address: "GOOGLE_VERTEX_LOCATION", key: usesKey ? "GOOGLE_VERTEX_API_KEY" : CREDENTIALS };
  const address = configuredUrl(options, "vertex")?.origin ?? "https://aiplatform.googleapis.com";
  // Without the variable, the credentials are in the file that gcloud writes.
  return { ...resolved, access: { ...accessOf(options, "vertex", address, variables), hasKey: true } };
}

async function geminiOnVertex(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const load = (): Promise<typeof import("@ai-sdk/google-vertex")> => import("@ai-sdk/google-vertex");
  const apiKey = setting(options.env, "GOOGLE_VERTEX_API_KEY");
  const url = configuredUrl(options, "vertex");
  if (apiKey !== undefined) {
    const { createGoogleVertex } = await loadProvider("@ai-sdk/google-vertex", load);
    const baseURL = url === undefined ? {} : { baseURL: addressOf(url, "/v1/publishers/google") };
    return immutable(id, createGoogleVertex({ apiKey, fetch: fetchHere, ...baseURL }).languageModel(name), {
      secrets: [apiKey],
    });
  }
  const { project, location } = locationOf(id, options);
  const { credentials, secrets } = await credentialsOf(id, options);
  const { createGoogleVertex } = await loadProvider("@ai-sdk/google-vertex", load);
  const path = `/v1beta1/projects/${project}/locations/${location}/publishers/google`;
  const baseURL = url === undefined ? {} : { baseURL: addressOf(url, path) };
  // A blank key, because the package would otherwise read the process's environment.
  const settings = { apiKey: "", project, location, fetch: fetchHere, googleAuthOptions: { credentials }, ...baseURL };
  return immutable(id, createGoogleVertex(settings).languageModel(name), { secrets });
}

async function claudeOnVertex(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const { project, location } = locationOf(id, options);
  const { credentials, secrets } = await credentialsOf(id, options);
  const { createGoogleVertexAnthropic } = await loadProvider(
    "@ai-sdk/google-vertex",
    () => import("@ai-sdk/google-vertex/anthropic"),
  );
  const url = configuredUrl(options, "vertex");
  const path = `/v1/projects/${project}/locations/${location}/publishers/anthropic/models`;
  const baseURL = url === undefined ? {} : { baseURL: addressOf(url, path) };
  const settings = { project, location, fetch: fetchHere, googleAuthOptions: { credentials }, ...baseURL };
  const model = createGoogleVertexAnthropic(settings).languageModel(name);
  return cachedModel(id, claude(model, name), ANTHROPIC_MARK, options, { secrets });
}

function addressOf(url: URL, path: string): string {
  return url.pathname === "/" ? `${url.origin}${path}` : trimmedUrl(url);
}

function locationOf(id: string, options: ModelOptions) {
  const project = requireSetting(id, options, "GOOGLE_VERTEX_PROJECT");
  const location = requireSetting(id, options, "GOOGLE_VERTEX_LOCATION");
  return {
    project: encodeURIComponent(project),
    location: hostPart(location, "GOOGLE_VERTEX_LOCATION"),
  };
}

/** The credentials and the secrets in them. Throws Session `missing_key` and `credentials_unreadable`. */
async function credentialsOf(id: string, { env, cwd }: ModelOptions) {
  const named = setting(env, CREDENTIALS);
  const folder = setting(env, "CLOUDSDK_CONFIG") ?? join(setting(env, "HOME") ?? homedir(), ".config", "gcloud");
  const file = named === undefined ? join(folder, "application_default_credentials.json") : resolve(cwd, named);
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    if (named !== undefined) throw unreadable(id, messageOf(cause), cause);
    const how = `set ${CREDENTIALS} to a credentials file, or run: gcloud auth application-default login`;
    throw missingKey(`${id} needs credentials: ${how}`, [CREDENTIALS]);
  }
  const read = parseJson(text);
  if (!read.ok || !isJsonObject(read.value)) throw unreadable(id, "it is not a JSON object");
  const credentials: JsonObject = read.value;
  const secrets = SECRET_MEMBERS.flatMap((member) => {
    const value = credentials[member];
    return typeof value === "string" ? [value, ...value.split("\n").filter((line) => /^[\w+/=]{32,}$/.test(line))] : [];
  });
  return { credentials: { ...credentials }, secrets };
}

/** The message never contains the file's text. */
function unreadable(id: string, why: string, cause?: unknown): SluiceError {
  const message = `${id} cannot use the credentials file that ${CREDENTIALS} names: ${why}`;
  return new SluiceError("Session", "credentials_unreadable", message, cause === undefined ? {} : { cause });
}
