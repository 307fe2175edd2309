import { describe, expect, test } from "vitest";
import { nestedOf, onlyReads } from "../support/shell.ts";

describe("a wrapper and what it runs are both commands", () => {
  test.each<[string, ...string[]]>([
    ["env aa b", "env > aa b"],
    ["env A=1 -- aa", "env > -- aa"],
    ["env -i A=1 aa", "env > aa"],
    ["env -u A -C d aa", "env > aa"],
    ["env --unset=A --chdir=d aa", "env > aa"],
    ["/usr/bin/env aa", "env > aa"],
    ["timeout 5 aa", "timeout > aa"],
    ["timeout -k 1 -s KILL --foreground 5s aa -k", "timeout > aa -k"],
    ["nice aa", "nice > aa"],
    ["nice -n 5 aa", "nice > aa"],
    ["nice -5 aa", "nice > aa"],
    ["nohup aa &", "nohup > aa"],
    ["stdbuf -oL -e 0 aa", "stdbuf > aa"],
    ["setsid -w aa", "setsid > aa"],
    ["ionice -c 3 aa", "ionice > aa"],
    ["'time' -p aa", "time > aa"],
    ["chrt -r 1 aa", "chrt > aa"],
    ["taskset 1 aa", "taskset > aa"],
    ["command aa", "command > aa"],
    ["command -p -- aa", "command > aa"],
    ["builtin command aa", "builtin > command aa", "builtin > command > aa"],
    ["exec aa", "exec > aa"],
    ["exec -a n -l aa", "exec > aa"],
    ["sudo aa", "sudo > aa"],
    ["sudo -u root -E A=1 aa", "sudo > aa"],
    ["sudo -s aa b", "sudo > aa b"],
    ["doas -u root aa", "doas > aa"],
    ["chroot --userspec=a /d aa", "chroot > aa"],
    ["su -c 'aa; bb' root", "su -c > aa", "su -c > bb"],
    ["script -c 'aa' out", "script -c > aa"],
    ["flock f aa", "flock > aa"],
    ["flock f -c 'aa | bb'", "flock > -c aa_|_bb"],
    ["flock -c 'aa | bb' f", "flock -c > aa", "flock -c > bb"],
    ["watch -n 1 'aa | bb'", "watch > aa", "watch > bb"],
    ["watch aa b", "watch > aa b"],
    ["ssh -p 1 host 'aa; bb'", "ssh > aa", "ssh > bb"],
    ["ssh -o ProxyCommand='aa b' host", "ssh -o > aa b"],
    ["ssh -o StrictHostKeyChecking=no host aa", "ssh > aa"],
    ["scp -o 'ProxyCommand aa b' x y", "scp -o > aa b"],
    ["tar --checkpoint-action=dot -cf f d", ...[]],
    ["busybox rm f", "busybox > rm f"],
    ["strace -f -o f aa", "strace > aa"],
    ["xargs aa", "xargs > aa <{…}>"],
    ["xargs", "xargs > echo <{…}>"],
    ["xargs -0 -n 1 -P4 --max-args=2 aa b", "xargs > aa b <{…}>"],
    ["xargs -I{} aa {} b{}", "xargs > aa <{}> <b{}>"],
    ["xargs -I % % b", "xargs > <%> b"],
    ["xargs -i aa {}", "xargs > aa <{}>"],
    ["xargs --replace=@ aa @", "xargs > aa <@>"],
    ["xargs sh -c 'aa'", "xargs > sh -c aa <{…}>", "xargs > sh -c > aa"],
    ["find . -exec aa {} \\; -execdir bb {} +", "find -exec > aa <{}>", "find -execdir > bb <{}>"],
    ["find . -ok aa x{} \\;", "find -ok > aa <x{}>"],
    ["find . -exec {} \\;", "find -exec > <{}>"],
    ["find . -exec aa", "find -exec > <aa>", "find -exec > aa"],
    [
      "find . -exec env sh -c 'aa' \\;",
      "find -exec > env sh -c aa",
      "find -exec > env > sh -c aa",
      "find -exec > env > sh -c > aa",
    ],
    ["sh -c 'aa; bb'", "sh -c > aa", "sh -c > bb"],
    ["bash -c 'aa | bb' name arg", "bash -c > aa", "bash -c > bb"],
    ["bash -euo pipefail -c 'aa'", "bash -c > aa"],
    ["bash --norc -lc aa", "bash -c > aa"],
    ["bash -c \"sh -c 'aa'\"", "bash -c > sh -c aa", "bash -c > sh -c > aa"],
    ["/bin/sh -c aa", "sh -c > aa"],
    ["sh -c aa; bb", "sh -c > aa"],
    ["eval 'aa; bb'", "eval > aa", "eval > bb"],
    ["eval aa b '| cc'", "eval > aa b", "eval > cc"],
    ["eval -- aa", "eval > aa"],
    ["trap 'aa; bb' EXIT INT", "trap > aa", "trap > bb"],
    ["alias x='aa; bb'", "alias > aa", "alias > bb"],
    ["jobs -x aa b", "jobs -x > aa b"],
    ["git -c core.pager='aa b' log", "git -c > aa b"],
    ["git -c alias.x='!aa; bb' x", "git -c > aa", "git -c > bb"],
    ["git -c core.hooksPath=d commit", "git -c > d"],
    ["git bisect run aa b", "git bisect > aa b"],
    ["git rebase -x 'aa && bb' main", "git rebase > aa", "git rebase > bb"],
    ["git rebase --exec=aa main", "git rebase > aa"],
    ["git submodule foreach --recursive 'aa; bb'", "git submodule > aa", "git submodule > bb"],
    ["git clone -u aa host:x", "git clone > aa"],
    ["git fetch --upload-pack='aa b' o", "git fetch > aa b"],
    ["git clone 'ext::aa b'", "git clone > aa b"],
    ["git difftool -x aa", "git difftool > aa"],
    ["git filter-branch --tree-filter 'aa b'", "git filter-branch > aa b"],
    ["git grep -Oaa x", "git grep > aa"],
    ["tar --checkpoint-action=exec='aa b' -cf f d", "tar --checkpoint-action > aa b"],
    ["tar --checkpoint-act exec=aa -cf f d", "tar --checkpoint-action > aa"],
    ["tar --to-command=aa -xf f", "tar --to-command > aa"],
    ["tar -I 'aa b' -cf f d", "tar -I > aa b"],
    ["rsync -e 'aa b' x y", "rsync -e > aa b"],
    ["rsync -avze 'aa b' x y", "rsync -e > aa b"],
    ["rsync --rsh=aa x y", "rsync --rsh > aa"],
    ["sort --compress-program=aa f", "sort --compress-program > aa"],
    ["split --filter='aa b' f", "split --filter > aa b"],
    ["rg --pre aa x", "rg --pre > aa"],
  ])("%j", (line, ...inner) => {
    expect(nestedOf(line).filter((command) => command.includes(" > "))).toEqual(inner);
  });
});

