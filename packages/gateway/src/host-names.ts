/** The agents that a gateway knows, by the names of their programs. */
export const HOST_NAMES = ["claude", "codex", "gemini", "qwen", "copilot", "opencode"] as const;
export type HostName = (typeof HOST_NAMES)[number];
