import { field, isJsonObject, type OpenRequest, type SluiceEvent } from "@sluice/core";
import { textAt } from "../words/fields.ts";
import { recordFault } from "../words/recorded-request.ts";
import type { RunRequest } from "./run-view.ts";

type RequestKey = Pick<OpenRequest, "runId" | "requestId">;

/** Open requests, from the events, or from the store, which also knows answers that the run has not read yet. */
export class OpenRequests {
  readonly #recorded = new Map<string, OpenRequest>();
  #stored: readonly OpenRequest[] | undefined;
  #view: readonly RunRequest[] | undefined;
  #open: { readonly of: readonly RunRequest[]; readonly keys: ReadonlySet<string> } | undefined;

  opened({ data, runId, at }: SluiceEvent): void {
    const kind = textAt(data, "kind");
    if (!isKind(kind)) return;
    const body = field(data, "body");
    const digest = textAt(data, "digest");
    const key = { requestId: textAt(data, "requestId"), runId };
    this.#recorded.set(keyOf(key), { ...key, kind, digest, body: isJsonObject(body) ? body : {}, openedAt: at });
    this.#view = undefined;
  }

  /** Removes requests that an event answers or expires. */
  closed(which: (request: RequestKey) => boolean): void {
    for (const [key, request] of this.#recorded) if (which(request)) this.#recorded.delete(key);
    this.#stored = this.#stored?.filter((request) => !which(request));
    this.#view = undefined;
  }

  /** Sets the store's open requests. Returns whether they changed. */
  stored(open: readonly OpenRequest[]): boolean {
    if (this.#stored !== undefined && same(open, this.#stored)) return false;
    this.#stored = open;
    this.#view = undefined;
    return true;
  }

  isOpen(request: RequestKey): boolean {
    const view = this.view();
    if (this.#open?.of !== view) this.#open = { of: view, keys: new Set(view.map(keyOf)) };
    return this.#open.keys.has(keyOf(request));
  }

  /** Whether a request is open by the events. */
  get any(): boolean {
    return this.#recorded.size > 0;
  }

  view(): readonly RunRequest[] {
    this.#view ??= this.#stored?.flatMap((request) => this.#compared(request)) ?? [...this.#recorded.values()];
    return this.#view;
  }

  /** None for a request whose event was not read yet. */
  #compared(request: OpenRequest): readonly RunRequest[] {
    const recorded = this.#recorded.get(keyOf(request));
    if (recorded === undefined) return [];
    const { kind, digest, body } = recorded;
    const fault = recordFault(request, { kind, digest, body });
    return [fault === undefined ? request : { ...request, fault }];
  }
}

function same(a: readonly OpenRequest[], b: readonly OpenRequest[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ runId, requestId }, index) => runId === b[index]?.runId && requestId === b[index]?.requestId)
  );
}

function keyOf({ runId, requestId }: RequestKey): string {
  return JSON.stringify([runId, requestId]);
}

function isKind(kind: string): kind is OpenRequest["kind"] {
  return kind === "grantStageTool" || kind === "approveTransition" || kind === "askUser" || kind === "humanState";
}
