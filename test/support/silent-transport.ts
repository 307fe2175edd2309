import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

/** A transport of the SDK without its optional members, which the package types in two ways. */
export function silent(
  inner: Pick<Transport, "start" | "send" | "close" | "onmessage" | "onclose" | "onerror">,
): Transport {
  const outer: Transport = {
    start: async () => {
      inner.onmessage = (message) => outer.onmessage?.(message);
      inner.onclose = () => outer.onclose?.();
      inner.onerror = (error) => outer.onerror?.(error);
      await inner.start();
    },
    send: (message) => inner.send(message),
    close: () => inner.close(),
  };
  return outer;
}
