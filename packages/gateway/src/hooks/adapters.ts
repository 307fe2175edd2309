import type { HostName } from "../host-names.ts";

import { claudeAdapter } from "./adapters/claude.ts";
import { codexAdapter } from "./adapters/codex.ts";
import { copilotAdapter } from "./adapters/copilot.ts";
import { geminiAdapter } from "./adapters/gemini.ts";
import { opencodeAdapter } from "./adapters/opencode.ts";
import { qwenAdapter } from "./adapters/qwen.ts";
import type { AdapterOptions, HookAdapter } from "./hook-adapter.ts";

const ADAPTERS: Readonly<Record<HostName, (options?: AdapterOptions) => HookAdapter>> = {
  claude: claudeAdapter,
  codex: codexAdapter,
  gemini: geminiAdapter,
  qwen: qwenAdapter,
  copilot: copilotAdapter,
  opencode: opencodeAdapter,
};

/** The adapter of a host's hooks. */
export function hookAdapter(host: HostName, options?: AdapterOptions): HookAdapter {
  return ADAPTERS[host](options);
}
