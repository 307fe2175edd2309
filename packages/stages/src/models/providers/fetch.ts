import { SluiceError } from "@sluice/core";
import { boundedResponse } from "./bounded-response.ts";

/**
 * The platform's fetch with bounded bodies and without redirects: it would take the prompt, and every header a key stands in
 * but its own few, to whatever host an answer names. Throws Session `provider_redirected`.
 */
export const fetchHere: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: "manual" });
  if (response.status < 300 || response.status > 399) return boundedResponse(response);
  response.body?.cancel().catch(() => undefined); // nobody reads it, and it would keep its socket
  const asked = new URL(input instanceof Request ? input.url : input);
  const to = URL.parse(response.headers.get("location") ?? "", asked.href)?.origin ?? "nowhere";
  const message = `${asked.origin} answers with a redirect to ${to}, and nothing was sent there; if that is the provider's address, set it as its base URL`;
  throw new SluiceError("Session", "provider_redirected", message);
};
