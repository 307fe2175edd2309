import { createHost, createMemoryJournals } from "@sluice/core/host";
import { expect, test } from "vitest";

test("a wait for a result ends with its signal, even if the store does not answer", async () => {
  const store = createMemoryJournals().connect();
  const host = createHost(
    new Proxy(store, {
      get: (target, name) => {
        if (name === "run") return () => new Promise(() => undefined);
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    }),
  );
  const stop = new AbortController();
  const waiting = host.result("r1", { signal: stop.signal });
  stop.abort();
  await expect(waiting).rejects.toMatchObject({ code: "wait_cancelled" });
});
