export { type ReportFacts, reportPage } from "./html/page.ts";
