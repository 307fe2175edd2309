import { Box, Text, useApp, useInput, usePaste, useWindowSize } from "ink";
import { memo, type ReactNode, useEffect, useSyncExternalStore } from "react";
import { keysOf } from "./press.ts";
import type { ScreenModel } from "./surface.ts";

export type SuspendTerminal = ReturnType<typeof useApp>["suspendTerminal"];

export interface ScreenProps {
  readonly surface: ScreenModel;
  /** Takes how to leave the terminal to another program for a while. */
  readonly onSuspend: (suspend: SuspendTerminal) => void;
}

/** Draws rows and hands keys on. It holds no logic of runs: what is shown, and what a key does, is decided elsewhere. */
export function Screen({ surface, onSuspend }: ScreenProps): ReactNode {
  const rows = useSyncExternalStore(surface.subscribe, surface.rows);
  // A new size draws a new frame, also where no row changed.
  useWindowSize();
  const { suspendTerminal } = useApp();
  useEffect(() => onSuspend(suspendTerminal), [onSuspend, suspendTerminal]);
  useInput((input, key) => {
    for (const one of keysOf(input, key)) surface.key(one);
  });
  usePaste((text) => surface.key({ name: "paste", text, ctrl: false, alt: false, shift: false }));
  return (
    <Box flexDirection="column">
      {rows.map((row, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity but their place
        <Row key={at} text={row} />
      ))}
    </Box>
  );
}

/** An empty row is a row all the same. */
const Row = memo(function Row({ text }: { readonly text: string }): ReactNode {
  return <Text wrap="truncate-end">{text === "" ? " " : text}</Text>;
});
