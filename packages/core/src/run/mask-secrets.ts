import type { Json } from "../base/json.ts";
import type { SecretFilter } from "../journal/redaction/secret-filter.ts";

/** A value of ours with known secret values replaced in its texts: what user code returns or throws may hold them. */
export function cleaned<T extends Json>(value: T, secrets: SecretFilter): T {
  const clean = secrets.json(value);
  if (clean === value) return value;
  const own: T = JSON.parse(JSON.stringify(clean));
  return own;
}
