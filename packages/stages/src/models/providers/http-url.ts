/** An address that requests can be sent to, or why a text is none. */
export type HttpAddress =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly fault: "not_http" | "credentials" };

/** Reads an http(s) URL. One with a user name or a password is refused: fetch does not send it, and logs would show it. */
export function readHttpAddress(text: string): HttpAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") return { ok: false, fault: "not_http" };
  if (url.username !== "" || url.password !== "") return { ok: false, fault: "credentials" };
  return { ok: true, url };
}
