import { SluiceError } from "@sluice/core";
import { isHtml, MOST_PAGE_BYTES, pageText, shownAddress } from "../reply/html-page.ts";
import { boundedResponse, type EventForm } from "./bounded-response.ts";

/**
 * The platform's fetch with limited bodies and without redirects, which would send the prompt and most key headers to any host.
 * Throws Session `provider_redirected`, and `html_response` for a page that is sent as a success.
 */
export const fetchHere: typeof fetch = (input, init) => fetchBounded(input, init, "lines");

/** The same for streams of binary frames. */
export const fetchFrames: typeof fetch = (input, init) => fetchBounded(input, init, "frames");

async function fetchBounded(
  input: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
  events: EventForm,
): Promise<Response> {
  const response = await fetch(input, { ...init, redirect: "manual" });
  if (response.ok && isHtml(response.headers.get("content-type") ?? undefined, undefined)) throw await isPage(response);
  if (response.status < 300 || response.status > 399) return boundedResponse(response, events);
  response.body?.cancel().catch(() => undefined); // an unread body would keep its socket
  const requested = new URL(input instanceof Request ? input.url : input);
  const to = URL.parse(response.headers.get("location") ?? "", requested.href)?.origin ?? "an invalid address";
  const message = `${requested.origin} redirects to ${to}, and the request was not sent there; if that is the provider's address, set it as the base URL`;
  throw new SluiceError("Session", "provider_redirected", message);
}

async function isPage(response: Response): Promise<SluiceError> {
  const page = pageText(await beginningOf(response), shownAddress(response.url));
  return new SluiceError("Session", "html_response", `HTTP ${response.status}: ${page}`);
}

/** The beginning of a body, which is untrusted and may not end. */
async function beginningOf({ body }: Response): Promise<string> {
  if (body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  // Leaving the loop cancels the body.
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length >= MOST_PAGE_BYTES || text.includes("</title>")) break;
  }
  return text;
}
