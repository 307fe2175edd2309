export { defineConfig, type SluiceConfig } from "./project/config.ts";
export type { NotifyOn, NotifyOption } from "./project/fields/notify-option.ts";
