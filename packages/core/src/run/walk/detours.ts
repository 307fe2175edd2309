import { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { StageResult } from "../../definition/result.ts";
import type { Transition } from "../../machine/transition.ts";
import type { Decided, DetourEnd, Detours } from "../execution.ts";

/** How a handler ended: back in the execution that it interrupted, or with a move of its own. */
export type Detour =
  | { readonly kind: "returned"; readonly by: StageResult<Json> }
  | { readonly kind: "left"; readonly next: Transition; readonly reason: string };

/** The detours of one execution, whose signal aborts with the run's, or alone when a handler does not return. */
export class OwnDetours implements Detours {
  readonly #controller = new AbortController();
  readonly #run: AbortSignal;
  readonly #perform: (decided: Decided) => Promise<Detour>;
  readonly #onAbort: () => void;
  active = false;
  left: Transition | undefined;

  constructor(run: AbortSignal, perform: (decided: Decided) => Promise<Detour>) {
    this.#run = run;
    this.#perform = perform;
    this.#onAbort = () => this.#controller.abort(run.reason);
    if (run.aborted) this.#onAbort();
    else run.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  async take(decided: Decided): Promise<DetourEnd> {
    this.active = true;
    const detour = await this.#perform(decided);
    this.active = false;
    if (detour.kind === "returned") return detour;
    this.left = detour.next;
    this.#controller.abort(new SluiceError("Cancellation", "interrupted", detour.reason));
    return { kind: "left" };
  }

  close(): void {
    this.#run.removeEventListener("abort", this.#onAbort);
  }
}
