export { routeLines } from "./words/route-lines.ts";
