// A page for browsers where an API's answer was expected: what a proxy, a login or a wrong address sends.

/** A longer title is left out: it would be cut before known secrets are masked. */
const LONGEST_TITLE = 200;
/** How much of a page is searched for its title. */
export const MOST_PAGE_BYTES = 64 * 1024;

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: " " };

/** Whether a body is a page, by its type or by how it begins. */
export function isHtml(contentType: string | undefined, body: string | undefined): boolean {
  if (/^\s*text\/html\b/i.test(contentType ?? "")) return true;
  return /^\s*(?:<!doctype\s+html|<html)\b/i.test((body ?? "").slice(0, 1_000));
}

/** `an HTML page ("Sign in") from https://… instead of the API's answer`. The title is untrusted text, on one line. */
export function pageText(body: string, from: string | undefined): string {
  const title = /<title[^>]{0,200}>([^<]{1,1000})<\/title/i.exec(body.slice(0, MOST_PAGE_BYTES))?.[1] ?? "";
  const shown = title
    .replaceAll(/\p{Cc}\[[0-9;]*[A-Za-z]/gu, " ")
    .replaceAll(/&(#39|\w{2,4});/g, (entity, name: string) => ENTITIES[name] ?? entity)
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const named = shown === "" || shown.length > LONGEST_TITLE ? "" : ` (${JSON.stringify(shown)})`;
  const source = from === undefined ? "" : ` from ${from}`;
  return `an HTML page${named}${source} instead of the API's answer`;
}

/** An address without its query, which may hold a key. */
export function shownAddress(address: string): string | undefined {
  const url = URL.parse(address);
  return url === null ? undefined : `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}
