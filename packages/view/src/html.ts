export type { ReportFacts } from "./html/head.ts";
export { reportPage } from "./html/page.ts";
