// The code of tools, for Sluice's own packages. Not covered by the promises of the other entries, and loaded only when it is used.

export { removeOutputs } from "./kinds/commands/streams.ts";
export { sandboxedProgram } from "./sandbox/program-sandbox.ts";
export { maskedHead, NO_MASK } from "./secrets/cut-text.ts";
export { commandJudge } from "./tools/bash/bash-tool.ts";
export { endProcessesOf } from "./tools/bash/process.ts";
export { reportingChanges } from "./tools/bash/workspace-diff.ts";
export { predictChange } from "./tools/files/change.ts";
export { fileSubjects, treeSubjects } from "./tools/files/paths.ts";
export { prefixOf } from "./tools/mcp/names.ts";
export { carriedRipgrep } from "./tools/search/grep-ripgrep.ts";
export { workspaceFiles } from "./tools/search/walk.ts";
