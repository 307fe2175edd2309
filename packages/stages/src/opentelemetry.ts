export { type OpenTelemetryOptions, openTelemetry } from "./opentelemetry/opentelemetry.ts";
