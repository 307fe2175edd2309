import type { PipelineSpec } from "@sluice/core";
import type { RunHandle, Session } from "@sluice/stages";
import type { Notifier } from "./notifier.ts";

/** The same session, whose runs are reported by the notifier that `open` loads. */
export function notifiedSession(session: Session, open: () => Promise<Notifier>, now: () => number): Session {
  const running = new Set<RunHandle<unknown>>();
  let notifier: Promise<Notifier> | undefined;
  const watched = <O>(handle: RunHandle<O>, { limits }: PipelineSpec): RunHandle<O> => {
    const since = now();
    notifier ??= open();
    // Closing reports what keeps it from loading.
    notifier.then((one) => one.watch(handle, since, limits)).catch(() => undefined);
    running.add(handle);
    const over = (): void => void running.delete(handle);
    handle.then(over, over);
    return handle;
  };
  return {
    get host() {
      return session.host;
    },
    start: (pipeline, input, options) => watched(session.start(pipeline, input, options), pipeline.spec),
    run: async (pipeline, input) => await watched(session.start(pipeline, input), pipeline.spec),
    resume: (pipeline, runId, options) => watched(session.resume(pipeline, runId, options), pipeline.spec),
    fork: (pipeline, runId, options) => watched(session.fork(pipeline, runId, options), pipeline.spec),
    followUp: (pipeline, runId, options) => watched(session.followUp(pipeline, runId, options), pipeline.spec),
    answer: session.answer,
    message: session.message,
    tools: session.tools,
    masked: session.masked,
    attach: session.attach,
    close: async () => {
      // Suspended here, so that it is reported while the store is open.
      await Promise.allSettled([...running].map((handle) => handle.suspend()));
      await (await notifier)?.close();
      await session.close();
    },
  };
}
