/** A bug put into the sandbox on purpose: `find` stands once in the file, and becomes `replace`. Some test has to fail then. */
export interface WallBug {
  readonly name: string;
  /** Below packages/stages/src. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const BUILDER = "sandbox/bubblewrap.ts";
const SANDBOX = "sandbox/sandbox.ts";

export const WALL_BUGS: readonly WallBug[] = [
  {
    name: "network-shared",
    file: BUILDER,
    find: 'plan.network ? [] : ["--unshare-net"]',
    replace: "plan.network ? [] : []",
  },
  { name: "processes-shared", file: BUILDER, find: '    "--unshare-pid",\n', replace: "" },
  { name: "ipc-shared", file: BUILDER, find: '    "--unshare-ipc",\n', replace: "" },
  { name: "names-shared", file: BUILDER, find: '    "--unshare-uts",\n', replace: "" },
  { name: "session-shared", file: BUILDER, find: '    "--new-session",\n', replace: "" },
  { name: "outlives-its-owner", file: BUILDER, find: '    "--die-with-parent",\n', replace: "" },
  { name: "user-namespaces-allowed", file: BUILDER, find: '["--disable-userns"] : []', replace: "[] : []" },
  {
    name: "kernel-settings-writable",
    file: BUILDER,
    find: '"/proc", "/dev", ...readOnlyLast',
    replace: '"/dev", ...readOnlyLast',
  },
  {
    name: "devices-writable",
    file: BUILDER,
    find: '"/proc", "/dev", ...readOnlyLast',
    replace: '"/proc", ...readOnlyLast',
  },
  { name: "root-writable", file: BUILDER, find: '...readOnlyLast, "/"]', replace: "...readOnlyLast]" },
  { name: "hidden-writable", file: BUILDER, find: '"/dev", ...readOnlyLast, "/"]', replace: '"/dev", "/"]' },
  {
    name: "reads-are-writes",
    file: BUILDER,
    find: 'return ["--ro-bind", from, at];',
    replace: 'return ["--bind", from, at];',
  },
  {
    name: "keys-shown",
    file: BUILDER,
    find: '    ...keys.files.map((at) => ({ at, how: "null" as const })),\n',
    replace: "",
  },
  { name: "store-shown", file: BUILDER, find: "    ...absent.filter(isShown).map(hidden),\n", replace: "" },
  {
    name: "sluice-folder-shown",
    file: BUILDER,
    find: '[...plan.absent, join(root, ".sluice")].flatMap',
    replace: "[...plan.absent].flatMap",
  },
  { name: "store-can-be-moved", file: BUILDER, find: "[...guarded, ...absent.filter(isWritten)]", replace: "guarded" },
  {
    name: "git-can-be-moved",
    file: BUILDER,
    find: "    ...anchors([...guarded, ...absent.filter(isWritten)], areas),\n",
    replace: "",
  },
  { name: "git-code-writable", file: BUILDER, find: "...(repository?.fixed ?? [])].filter", replace: "].filter" },
  {
    name: "protected-writable",
    file: BUILDER,
    find: "[...plan.readOnly.flatMap(there), ...(rep",
    replace: "[...(rep",
  },
  { name: "nested-git-writable", file: BUILDER, find: "...guarded, ...marked].map", replace: "...guarded].map" },
  { name: "guards-opened-again", file: BUILDER, find: ".filter((at) => !isGuarded(at))", replace: "" },
  {
    name: "sockets-shown",
    file: BUILDER,
    find: 'kind === "channel" && visible(path)',
    replace: 'kind === "channel" && path === ""',
  },
  { name: "home-shown", file: BUILDER, find: 'home === undefined || home === "/" ? []', replace: "home !== null ? []" },
  {
    name: "sizes-forgotten",
    file: BUILDER,
    find: 'return ["--size", String(size ?? SIZES.temporary), "--tmpfs", at];',
    replace: 'return ["--tmpfs", at];',
  },
  {
    name: "all-of-the-workspace-read",
    file: BUILDER,
    find: "!contains(root, path))] : named;",
    replace: "!contains(root, path))] : [root];",
  },
  {
    name: "outside-repository-unwritten",
    file: BUILDER,
    find: 'repositoryIsWritten ? ("write" as const)',
    replace: 'repositoryIsWritten ? ("read" as const)',
  },
  {
    name: "parent-repository-written",
    file: BUILDER,
    find: "repository?.whole === true && written(root)",
    replace: "written(root)",
  },
  {
    name: "wide-tool-roots",
    file: "sandbox/tool-roots.ts",
    find: "!SHARED.includes(path) &&\n      ![...precious, ...(home === undefined ? [] : [home])].some((one) => contains(path, one)) &&",
    replace: "",
  },
  {
    name: "credentials-of-git-shown",
    file: "sandbox/tool-roots.ts",
    find: "text !== undefined && !LIKE_A_KEY.test(text)",
    replace: "text !== undefined",
  },
  {
    name: "linked-git-followed",
    file: "sandbox/repository.ts",
    find: "if (stats?.isSymbolicLink() === true && place === root)",
    replace: "if (stats === null)",
  },
  {
    name: "hooks-elsewhere-writable",
    file: "sandbox/repository.ts",
    find: "const named = programs(repository, root, home);",
    replace: "const named = programs(repository, root, home).slice(0, 0);",
  },
  {
    name: "nothing-moved-away",
    file: "sandbox/after-call.ts",
    find: "for (const one of found) {",
    replace: "for (const one of found.slice(0, 0)) {",
  },
  {
    name: "marks-not-compared",
    file: "sandbox/after-call.ts",
    find: "!marks.has(keyOf(mark)) && !isMissed",
    replace: "!isMissed",
  },
  {
    name: "git-paths-not-compared",
    file: "sandbox/after-call.ts",
    find: 'return now !== "" && now !== (before.paths.get(path) ?? "");',
    replace: "return now === null;",
  },
  {
    name: "leftovers-of-others-kept",
    file: "sandbox/after-call.ts",
    find: "const others = [...active, ...elsewhere()];",
    replace: "const others = elsewhere().slice(0, 0);",
  },
  {
    name: "folders-left-closed",
    file: "sandbox/folder-marks.ts",
    find: "opens && openAgain(folder) !== undefined",
    replace: "!opens && openAgain(folder) !== undefined",
  },
  { name: "guards-in-closed-folders-lost", file: SANDBOX, find: "certainPath(path, areas);", replace: "void areas;" },
  {
    name: "runs-beside-leftovers",
    file: SANDBOX,
    find: "    refuseLeft(left);\n    const found",
    replace: "    const found",
  },
  {
    name: "calls-not-recorded",
    file: SANDBOX,
    find: "if (store !== undefined)",
    replace: "if (store === null)",
  },
  {
    name: "folders-remembered-too-long",
    file: "sandbox/folder-marks.ts",
    find: "before.changed === stats.ctimeNs && !before.racy",
    replace: "before.changed > 0n",
  },
  {
    name: "runs-without-a-wall",
    file: SANDBOX,
    find: "if (end === undefined) throw await lost(errors);",
    replace: "if (end === undefined) return { ...(await runProcess(program)), movedAway: [] };",
  },
  {
    name: "not-built-is-not-noticed",
    file: SANDBOX,
    find: 'if (!wasBuilt && end.by === "itself" && end.killed === null) return undefined;',
    replace: "",
  },
  {
    name: "lost-wall-still-trusted",
    file: SANDBOX,
    find: "    proven = undefined;\n    proof = undefined;\n",
    replace: "",
  },
  {
    name: "proof-not-required",
    file: SANDBOX,
    find: 'if (mode === "require" && proven === undefined)',
    replace: 'if (mode === "require" && proven === null)',
  },
  { name: "canary-believed", file: SANDBOX, find: "      if (why === undefined) {", replace: "      if (true) {" },
  {
    name: "program-of-the-workspace",
    file: SANDBOX,
    find: "real !== undefined && !contains(root, real) && isProgram(real)",
    replace: "real !== undefined && isProgram(real)",
  },
  { name: "inside-not-asked", file: "tools/bash/process.ts", find: "options.inside?.() ?? pid", replace: "pid" },
  {
    name: "descriptors-inherited",
    file: "tools/bash/process.ts",
    find: "covers ? coveredDescriptors",
    replace: "covers === null ? coveredDescriptors",
  },
  {
    name: "environment-inherited",
    file: "tools/bash/process.ts",
    find: "      cwd,\n      env,\n",
    replace: "      cwd,\n      env: { ...process.env, ...env },\n",
  },
  { name: "output-unlimited", file: "tools/bash/process.ts", find: 'if (bytesLeft < 0) end("output");', replace: "" },
  {
    name: "memory-unwatched",
    file: "tools/bash/process-usage.ts",
    find: 'if (used.memory > most.memory) over("memory");\n    else ',
    replace: "",
  },
  {
    name: "server-started-unwalled",
    file: "tools/mcp/transport/connection.ts",
    find: "const wall = isHeld ? first.wall : undefined;",
    replace: "const wall = isHeld ? undefined : first.wall;",
  },
];

/** Where bugs of the wall show. */
export const WALL_TESTS: readonly string[] = [
  "test/unit/sandbox-view.test.ts",
  "test/unit/sandbox-processes.test.ts",
  "test/unit/sandbox-modes.test.ts",
  "test/unit/sandbox-git.test.ts",
  "test/unit/sandbox-leftovers.test.ts",
  "test/unit/mcp-walls.test.ts",
];
