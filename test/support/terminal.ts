import { type IPty, spawn } from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { createBytes, type TerminalBytes } from "./terminal-bytes.ts";
import { type KeyName, keyBytes } from "./terminal-keys.ts";

const { Terminal } = xterm;

/** A screen that does not change to what is awaited for so long hangs. */
const PATIENCE_MS = 90_000;

export interface TerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly cwd?: string;
  /** All of the environment. */
  readonly env: Readonly<Record<string, string>>;
}

export interface TerminalEnd {
  readonly code: number;
  /** The number of the signal that ended the process. */
  readonly signal: number | undefined;
}

/** A process on a terminal of its own: what it wrote, as a terminal shows it, and the keys of a person in front of it. */
export interface TerminalProcess {
  readonly pid: number;
  readonly ended: Promise<TerminalEnd>;
  hasEnded(): boolean;
  /** Waits until it has ended. Fails with a picture of the screen when it goes on. */
  end(): Promise<TerminalEnd>;
  readonly bytes: TerminalBytes;
  /** The rows that are visible now, without blanks at their ends. */
  screen(): readonly string[];
  /** Everything from the first line on, what has scrolled away and what is visible. Lines that the terminal broke are whole. */
  lines(): readonly string[];
  /** As `lines`, but one entry for each row of the terminal. */
  allRows(): readonly string[];
  /** The attributes of the first cell whose row holds the text. */
  styleOf(text: string): CellStyle;
  cursor(): { readonly row: number; readonly column: number };
  /** Waits until the screen shows a text or fits. Fails with a picture of the screen. */
  waitFor(what: string | RegExp | ((screen: string) => boolean), name?: string): Promise<void>;
  /** Waits until the text is on the screen or above it. */
  waitForLine(text: string): Promise<void>;
  type(text: string): void;
  key(...names: readonly KeyName[]): void;
  /** As a terminal pastes: bracketed, when the process asked for that. */
  paste(text: string): void;
  /**
   * Changes the size as a person at the window does: at no particular moment of what the process writes, so after what is
   * under way has been read.
   */
  resize(columns: number, rows: number): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Takes the terminal away, as closing its window does. */
  hangUp(): void;
  /** Everything that was written so far has been taken in. */
  flushed(): Promise<void>;
  picture(): string;
  /** Ends the process and all that it started in its session. */
  close(): void;
}

export interface CellStyle {
  readonly bold: boolean;
  readonly dim: boolean;
  readonly inverse: boolean;
  /** One of the 16 colours, or -1 for the terminal's own. */
  readonly colour: number;
  readonly background: number;
}

