// A run's view as the updates of a session.
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import {
  type CallView,
  type CommandView,
  type ExecutionView,
  type RunView,
  stateLabel,
  type TranscriptItem,
} from "@sluice/view";
import { clean } from "@sluice/view/text";
import { planEntries } from "./plan-entries.ts";
import { callOf, callUpdate, commandOf, commandUpdate } from "./tool-call.ts";

export interface RunUpdates {
  /** Sends what changed since the last view. */
  show(view: RunView): void;
}

type Channel = "agent_message_chunk" | "agent_thought_chunk";

/** What was sent of an execution. */
interface Sent {
  view: ExecutionView | undefined;
  /** Items that were sent. */
  items: number;
  /** Calls and commands whose end was not sent, by index. */
  readonly open: Map<number, CallView | CommandView>;
  /** Streamed text that no item has repeated yet. */
  readonly streamed: Record<Channel, string>;
}

/** Sends the transcripts, tool calls and plan of one run; `send` keeps the order of its calls. */
export function createRunUpdates(send: (update: SessionUpdate) => void): RunUpdates {
  const executions = new Map<string, Sent>();
  let plan = "";
  /** The execution that the last text was about. */
  let speaker = "";

  const say = (execution: ExecutionView, channel: Channel, text: string): void => {
    if (text === "") return;
    if (speaker !== execution.key) {
      speaker = execution.key;
      send({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: heading(execution) } });
    }
    send({ sessionUpdate: channel, content: { type: "text", text } });
  };

  /** The item of a finished turn repeats what was streamed of it. */
  const sayItem = (execution: ExecutionView, sent: Sent, channel: Channel, whole: string): void => {
    const before = sent.streamed[channel];
    const text = clean(whole);
    if (text.startsWith(before)) {
      sent.streamed[channel] = "";
      say(execution, channel, `${text.slice(before.length)}\n\n`);
    } else if (before.startsWith(text)) {
      sent.streamed[channel] = before.slice(text.length);
    } else {
      sent.streamed[channel] = "";
      say(execution, channel, `\n\n${text}\n\n`);
    }
  };

  const stream = (execution: ExecutionView, sent: Sent): void => {
    const { live } = execution;
    if (live === undefined || live.cut > 0) return;
    for (const [channel, text] of [
      ["agent_thought_chunk", live.reasoning],
      ["agent_message_chunk", live.text],
    ] as const) {
      const known = sent.streamed[channel];
      // A secret can be split over chunks: what is masked once its line is whole was not sent before.
      const whole = clean(text.slice(0, text.lastIndexOf("\n") + 1));
      if (whole.length <= known.length || !whole.startsWith(known)) continue;
      sent.streamed[channel] = whole;
      say(execution, channel, whole.slice(known.length));
    }
  };

  const begin = (execution: ExecutionView, sent: Sent, item: TranscriptItem, index: number, cwd: string): void => {
    switch (item.kind) {
      case "text":
        sayItem(execution, sent, "agent_message_chunk", item.text);
        break;
      case "reasoning":
        sayItem(execution, sent, "agent_thought_chunk", item.text);
        break;
      case "message":
        say(execution, "agent_thought_chunk", `${clean(`message of ${item.by}: ${item.text}`)}\n\n`);
        break;
      case "boundary":
        if (item.rank === "note" && item.tone !== "plain" && item.tone !== "good")
          say(execution, "agent_thought_chunk", `${clean(item.text)}\n\n`);
        break;
      case "answer":
        say(execution, "agent_thought_chunk", `${clean(JSON.stringify(item.value))}\n\n`);
        break;
      case "call":
        sent.open.set(index, item);
        send({ sessionUpdate: "tool_call", ...callOf(execution, item, cwd) });
        break;
      case "command":
        sent.open.set(index, item);
        send({ sessionUpdate: "tool_call", ...commandOf(execution, item) });
        break;
    }
  };

  const update = (execution: ExecutionView, sent: Sent, cwd: string): void => {
    for (const [index, known] of sent.open) {
      const item = execution.items.at(index);
      if (item === known || item === undefined) continue;
      if (item.kind === "call") send({ sessionUpdate: "tool_call_update", ...callUpdate(execution, item, cwd) });
      if (item.kind === "command") send({ sessionUpdate: "tool_call_update", ...commandUpdate(execution, item) });
      if (item.kind !== "call" && item.kind !== "command") continue;
      // A settled item does not change again.
      if (index < execution.items.settled) sent.open.delete(index);
      else sent.open.set(index, item);
    }
  };

  return {
    show(view) {
      const entries = planEntries(view);
      const text = JSON.stringify(entries);
      if (entries.length > 0 && text !== plan) {
        plan = text;
        send({ sessionUpdate: "plan", entries });
      }
      const working = view.executions.filter(({ live }) => live !== undefined);
      for (const execution of view.executions) {
        const sent = executions.get(execution.key) ?? {
          view: undefined,
          items: 0,
          open: new Map(),
          streamed: { agent_message_chunk: "", agent_thought_chunk: "" },
        };
        if (sent.view === execution) continue;
        executions.set(execution.key, sent);
        sent.view = execution;
        update(execution, sent, view.cwd);
        for (; sent.items < execution.items.length; sent.items += 1) {
          const item = execution.items.at(sent.items);
          if (item !== undefined) begin(execution, sent, item, sent.items, view.cwd);
        }
        // Lines of several agents between each other could not be read.
        if (working.length === 1) stream(execution, sent);
      }
    },
  };
}

function heading({ stateId, visit, item }: ExecutionView): string {
  const which = `${visit > 1 ? ` (visit ${visit})` : ""}${item === undefined ? "" : `: ${stateLabel(item)}`}`;
  return `\n\n**${stateLabel(stateId)}**${which}\n\n`;
}
