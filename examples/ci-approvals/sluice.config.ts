// Rules answer what a person would be asked in a CI job. Copy both files into the folder of your project:
//   sluice run codeReview "rename the option" --headless --trust
import { defineConfig } from "@sluice/cli";
import { byRules } from "./rules.ts";

const rules = [
  { tool: "Bash", argument: "command", like: /^npm (?:test|run lint)$/ },
  { tool: "Write", argument: "file_path", like: /^notes\/[\w-]+\.md$/ },
];

export default defineConfig({
  interactors: [byRules("ci rules", rules, (line) => console.error(line))],
});
