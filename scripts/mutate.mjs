// `npm run mutate`: mutation tests of the gate, routing and journal folders, and what of their survivors nobody has explained.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { environment, install, root, tool } from "./setup.mjs";

const node = install();
const run = spawnSync(node, [tool("@stryker-mutator/core/bin/stryker.js"), "run", ...process.argv.slice(2)], {
  cwd: root,
  stdio: "inherit",
  env: environment(node),
});
if (run.status !== 0) process.exit(run.status ?? 1);

/** Survivors that are looked at and left: each says where, what was changed, and why no verdict, route or record changes. */
const explained = JSON.parse(readFileSync(join(root, "test/mutation/explained.json"), "utf8"));
const { files } = JSON.parse(readFileSync(join(root, ".reports/mutation.json"), "utf8"));
const left = Object.entries(files).flatMap(([file, { source, mutants }]) =>
  mutants
    .filter(({ status }) => status === "Survived" || status === "NoCoverage")
    .map(({ location, mutatorName, replacement }) => ({
      file,
      line: location.start.line,
      code: source.split("\n")[location.start.line - 1].trim(),
      mutator: mutatorName,
      replacement,
    })),
);
const unexplained = left.filter((mutant) => !explained.some((one) => explains(one, mutant)));
const unused = explained.filter((one) => !left.some((mutant) => explains(one, mutant)));

process.stdout.write(`\n${left.length} changes survived, ${left.length - unexplained.length} of them explained\n`);
for (const { file, line, code, mutator, replacement } of unexplained) {
  process.stdout.write(`\n${file}:${line} ${mutator}\n  ${code}\n  became … ${replacement} …\n`);
}
// A part of the folders leaves most explanations without their mutant.
if (process.argv.length === 2)
  for (const { file, code } of unused) process.stdout.write(`\nexplained, but gone: ${file}: ${code}\n`);
process.exitCode = unexplained.length === 0 ? 0 : 1;

/** By the code, not by its line, which moves; `replacement` narrows it down to one change of that code. */
function explains({ file, code, mutator, replacement }, mutant) {
  return (
    mutant.file === file &&
    mutant.code.includes(code) &&
    (mutator === undefined || mutant.mutator === mutator) &&
    (replacement === undefined || mutant.replacement === replacement)
  );
}