describe("the wrapper alone is harmless when all it does is run a harmless command", () => {
  test.each([
    "env ls",
    "timeout 5 ls",
    "nice ls",
    "stdbuf -oL ls",
    "time ls",
    "command ls",
    "builtin pwd",
    "exec ls",
    "xargs cat",
    "timeout 5 env nice ls",
  ])("%j", (line) => {
    expect(onlyReads(line)).toBe(true);
  });

  test.each([
    "env A=1 ls",
    "timeout 5 rm f",
    "nice rm f",
    "env nice timeout 5 rm f",
    "stdbuf --unknown ls",
    "nohup ls",
    "setsid ls",
    "sudo ls",
    "sh -c ls",
    "ssh host ls",
    "find . -exec ls {} +",
    "/usr/bin/env ls",
    "xargs --unknown ls",
    "xargs -p ls",
    "xargs -I{} {}",
    "xargs -n1 -I{} cat",
    "command rm f",
    "exec rm f",
    "git ls-files | xargs rm",
  ])("but not in %j", (line) => {
    expect(onlyReads(line)).toBe(false);
  });
});

describe("a text for another shell is only trusted as far as the shells agree", () => {
  test.each(["aa; bb", "aa 'b' \"$c\" $(dd)", "if aa; then bb; fi", "aa > f 2>&1 | bb", "for x in a; do aa; done"])(
    "sh reads %j as bash does",
    (text) => {
      const nested = nestedOf(`sh -c '${text.replaceAll("'", "'\\''")}'`);
      expect(nested.some((command) => command.startsWith("sh -c > <"))).toBe(false);
    },
  );

  test.each([
    "aa $'b\\'c'",
    "[[ aa || bb ]]",
    "aa &> f",
    "((aa))",
    "aa |& bb",
    "aa <(bb)",
    "function f { aa; }",
    "x+=1 aa",
    "time aa",
    "aa {fd}>f",
    "aa 03>f",
  ])("sh may read %j in another way", (text) => {
    const nested = nestedOf(`sh -c '${text.replaceAll("'", "'\\''")}'`);
    expect(nested.some((command) => command.startsWith("sh -c > <"))).toBe(true);
  });

  test("what zsh or fish read is never certain", () => {
    expect(nestedOf("zsh -c 'aa b'")).toEqual(["zsh -c aa_b", "zsh -c > <aa_b>", "zsh -c > aa b"]);
    expect(nestedOf("fish -c aa")).toContain("fish -c > <aa>");
  });
});
