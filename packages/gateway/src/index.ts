export {
  HOST_NAMES,
  type HostClass,
  type HostForm,
  type HostName,
  type LaunchPlan,
  type LaunchRequest,
  type UserPlaces,
} from "./hosts/host.ts";
export { HOSTS, launchPlan, reaches } from "./hosts/launch-plan.ts";
export { privateFolder, type StartedHost, type StartOptions, startHost } from "./hosts/start-host.ts";
export { readVersion } from "./hosts/version.ts";
