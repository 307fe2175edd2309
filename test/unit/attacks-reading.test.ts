// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { decide, type Verdict } from "../../packages/core/src/gate/decide.ts";
import { compileEnvelope } from "../../packages/core/src/gate/envelope.ts";
import { bashTool } from "../../packages/stages/src/tools/bash/bash-tool.ts";
import { lineIn } from "../support/lines.ts";
import { stageIn, tempFolder } from "../support/tools.ts";

function verdictOn(line: string, root: string): Verdict["kind"] {
  const bound = { ok: true, subjects: lineIn(root, line) } as const;
  const state = {
    workspace: { root },
    mode: "ask",
    allow: compileEnvelope([]),
    tool: { effect: "write", builtin: true, bound },
  } as const;
  return decide({ tool: "Bash" }, compileEnvelope(["Bash"]), state).kind;
}

describe("names outside the workspace are not shown without a grant", () => {
  test.each([
    "x=../*; echo $x",
    "x='/root/.ssh/*'; echo $x",
    'set -- /home/*; echo "$@"',
    "echo $(printf '/ro\\157t/.\\52')",
    "x='../*'; printf '%s\\n' $x",
    "echo ${x:-../*}",
    "echo {../*,a}",
    "echo ${PWD%ws}*",
    "for f in $(echo '../*'); do echo $f; done",
  ])("%s", (line) => {
    expect(verdictOn(line, tempFolder().root)).not.toBe("allow");
  });
});

test.each(["CI=1; echo x", "echo {a,b}", "echo *.ts", 'printf "%s" "$PATH"'])("%s needs no grant", (line) => {
  expect(verdictOn(line, tempFolder().root)).toBe("allow");
});

test("git in a repository whose settings are only data needs no grant", () => {
  const folder = tempFolder();
  execFileSync("git", ["init", "-q"], { cwd: folder.root });
  folder.put(".git/config", '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://h/x\n');
  expect(verdictOn("git log -1", folder.root)).toBe("allow");
  folder.put(".git/config", "[include]\n\tpath = ../settings\n");
  expect(verdictOn("git log -1", folder.root)).not.toBe("allow");
});

describe("settings of a repository start no program of its own in a reading command", () => {
  test.each([
    ["git log -1", "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = ./evil.sh\n"],
    ["git diff", "[diff]\n\texternal = ./evil.sh\n"],
    ["git show", '[diff "x"]\n\ttextconv = ./evil.sh\n'],
    ["git blame f.x", '[diff "x"]\n\ttextconv = ./evil.sh\n'],
    ["git status", '[filter "x"]\n\tclean = ./evil.sh\n'],
  ])("%s", async (line, settings) => {
    const folder = tempFolder();
    const setUp = `git init -q && git config user.email a@b && git config user.name n && echo 1 > f.x && echo '* diff=x filter=x' > .gitattributes && git add . && git commit -qm m && printf 'tree %s\\nauthor n <a@b> 1 +0000\\ncommitter n <a@b> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----\\n\\nm\\n' $(git rev-parse 'HEAD^{tree}') > c && git update-ref HEAD $(git hash-object -t commit -w c) && rm c && echo 2 > f.x`;
    execFileSync("/bin/bash", ["-c", setUp], { cwd: folder.root });
    folder.put(".git/config", `[core]\n\trepositoryformatversion = 0\n${settings}`);
    execFileSync(
      "/bin/bash",
      ["-c", `printf '#!/bin/sh\\ntouch ${folder.root}/PWN\\ncat\\n' > evil.sh; chmod +x evil.sh`],
      { cwd: folder.root },
    );
    if (verdictOn(line, folder.root) !== "allow") return;
    const tool = bashTool();
    await tool.ready?.();
    await stageIn(folder, { mayWrite: false }).use(tool, { command: line });
    expect(() => folder.text("PWN")).toThrow();
  });
});
