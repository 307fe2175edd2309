import type { Clock } from "@sluice/core";

/** Who works on the run. */
export interface Holder {
  /** What the client calls itself. Hostile text, already safe to show. */
  readonly name: string;
  /** Epoch milliseconds. */
  readonly since: number;
}

export type Seating = { readonly ok: true } | { readonly ok: false; readonly holder: Holder };

export interface AgentSeatOptions {
  readonly clock: Clock;
  /** An agent without a request for this long, with nothing in flight, may be replaced. */
  readonly idleMs: number;
  /** The same for an agent whose open stream ended, which happens when its process ends. */
  readonly goneMs: number;
}

/**
 * One agent works on a run. A session is known by its id; requests without a session are known by the client's name, which is all
 * that they carry besides the run's token.
 */
export interface AgentSeat {
  /** Seats a session that begins. `evicted` is called when another agent replaces it. */
  begin(session: string, name: string, evicted: () => void): Seating;
  /** Seats an agent without a session. */
  claim(name: string): Seating;
  /** Whether the agent may act, without seating it. With a session, its name does not matter. */
  check(name: string, session?: string): Seating;
  /** Whether the session has the seat. */
  holds(session: string): boolean;
  /** Counts a request, or an open stream, of the seated agent. The returned function ends it. */
  use(kind: "request" | "stream"): () => void;
  /** The session ended. */
  leave(session: string): void;
  holder(): Holder | undefined;
}

interface Occupant extends Holder {
  session: { readonly id: string; readonly evicted: () => void } | undefined;
  inFlight: number;
  /** Its last stream ended, and none was opened since. */
  streamEnded: boolean;
  replaceable: boolean;
  disarm: (() => void) | undefined;
}

export function createAgentSeat({ clock, idleMs, goneMs }: AgentSeatOptions): AgentSeat {
  let occupant: Occupant | undefined;

  // A timer and not the wall clock decides, so that a clock that jumps replaces no agent.
  const rest = (agent: Occupant): void => {
    agent.disarm?.();
    agent.disarm = undefined;
    agent.replaceable = false;
    if (agent.inFlight > 0) return;
    agent.disarm = clock.after(agent.streamEnded ? goneMs : idleMs, () => {
      agent.replaceable = true;
    });
  };
  const vacate = (): void => {
    occupant?.disarm?.();
    occupant = undefined;
  };
  const seat = (name: string, session: Occupant["session"]): Seating => {
    const evicted = occupant?.session?.evicted;
    vacate();
    evicted?.();
    occupant = {
      name,
      since: clock.now(),
      session,
      inFlight: 0,
      streamEnded: false,
      replaceable: false,
      disarm: undefined,
    };
    rest(occupant);
    return { ok: true };
  };
  const refused = (agent: Occupant): Seating => ({ ok: false, holder: { name: agent.name, since: agent.since } });

  return {
    begin: (id, name, evicted) => {
      const session = { id, evicted };
      if (occupant === undefined || occupant.replaceable) return seat(name, session);
      // A client that speaks both revisions sends requests without a session beside its session.
      if (occupant.session !== undefined || occupant.name !== name) return refused(occupant);
      occupant.session = session;
      return { ok: true };
    },
    claim: (name) => {
      if (occupant === undefined) return seat(name, undefined);
      if (occupant.name === name) return { ok: true };
      return occupant.replaceable ? seat(name, undefined) : refused(occupant);
    },
    check: (name, session) => {
      if (occupant === undefined || occupant.replaceable) return { ok: true };
      const isSame = session === undefined ? occupant.name === name : occupant.session?.id === session;
      return isSame ? { ok: true } : refused(occupant);
    },
    holds: (session) => occupant?.session?.id === session,
    use: (kind) => {
      const agent = occupant;
      if (agent === undefined) return () => undefined;
      agent.inFlight += 1;
      if (kind === "stream") agent.streamEnded = false;
      rest(agent);
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        agent.inFlight -= 1;
        if (kind === "stream") agent.streamEnded = true;
        if (agent === occupant) rest(agent);
      };
    },
    leave: (session) => {
      if (occupant?.session?.id === session) vacate();
    },
    holder: () => (occupant === undefined ? undefined : { name: occupant.name, since: occupant.since }),
  };
}

/** Seats everyone: for a token that only one process has, which may open several connections. */
export function createOpenSeat(clock: Clock): AgentSeat {
  const since = clock.now();
  let sessions: ReadonlyMap<string, string> = new Map();
  return {
    begin: (id, name) => {
      sessions = new Map([...sessions, [id, name]]);
      return { ok: true };
    },
    claim: () => ({ ok: true }),
    check: () => ({ ok: true }),
    holds: (session) => sessions.has(session),
    use: () => () => undefined,
    leave: (session) => {
      sessions = new Map([...sessions].filter(([id]) => id !== session));
    },
    holder: () => {
      const [first] = sessions.values();
      return first === undefined ? undefined : { name: first, since };
    },
  };
}

/** Why a second agent is refused. */
export function seatTaken({ name, since }: Holder): string {
  return `This run is already worked on by ${name}, since ${new Date(since).toISOString()}. One agent works on a run at a time. End that session, wait until it is gone, or start another gateway for a run of its own.`;
}
