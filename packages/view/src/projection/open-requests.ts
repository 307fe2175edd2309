import { field, isJsonObject, type OpenRequest, type SluiceEvent } from "@sluice/core";
import { textAt } from "../words/fields.ts";

type Place = Pick<OpenRequest, "runId" | "requestId">;

/** What somebody has to answer: by the records, and by the store, which knows of answers that are not taken up yet. */
export class OpenRequests {
  readonly #recorded = new Map<string, OpenRequest>();
  #stored: readonly OpenRequest[] | undefined;
  #keys: ReadonlySet<string> | undefined;
  #view: readonly OpenRequest[] | undefined;

  opened({ data, runId, at }: SluiceEvent): void {
    const kind = textAt(data, "kind");
    if (!isKind(kind)) return;
    const body = field(data, "body");
    const digest = textAt(data, "digest");
    const place = { requestId: textAt(data, "requestId"), runId };
    this.#recorded.set(keyOf(place), { ...place, kind, digest, body: isJsonObject(body) ? body : {}, openedAt: at });
    this.#view = undefined;
  }

  /** Answered or expired, by the records. */
  closed(which: (request: Place) => boolean): void {
    for (const [key, request] of this.#recorded) if (which(request)) this.#recorded.delete(key);
    if (this.#stored?.some(which) === true) this.#keep(this.#stored.filter((request) => !which(request)));
    this.#view = undefined;
  }

  /** What the store says is open. Whether that is something new. */
  stored(open: readonly OpenRequest[]): boolean {
    if (this.#stored !== undefined && same(open, this.#stored)) return false;
    this.#keep(open);
    return true;
  }

  isOpen(place: Place): boolean {
    return this.#keys === undefined ? this.#recorded.has(keyOf(place)) : this.#keys.has(keyOf(place));
  }

  /** Whether the records know of any. */
  get any(): boolean {
    return this.#recorded.size > 0;
  }

  view(): readonly OpenRequest[] {
    this.#view ??= this.#stored ?? [...this.#recorded.values()];
    return this.#view;
  }

  #keep(open: readonly OpenRequest[]): void {
    this.#stored = open;
    this.#keys = new Set(open.map(keyOf));
    this.#view = undefined;
  }
}

function same(a: readonly OpenRequest[], b: readonly OpenRequest[]): boolean {
  return (
    a.length === b.length &&
    a.every((one, index) => {
      const other = b[index];
      return other !== undefined && keyOf(one) === keyOf(other);
    })
  );
}

function keyOf({ runId, requestId }: Place): string {
  return JSON.stringify([runId, requestId]);
}

function isKind(kind: string): kind is OpenRequest["kind"] {
  return kind === "grantStageTool" || kind === "approveTransition" || kind === "askUser" || kind === "humanState";
}