export function startTerminal(file: string, args: readonly string[], options: TerminalOptions): TerminalProcess {
  const { columns = 100, rows = 30, cwd = "/", env } = options;
  const screen = new Terminal({ cols: columns, rows, scrollback: 100_000, allowProposedApi: true });
  const pty = spawn(file, [...args], { name: env.TERM ?? "dumb", cols: columns, rows, cwd, env: { ...env } });
  const watchers = new Set<() => void>();
  const bytes = createBytes();
  let end: TerminalEnd | undefined;
  const notify = (): void => {
    for (const watcher of [...watchers]) watcher();
  };
  pty.onData((data) => {
    bytes.add(data);
    screen.write(data, notify);
  });
  // What a terminal answers when it is asked.
  screen.onData((data) => writeTo(pty, data));
  const ended = new Promise<TerminalEnd>((resolve) => {
    pty.onExit(({ exitCode, signal }) => {
      const how = { code: exitCode, signal: signal === 0 ? undefined : signal };
      // What it wrote last is taken in before it counts as ended.
      screen.write("", () => {
        end = how;
        notify();
        resolve(how);
      });
    });
  });

  const visible = (): readonly string[] => {
    const { active } = screen.buffer;
    return Array.from({ length: screen.rows }, (_, row) => rowText(active.baseY + row));
  };
  const rowText = (row: number): string =>
    screen.buffer.active.getLine(row)?.translateToString(true, 0, screen.cols) ?? "";
  const allRows = (): readonly string[] =>
    Array.from({ length: screen.buffer.active.length }, (_, row) => rowText(row));
  const lines = (): readonly string[] => {
    const joined: string[] = [];
    const { active } = screen.buffer;
    for (let row = 0; row < active.length; row += 1) {
      const line = active.getLine(row);
      const continues = active.getLine(row + 1)?.isWrapped === true;
      const text = line?.translateToString(!continues) ?? "";
      if (line?.isWrapped === true) joined.push(`${joined.pop() ?? ""}${text}`);
      else joined.push(text);
    }
    return joined;
  };
  const flushed = (): Promise<void> => new Promise((resolve) => screen.write("", resolve));
  const picture = (): string => {
    const edge = `+${"-".repeat(screen.cols)}+`;
    const { cursorX, cursorY } = screen.buffer.active;
    const state = end === undefined ? "at work" : `ended with ${end.signal ?? end.code}`;
    const facts = `${screen.cols}x${screen.rows}, cursor at ${cursorY},${cursorX}, ${state}`;
    return [facts, edge, ...visible().map((row) => `|${row}`), edge].join("\n");
  };
  const until = (name: string, fits: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer);
        watchers.delete(check);
      };
      const fail = (why: string): void => {
        stop();
        reject(new Error(`${name}: ${why}\n${picture()}`));
      };
      const check = (): void => {
        if (fits()) {
          stop();
          resolve();
        } else if (end !== undefined) fail("the process ended before it came");
      };
      const timer = setTimeout(() => fail("it did not come in time"), PATIENCE_MS);
      watchers.add(check);
      check();
    });

  return {
    pid: pty.pid,
    ended,
    hasEnded: () => end !== undefined,
    async end() {
      await until("the end", () => end !== undefined);
      return await ended;
    },
    bytes,
    screen: visible,
    lines,
    allRows,
    picture,
    cursor: () => ({ row: screen.buffer.active.cursorY, column: screen.buffer.active.cursorX }),
    styleOf: (text) => styleOf(screen, text, picture),
    waitFor: (what, name = String(what)) =>
      until(name, () => {
        const shown = visible().join("\n");
        if (typeof what === "string") return shown.includes(what);
        return what instanceof RegExp ? what.test(shown) : what(shown);
      }),
    waitForLine: (text) => until(text, () => lines().some((line) => line.includes(text))),
    type: (text) => writeTo(pty, text),
    key: (...names) => writeTo(pty, names.map(keyBytes).join("")),
    paste: (text) => writeTo(pty, screen.modes.bracketedPasteMode ? `\x1b[200~${text}\x1b[201~` : text),
    async resize(to, toRows) {
      let read = -1;
      while (read !== bytes.length()) {
        read = bytes.length();
        await turn();
        await turn();
      }
      await flushed();
      pty.resize(to, toRows);
      screen.resize(to, toRows);
    },
    signal: (name) => void process.kill(pty.pid, name),
    hangUp() {
      if ("destroy" in pty && typeof pty.destroy === "function") Reflect.apply(pty.destroy, pty, []);
    },
    flushed,
    close() {
      if (end === undefined) killSession(pty.pid);
      screen.dispose();
    },
  };
}

/** Lets whatever can be read be read. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A process that has ended reads nothing, and that is known from elsewhere. */
function writeTo(pty: IPty, data: string): void {
  try {
    pty.write(data);
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown && (thrown.code === "EIO" || thrown.code === "EBADF")))
      throw thrown;
  }
}

function killSession(leader: number): void {
  for (const pid of [-leader, leader]) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (thrown) {
      if (!(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH")) throw thrown;
    }
  }
}

function styleOf(screen: InstanceType<typeof Terminal>, text: string, picture: () => string): CellStyle {
  const { active } = screen.buffer;
  for (let row = 0; row < active.length; row += 1) {
    const line = active.getLine(row);
    const column = line?.translateToString(true).indexOf(text) ?? -1;
    const cell = column < 0 ? undefined : line?.getCell(column);
    if (cell === undefined) continue;
    return {
      bold: cell.isBold() !== 0,
      dim: cell.isDim() !== 0,
      inverse: cell.isInverse() !== 0,
      colour: cell.isFgDefault() ? -1 : cell.getFgColor(),
      background: cell.isBgDefault() ? -1 : cell.getBgColor(),
    };
  }
  throw new Error(`nowhere on the screen: ${text}\n${picture()}`);
}
