import { Box, Text, useApp, useInput, usePaste, useWindowSize } from "ink";
import { memo, type ReactNode, useEffect, useSyncExternalStore } from "react";
import { keysOf } from "./press.ts";
import type { ScreenModel } from "./screen-model.ts";

export type SuspendTerminal = ReturnType<typeof useApp>["suspendTerminal"];

export interface ScreenProps {
  readonly model: ScreenModel;
  /** Receives the function that lends the terminal to another program. */
  readonly onSuspend: (suspend: SuspendTerminal) => void;
}

/** Draws rows and passes keys on. */
export function Screen({ model, onSuspend }: ScreenProps): ReactNode {
  const rows = useSyncExternalStore(model.subscribe, model.rows);
  // Draws a frame after each resize.
  useWindowSize();
  const { suspendTerminal } = useApp();
  useEffect(() => onSuspend(suspendTerminal), [onSuspend, suspendTerminal]);
  useInput((input, key) => {
    for (const one of keysOf(input, key)) model.key(one);
  });
  usePaste((text) => model.key({ name: "paste", text, ctrl: false, alt: false, shift: false }));
  return (
    <Box flexDirection="column">
      {rows.map((row, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity but their position
        <Row key={at} text={row} />
      ))}
    </Box>
  );
}

const Row = memo(function Row({ text }: { readonly text: string }): ReactNode {
  return <Text wrap="truncate-end">{text === "" ? " " : text}</Text>;
});
