export type { ReportFacts } from "./html/facts.ts";
export { reportPage } from "./html/page.ts";
