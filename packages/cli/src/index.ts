export { defineConfig, type SluiceConfig } from "./project/config.ts";
