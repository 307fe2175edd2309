import { SluiceError } from "../../base/errors.ts";
import { textField } from "../../base/json.ts";
import type { EventDraft } from "../events.ts";
import type { Interruption, InterruptionListener, ReceivedSignal } from "../seam.ts";

/** The name of the signal to a root by which a person interrupts the run; its payload is `{ reason }`. */
export const INTERRUPTION_SIGNAL = "interruption";

/** A program of the tree, as its interruptions see it. */
export interface InterruptibleProgram {
  /** Whether it still reads its recorded steps. */
  readonly recovering: boolean;
  /** Whether it does something that a person can interrupt. */
  readonly canBeInterrupted: boolean;
  interrupt(interruption: Interruption): void;
}

/**
 * The interruptions of a tree of runs. One interrupts everything in the tree that can be interrupted; if nothing can, the tree is
 * suspended as it is. Those that arrive before all of it has ended are part of it.
 */
export class Interruptions {
  readonly #programs = new Set<InterruptibleProgram>();
  /** Programs that were interrupted and have not said yet how they continue; created on first use. */
  #interrupted: Set<InterruptibleProgram> | undefined;
  readonly #suspend: () => void;
  #received: readonly ReceivedSignal[] = [];
  /** How many of the received ones were carried out. */
  handled: number;
  /** Whether one was received and not carried out. A field, like the next, since every step reads it. */
  pending = false;
  /** Whether what was interrupted has not ended yet, or the tree not been suspended then: nothing else begins meanwhile. */
  isUnderWay = false;
  #isSuspending = false;
  /** Created on first use. */
  #over: PromiseWithResolvers<void> | undefined;

  constructor(handled: number, suspend: () => void) {
    this.handled = handled;
    this.#suspend = suspend;
  }

  join(program: InterruptibleProgram): void {
    this.#programs.add(program);
  }

  /** The program has ended. */
  leave(program: InterruptibleProgram): void {
    this.#programs.delete(program);
    this.#settled(program);
  }

  /** All that the root has received so far. */
  receive(signals: readonly ReceivedSignal[]): void {
    this.#received = signals;
    this.pending = signals.length > this.handled;
    this.check();
  }

  /** Interrupts what can be interrupted, if that was asked for and all programs have read their recorded steps. */
  check(): void {
    if (!this.pending) return;
    const programs = [...this.#programs];
    if (programs.some(({ recovering }) => recovering)) return;
    const interruption = merged(this.#received.slice(this.handled), this.#received.length);
    this.handled = this.#received.length;
    this.pending = false;
    const able = programs.filter(({ canBeInterrupted }) => canBeInterrupted);
    this.#interrupted ??= new Set();
    for (const program of able) this.#interrupted.add(program);
    this.isUnderWay = true;
    for (const program of able) program.interrupt(interruption);
    this.#isSuspending ||= able.length === 0;
    this.#suspendIfSettled();
  }

  /** Whether a program may begin nothing: it was not interrupted, and others have not ended what was. */
  holds(program: InterruptibleProgram): boolean {
    return this.isUnderWay && this.#interrupted?.has(program) !== true;
  }

  /** Resolves when nothing is held any more. */
  get over(): Promise<void> {
    this.#over ??= Promise.withResolvers();
    return this.#over.promise;
  }

  /** The program waits for the suspension of its tree. */
  rest(program: InterruptibleProgram): void {
    this.#isSuspending = true;
    this.#interrupted ??= new Set();
    this.#settled(program);
  }

  /** The program does something else now. */
  continues(program: InterruptibleProgram): void {
    if (this.isUnderWay) this.#settled(program);
  }

  #settled(program: InterruptibleProgram): void {
    this.#interrupted?.delete(program);
    this.#suspendIfSettled();
  }

  /** Everything that was interrupted ends first, so that the tree stops none of it in between. */
  #suspendIfSettled(): void {
    if (this.#interrupted === undefined || this.#interrupted.size > 0) return;
    this.isUnderWay = false;
    if (this.#isSuspending) this.#suspend();
    this.#over?.resolve();
    this.#over = undefined;
  }
}

/** Ends the wait of the program's open step, and aborts its signal. */
interface ProgramControl {
  interrupt(reason: SluiceError): void;
  /** What was interrupted has ended. */
  continued(): void;
}

interface Listening {
  readonly listen: InterruptionListener | undefined;
  isCalled: boolean;
}

const NO_EVENTS: readonly EventDraft[] = [];

/** What of one program can be interrupted, and the interruption that waits for its next step. */
export class ProgramInterruptions {
  readonly #control: ProgramControl;
  /** The innermost last; created on first use. */
  #listening: Listening[] | undefined;
  #whenWaiting: (() => void) | undefined;
  /** A field, like the next, since every step reads it. */
  waiting: Interruption | undefined;
  /** For the record of the open step. */
  events = NO_EVENTS;

  constructor(control: ProgramControl) {
    this.#control = control;
  }

  /** Whether anyone listens. */
  get isAwaited(): boolean {
    return this.#listening?.at(-1)?.listen !== undefined;
  }

  /** Calls `unheard` for an interruption that arrived for the listener and found it gone. Returns the unsubscriber. */
  add(listen: InterruptionListener | undefined, unheard: () => void): () => void {
    const listener: Listening = { listen, isCalled: false };
    this.#listening ??= [];
    this.#listening.push(listener);
    return () => {
      this.#listening = this.#listening?.filter((each) => each !== listener);
      if (listener.isCalled) this.#control.continued();
      const late = this.waiting;
      this.waiting = undefined;
      if (late === undefined) return;
      // A second one is part of the first. Otherwise it came too late: what it was for has ended by itself.
      if (listener.isCalled) listen?.(late);
      else unheard();
    };
  }

  /** `isWorking`: there is an open step, which it interrupts. */
  arrive(interruption: Interruption, isWorking: boolean): void {
    this.waiting = interruption;
    if (isWorking) this.pass();
    else this.#whenWaiting?.();
  }

  whenWaiting(listener: () => void): () => void {
    this.#whenWaiting = listener;
    if (this.waiting !== undefined) listener();
    return () => {
      this.#whenWaiting = undefined;
    };
  }

  /** Passes on the one that waits, if there is one. */
  pass(): void {
    const interruption = this.waiting;
    this.waiting = undefined;
    if (interruption !== undefined) this.events = [...this.events, ...this.call(interruption)];
  }

  /** Calls the listener, also as it was called when a recorded step was executed. Returns its events. */
  call(interruption: Interruption): readonly EventDraft[] {
    // A record of an earlier version may be one of an execution that another one had suspended.
    const listener = this.#listening?.findLast(({ listen }) => listen !== undefined);
    if (listener?.listen === undefined) return NO_EVENTS;
    listener.isCalled = true;
    const { reason } = interruption;
    const message = reason === "" ? "interrupted" : `interrupted: ${reason}`;
    this.#control.interrupt(new SluiceError("Cancellation", "interrupted", message));
    return listener.listen(interruption);
  }

  /** The events for the record, which no later record has again. */
  takeEvents(): readonly EventDraft[] {
    const { events } = this;
    this.events = NO_EVENTS;
    return events;
  }
}

function merged(signals: readonly ReceivedSignal[], count: number): Interruption {
  const reasons = signals.map(({ payload }) => reasonIn(payload)).filter((reason) => reason !== "");
  const people = signals.map(({ by }) => by);
  return { reason: [...new Set(reasons)].join("; "), by: [...new Set(people)].join(", "), count };
}

function reasonIn(payload: ReceivedSignal["payload"]): string {
  return textField(payload, "reason") ?? "";
}
