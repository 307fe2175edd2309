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
  versioned,
} from "../settings.ts";

const HOME = "https://aiplatform.googleapis.com";
const KEY = "GOOGLE_VERTEX_API_KEY";
const CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS";
/** Members of a credentials file that are secrets. */
const SECRET_MEMBERS = ["private_key", "refresh_token", "client_secret"];

/**
 * `vertex/<model>`: Gemini and Claude on Google's Vertex AI. Reads GOOGLE_VERTEX_API_KEY (Gemini only), or GOOGLE_VERTEX_PROJECT,
 * GOOGLE_VERTEX_LOCATION and GOOGLE_APPLICATION_CREDENTIALS, whose default is the file that `gcloud` writes.
 */
export async function resolveVertex(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  if (name.startsWith("claude-")) return await claudeOnVertex(id, name, options);
  const apiKey = setting(options.env, KEY);
  return apiKey === undefined
    ? await geminiOnVertex(id, name, options)
    : await geminiWithKey(id, name, apiKey, options);
}

async function geminiWithKey(id: string, name: string, apiKey: string, options: ModelOptions): Promise<ResolvedModel> {
  const url = configuredUrl(options, "vertex") ?? new URL(HOME);
  const { createGoogleVertex } = await loadProvider("@ai-sdk/google-vertex", () => import("@ai-sdk/google-vertex"));
  const baseURL = versioned(url, "/v1/publishers/google");
  const model = createGoogleVertex({ apiKey, baseURL, fetch: fetchHere }).languageModel(name);
  const access = accessOf(options, "vertex", url.origin, { address: "baseUrls.vertex of the config", key: KEY });
  return immutable(id, model, { secrets: [apiKey], access });
}

async function geminiOnVertex(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const { project, location, url, access } = locationOf(id, options);
  const { credentials, secrets } = await credentialsOf(id, options);
  const { createGoogleVertex } = await loadProvider("@ai-sdk/google-vertex", () => import("@ai-sdk/google-vertex"));
  const baseURL = versioned(url, `/v1beta1/projects/${project}/locations/${location}/publishers/google`);
  // A blank key, because the package would otherwise read the process's environment.
  const settings = { apiKey: "", project, location, baseURL, fetch: fetchHere, googleAuthOptions: { credentials } };
  return immutable(id, createGoogleVertex(settings).languageModel(name), { secrets, access });
}

async function claudeOnVertex(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const { project, location, url, access } = locationOf(id, options);
  const { credentials, secrets } = await credentialsOf(id, options);
  const { createGoogleVertexAnthropic } = await loadProvider(
    "@ai-sdk/google-vertex",
    () => import("@ai-sdk/google-vertex/anthropic"),
  );
  const baseURL = versioned(url, `/v1/projects/${project}/locations/${location}/publishers/anthropic/models`);
  const settings = { project, location, baseURL, fetch: fetchHere, googleAuthOptions: { credentials } };
  const model = createGoogleVertexAnthropic(settings).languageModel(name);
  return cachedModel(id, claude(model, name), ANTHROPIC_MARK, options, { secrets, access });
}

/** Where a project's models are, and how that is set. */
function locationOf(id: string, options: ModelOptions) {
  const project = requireSetting(id, options, "GOOGLE_VERTEX_PROJECT");
  const location = hostPart(requireSetting(id, options, "GOOGLE_VERTEX_LOCATION"), "GOOGLE_VERTEX_LOCATION");
  const url = configuredUrl(options, "vertex") ?? new URL(hostOf(location));
  const variables = { address: "GOOGLE_VERTEX_LOCATION", key: CREDENTIALS };
  // Without the variable, the credentials are in the file that gcloud writes.
  const access = { ...accessOf(options, "vertex", url.origin, variables), hasKey: true };
  return { project: encodeURIComponent(project), location, url, access };
}

function hostOf(location: string): string {
  if (location === "global") return HOME;
  // Places of several regions.
  if (location === "eu" || location === "us") return `https://aiplatform.${location}.rep.googleapis.com`;
  return `https://${location}-aiplatform.googleapis.com`;
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
