export type HttpAddress =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly fault: "not_http" | "credentials" };

/** Parses an http(s) URL. Credentials in it are rejected: fetch does not send them, and logs would show them. */
export function readHttpAddress(text: string): HttpAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") return { ok: false, fault: "not_http" };
  if (url.username !== "" || url.password !== "") return { ok: false, fault: "credentials" };
  return { ok: true, url };
}
