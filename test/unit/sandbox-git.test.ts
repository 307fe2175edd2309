import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { hasWall, type WallUser, type WallWorld, walled, wallUsers, wallWorld } from "../support/walls.ts";

const isThere = hasWall();
const WRITES = { writes: [""] };
/** Makes a repository where no search looks, and enters it into the index. */
const NAMED = `git init -q node_modules/x; git -C node_modules/x -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x
  S=$(git -C node_modules/x rev-parse HEAD); git update-index --add --cacheinfo 160000,$S,node_modules/x`;
/** The same, as a user has it. */
const SUBMODULE = `git init -q node_modules/lib; git -C node_modules/lib commit -q --allow-empty -m lib
  git update-index --add --cacheinfo 160000,$(git -C node_modules/lib rev-parse HEAD),node_modules/lib`;

function repository(user: WallUser): WallWorld {
  const world = wallWorld(user);
  world.outside("echo .sluice >.gitignore; git init -q; git add .; git commit -qm first");
  return world;
}

describe.skipIf(!isThere).each(wallUsers())(
  "git behind the wall (skipped where none can be built), as $name",
  (user) => {
    test("a stage that writes commits, branches, stashes, merges, rebases and tags", async () => {
      const world = repository(user);
      const run = await walled(user, world);
      const { text, end } = await run(
        `set -e; exec 2>&1
      echo b >b.txt; git add .; git commit -qm second; git tag -a v1 -m v1
      git checkout -q -b side HEAD~1; echo c >c.txt; git add .; git commit -qm side
      echo dirty >>a.txt; git stash -q; git stash pop -q; git checkout -q a.txt
      git checkout -q main; git merge -q -m merged side; git checkout -q side; git rebase -q main; git checkout -q main
      git mv b.txt d.txt; git reset -q --hard; git worktree list | wc -l
      git status --short; git log --format=%an%s | sort | xargs; git fsck >/dev/null; echo done`,
        WRITES,
      );
      expect(text).toBe("1\nAfirst Amerged Asecond Aside\ndone\n");
      expect(end).toMatchObject({ exitCode: 0, movedAway: [] });
      expect(
        world.outside(
          "git status --short; git log --format=%s -1; git stash list; git branch --format='%(refname:short)'",
        ),
      ).toBe("merged\nmain\nside\n");
    });

    test("a stage that reads reads the history, and changes nothing of it", async () => {
      const world = repository(user);
      const run = await walled(user, world);
      const { text } = await run(
        "git log --format=%s; git status --short; git diff; git commit --allow-empty -m x; git checkout -b y; git stash; :",
      );
      expect(text).toMatch(/^first\n(.*(Read-only|cannot|fatal|error).*\n)+$/);
      expect(world.outside("git log --format=%s; git branch --format='%(refname:short)'")).toBe("first\nmain\n");
    });

    test("what git obeys cannot be changed, replaced or moved", async () => {
      const world = repository(user);
      world.put("work/tools/hooks/pre-commit", "#!/bin/sh\n", 0o755);
      world.put("work/.husky/_/pre-push", "#!/bin/sh\n", 0o755);
      world.put("work/.husky/pre-push", "#!/bin/sh\n", 0o755);
      world.put("work/scripts/diff.sh", "#!/bin/sh\n", 0o755);
      world.own();
      world.outside(
        "git config core.hooksPath tools/hooks; git config --add core.hooksPath .husky/_; git config diff.x.textconv scripts/diff.sh; echo x >.git/objects/info/alternates; mkdir -p .git/worktrees/w; echo ../.. >.git/worktrees/w/commondir",
      );
      const before = world.outside(
        "find .git tools scripts .husky -type f ! -name index ! -path '*/objects/??/*' | sort | xargs sha256sum",
      );
      const run = await walled(user, world);
      const { end } = await run(
        `git config core.pager evil; git config --local alias.st '!evil'; git config -f .git/config.worktree core.pager evil
      echo evil >.git/hooks/pre-commit; ln -sf /tmp/x .git/config; cp a.txt .git/config; rm -rf .git/hooks .git/config .git/info
      mv .git other; mv .git/hooks other; mv .git/config other; mv .git/info other; mv .git/objects o; mv .git/objects/info o; mv .git/worktrees o
      echo evil >.git/objects/info/alternates; echo evil >.git/worktrees/w/commondir; mv .git/worktrees/w o; echo evil >.git/info/attributes
      echo evil >tools/hooks/pre-commit; mv tools t; mv tools/hooks t; echo evil >scripts/diff.sh; mv scripts s; rm -rf scripts tools .husky
      echo evil >.husky/pre-push; mv .husky h; rm -f .git/config.worktree; :`,
        WRITES,
      );
      expect(end.movedAway).toEqual([]);
      expect(
        world.outside(
          "find .git tools scripts .husky -type f ! -name index ! -path '*/objects/??/*' | sort | xargs sha256sum",
        ),
      ).toBe(before);
    });

    test("a repository that the index comes to name, and hooks where none were, are moved away wherever they lie", async () => {
      const world = repository(user);
      world.outside("git config core.hooksPath .githooks");
      const run = await walled(user, world);
      const { end } = await run(
        `${NAMED}
      mkdir .githooks; echo evil > .githooks/pre-commit`,
        WRITES,
      );
      expect(end.movedAway.map(({ path }) => path.slice(world.root.length + 1)).toSorted()).toEqual([
        ".githooks",
        "node_modules/x/.git",
      ]);
    });

    test("a link that a command makes on the way to what git would obey is moved away, and not what it leads to", async () => {
      const world = repository(user);
      world.put("work/hooked/a.txt", "a");
      world.own();
      world.outside("git config core.hooksPath hooked/git-hooks; git config filter.x.smudge tools2/bin/smudge");
      const run = await walled(user, world);
      const { end } = await run(
        `mkdir -p evil/git-hooks evil2/bin; echo evil > evil/git-hooks/pre-commit; echo evil > evil2/bin/smudge; echo /etc > evil/alternates
      mv hooked was; ln -s evil hooked; ln -s evil2 tools2; rm -rf .git/objects/info; ln -s ../../evil .git/objects/info; :`,
        WRITES,
      );
      expect(end.movedAway.map(({ path }) => path.slice(world.root.length + 1)).toSorted()).toEqual([
        ...[".git/objects/info", "hooked", "tools2"],
      ]);
      expect(world.outside("cat evil/git-hooks/pre-commit evil2/bin/smudge evil/alternates")).toBe(
        "evil\nevil\n/etc\n",
      );
    });

    test.each([
      [
        "permissions",
        "LC_ALL=C sed -i 's/\\x00\\x00\\xe0\\x00/\\x00\\x00\\xe1\\xa4/' .git/index",
        "node_modules/x/.git",
      ],
      [
        "a name that is no text",
        "git update-index --cacheinfo 160000,$S,node_modules/x --add --cacheinfo 160000,$S,node_modules/$'\\xff'",
        ".git/index",
      ],
      ["a place in another file than the index", "git update-index --split-index", ".git/index"],
      [
        "an absolute path",
        "at=0$(pwd | cut -c2-); git update-index --force-remove node_modules/x; git update-index --add --cacheinfo 160000,$S,$at/node_modules/x; sed -i s:$at:$PWD: .git/index",
        ".git/index",
      ],
      [
        "a path that is longer than the system allows, unless one is in the workspace",
        `left() { echo $((4092 - \${#PWD} - \${#long})); }; name() { printf 'd%.0s' $(seq $1); }
        long=node_modules; while [ $(left) -gt 250 ]; do long=$long/$(name 200); done; mkdir -p $long; long=$long/$(name $(left))
        mv node_modules/x $long; git update-index --force-remove node_modules/x; git update-index --add --cacheinfo 160000,$S,$long`,
        ".git/index",
      ],
    ])("git never finds a repository that a command enters into the index with %s", async (_, then, moved) => {
      const world = repository(user);
      const run = await walled(user, world);
      const { text, end } = await run(`${NAMED}; ${then}; git ls-files -s | grep ^16`, WRITES);
      expect(text).toMatch(/^160\d+ .*node_modules\/[xd]/);
      expect(end.movedAway.map(({ path }) => path.slice(world.root.length + 1))).toEqual([moved]);
      expect((await run("git add a.txt", WRITES)).end.movedAway).toEqual([]);
      // No path leads that deep for what removes the world.
      world.outside("rm -rf node_modules");
    });

    test("a repository that a command enters into an index with hundreds of submodules is moved away", async () => {
      const world = repository(user);
      world.outside(
        'seq -f sub/%g 300 | sed "s:^:160000 $(git rev-parse HEAD)\\t:" | git update-index --index-info; git ls-files -s | grep -c ^16',
      );
      const run = await walled(user, world);
      const { end } = await run(NAMED, WRITES);
      expect(end.movedAway).toMatchObject([{ path: join(world.root, "node_modules/x/.git") }]);
    });

    test("hooks that a command makes where a link of the user leads are moved away, and the link stays", async () => {
      const world = repository(user);
      world.outside("mkdir -p tools/git; ln -s tools t; git config core.hooksPath t/git/hooks");
      const run = await walled(user, world);
      const { end } = await run("mkdir tools/git/hooks; echo evil >tools/git/hooks/pre-commit", WRITES);
      expect(end.movedAway).toMatchObject([{ path: join(world.root, "tools/git/hooks") }]);
      expect(world.outside("readlink t; ls tools/git")).toBe("tools\n");
    });

    test("a repository that a command in flight enters into the index is moved away if another one makes it again", async () => {
      const world = repository(user);
      const run = await walled(user, world);
      const until = (what: string): string => `until [ ${what} ]; do sleep 0.02; done`;
      const first = run(`${NAMED}; touch made; ${until("-e begun")}`, WRITES);
      await expect.poll(() => existsSync(join(world.root, "made"))).toBe(true);
      const second = run(`touch begun; ${until("! -e node_modules/x/.git")}; ${NAMED}`, WRITES);
      const path = join(world.root, "node_modules/x/.git");
      expect((await first).end.movedAway).toMatchObject([{ path }]);
      expect((await second).end.movedAway).toMatchObject([{ path }]);
    });

    test("a repository of the user stays where it is when a command enters it into the index", async () => {
      const world = repository(user);
      world.outside("git init -q vendor/own; git -C vendor/own commit -q --allow-empty -m own");
      const run = await walled(user, world);
      const { end } = await run("git add vendor; echo evil >>vendor/own/.git/config; :", WRITES);
      expect(end.movedAway).toEqual([]);
      expect(world.outside("git status --short; git -C vendor/own log --format=%s")).toBe("A  vendor/own\nown\n");
    });

    test("a repository of the user that a command moves with its folder is moved away, since it may lead elsewhere then", async () => {
      const world = repository(user);
      world.outside(`git init -q vendor/app; mkdir vendor/app/lib; git init -q --separate-git-dir vendor/app/.git/modules/lib vendor/app/lib
      echo 'gitdir: ../.git/modules/lib' >vendor/app/lib/.git`);
      const run = await walled(user, world);
      const { end } = await run(
        `${NAMED}; mkdir -p node_modules/.git/modules; mv node_modules/x/.git node_modules/.git/modules/lib; mv vendor/app/lib node_modules/lib
      git update-index --add --cacheinfo 160000,$S,node_modules/lib`,
        WRITES,
      );
      expect(end.movedAway).toMatchObject([{ path: join(world.root, "node_modules/lib/.git") }]);
    });

    test("a word of git's settings that is too long for a name names nothing, and none of them is in an error", async () => {
      const world = repository(user);
      const run = await walled(user, world);
      const helper = (word: string): string =>
        world.outside(`git config credential.helper '!f() { echo password=${word}; }; f 2>/dev/null'`);
      helper("x".repeat(300));
      expect((await run("echo ran", WRITES)).text).toBe("ran\n");
      expect((await run("echo ran")).text).toBe("ran\n");
      // Too long as a path only: something may be there.
      helper("planted/".repeat(600));
      await expect(run("echo ran", WRITES)).rejects.toThrow(
        /^(?!.*planted)sandbox_failed: .*work, which cannot be examined \(ENAMETOOLONG\)/,
      );
    });

    test.each([
      ["another user's folder", "../theirs"],
      ["a path in another user's folder", "../theirs/below"],
      ["a name that is too long", "x".repeat(300)],
    ])(
      "a link to %s in the place of the folder of all work trees is moved away with all else, and one of the user stays",
      async (_, target) => {
        const world = repository(user);
        const theirs = join(world.root, "theirs");
        mkdirSync(theirs);
        chownSync(theirs, 0, 0);
        chmodSync(theirs, 0o700);
        const run = await walled(user, world);
        const { end } = await run(`${NAMED}; ln -s ${target} .git/worktrees`, WRITES);
        expect(end.movedAway.map(({ path }) => path.slice(world.root.length + 1)).toSorted()).toEqual([
          ".git/worktrees",
          "node_modules/x/.git",
        ]);
        world.outside(`ln -s ${target} .git/worktrees`);
        expect((await run("echo ran", WRITES)).text).toBe("ran\n");
        expect((await (await walled(user, world))("echo ran", WRITES)).end.movedAway).toEqual([]);
      },
    );

    test("what a command leaves that the host's programs would obey is moved away, and nothing else", async () => {
      const world = repository(user);
      world.put("work/vendor/lib/.gitkeep", "");
      world.own();
      world.outside(
        "rm -rf .git/hooks .git/info; git init -q vendor/own; rm -rf vendor/own/.git/hooks; git init -q --bare vendor/bare",
      );
      const run = await walled(user, world);
      const made = [
        ".git/commondir",
        ".git/config.worktree",
        ".git/hooks",
        ".git/info",
        ".git/modules",
        ".git/objects/info/alternates",
        "deep/down/.git",
        "nested/.git",
        "nested/sub/.sluice",
        "sluice.config.ts",
        "src/sluice.config.mjs",
        "bare/HEAD",
        "common/HEAD",
        "a/.GIT",
        "linked/.git",
        // A path that it holds leads elsewhere now.
        "vendor/moved/.git",
      ];
      const { text, end } = await run(
        `echo . >.git/commondir; echo >.git/config.worktree; mkdir -p .git/hooks .git/info .git/modules/x; echo evil >.git/hooks/pre-commit
      echo /x >.git/objects/info/alternates; mkdir -p deep/down nested/sub/.sluice bare linked a/.GIT; echo 'gitdir: /x' >deep/down/.git; git init -q nested
      echo >sluice.config.ts; echo >src/sluice.config.mjs; git init -q --bare bare; ln -s /x linked/.git
      mkdir -p common/.r/objects common/.r/refs; echo 'ref: refs/heads/main' >common/HEAD; echo .r >common/commondir; echo >common/config.worktree
      mv vendor/own vendor/moved; mv vendor/moved/.git x; echo evil >vendor/moved/.git/config; echo evil >vendor/bare/config; echo kept >b.txt; :`,
        WRITES,
      );
      expect(text).not.toBe("");
      expect(end.movedAway.map(({ path }) => path.slice(world.root.length + 1)).toSorted()).toEqual(made.toSorted());
      for (const path of made) expect(existsSync(join(world.root, path))).toBe(false);
      for (const { to } of end.movedAway) {
        expect(to).toMatch(new RegExp(`^${world.folder}/state/moved-away/[0-9a-f-]+/\\d+-[^.].*\\.moved$`));
        readdirSync(join(to, ".."));
      }
      expect(world.outside("cat b.txt; git status --short vendor b.txt; cat vendor/bare/config")).toMatch(
        /^kept\n(?!(?:.*\n)*evil)/,
      );
      expect((await run("ls", WRITES)).end.movedAway).toEqual([]);
    });

    test("folders of the user stay where they are if a command makes a repository around them, and it is none", async () => {
      const world = repository(user);
      for (const path of ["config/x", "hooks/x", "lib/modules/x", "lib/info/x"]) world.put(`work/${path}`, "mine");
      world.own();
      const run = await walled(user, world);
      const make = "mkdir objects refs; echo 'ref: refs/heads/main' >HEAD";
      const { end } = await run(`${make}; cd lib; ${make}; echo evil >config`, {
        ...WRITES,
        readOnly: [join(world.root, "config/x")],
      });
      expect(end.movedAway.map(({ path }) => path.slice(world.root.length + 1)).toSorted()).toEqual([
        "HEAD",
        "lib/HEAD",
      ]);
      expect(world.outside("cat config/x hooks/x lib/modules/x lib/info/x")).toBe("mine".repeat(4));
    });

    test("a link of the user stays, though a command has the index or a link lead through it, and so does what is read-only", async () => {
      const world = repository(user);
      world.outside(`git init -q packages/own; mkdir -p flows/node_modules; git init -q flows/node_modules/other; ln -s ../../packages flows/node_modules/dep
      ln -s src mine`);
      const run = await walled(user, world);
      const enter = ["dep/own", "other"].map(
        (path) => `git update-index --add --cacheinfo 160000,$S,flows/node_modules/${path}`,
      );
      const { end } = await run(`S=$(git rev-parse HEAD); ${enter.join("; ")}; ln -s mine later; touch src/agent`, {
        ...WRITES,
        readOnly: ["flows/node_modules", "later/agent"].map((path) => join(world.root, path)),
      });
      expect(end.movedAway).toMatchObject([{ path: join(world.root, "later") }]);
      expect(world.outside("readlink flows/node_modules/dep mine; git ls-files -s | grep -c ^16")).toBe(
        "../../packages\nsrc\n2\n",
      );
    });

    test("a workspace that is no repository gets none, and its own config and folders stay as they are", async () => {
      const world = wallWorld(user);
      world.put("work/sluice.config.ts", "mine");
      world.put("work/pkg/sluice.config.mjs", "mine");
      world.put("work/config/pipelines/x", "mine");
      world.put("work/kit/deep/y", "mine");
      world.own();
      const run = await walled(user, world);
      const plan = {
        ...WRITES,
        readOnly: ["config/pipelines", "later", "kit", "kit/deep/y"].map((path) => join(world.root, path)),
      };
      const { end } = await run(
        `git init -q; echo evil >sluice.config.ts; mv sluice.config.ts x; rm -f sluice.config.ts; echo evil >pkg/sluice.config.mjs
      echo evil >config/pipelines/x; mv config c; mv config/pipelines c; echo new >config/other; echo evil >later; mkdir -p .SLUICE; echo evil >kit/deep/z; :`,
        plan,
      );
      expect(end.movedAway.map(({ path }) => path.slice(world.root.length + 1)).toSorted()).toEqual([
        ".SLUICE",
        ".git",
        "later",
      ]);
      expect(
        world.outside("ls kit/deep; cat sluice.config.ts pkg/sluice.config.mjs config/pipelines/x config/other"),
      ).toBe("y\nminemineminenew\n");
    });

    test("in a work tree of its own, and in a submodule, git works and what it obeys is as closed", async () => {
      const world = repository(user);
      world.outside(`git worktree add -q ../tree -b tree; git init -q ../lib; git -C ../lib commit -q --allow-empty -m lib
      git -c protocol.file.allow=always submodule --quiet add ../lib sub; git commit -qm sub`);
      const run = await walled(user, world);
      const inTree = { ...WRITES, root: join(world.folder, "tree") };
      const closed = (git: string): string =>
        `echo evil >${git}/hooks/pre-commit; git config core.pager evil; mv ${git}/hooks ${git}/h; echo evil >.git; rm -f .git; mv .git x`;
      const common = join(world.root, ".git");
      const tree = await run(
        `echo t >t.txt; git add .; git commit -qm tree && git log --format=%s -1; ${closed(common)}; echo /x >${common}/worktrees/tree/commondir; ls ${world.root}/a.txt; :`,
        inTree,
      );
      expect(tree.text).toMatch(/^tree\n/);
      expect(tree.text).toContain(`cannot access '${world.root}/a.txt'`);
      expect(tree.end.movedAway).toEqual([]);
      const reading = await run("git log --format=%s -1; git commit --allow-empty -m no || echo refused", {
        root: inTree.root,
      });
      expect(reading.text).toMatch(/^tree\n(?:.*\n)*refused\n$/);

      const status = await run(
        `git submodule status | cut -c1,42-; git -C sub log --format=%s; ${closed(".git/modules/sub")}; :`,
        WRITES,
      );
      expect(status.text).toMatch(/^ {2}sub \(heads\/main\)\nlib\n/);
      expect(status.end.movedAway).toEqual([]);
      const inSub = { ...WRITES, root: join(world.root, "sub") };
      const sub = await run(
        `git commit -q --allow-empty -m inner && git log --format=%s -1; ${closed(join(common, "modules/sub"))}; :`,
        inSub,
      );
      expect(sub.text).toMatch(/^inner\n/);
      expect(sub.end.movedAway).toEqual([]);
      expect(
        world.outside(
          `git config --get-all core.pager || cat .git/hooks/pre-commit .git/modules/sub/hooks/pre-commit 2>&1; git -C ../tree status --short; git -C sub log --format=%s`,
        ),
      ).not.toContain("evil");
    });

    test("the index and the submodules of another work tree are closed, and git works in its own", async () => {
      const world = repository(user);
      world.outside(`git worktree add -q ../tree; git worktree add -q --no-checkout ../empty
      mkdir -p .git/worktrees/tree/modules/lib; echo mine >.git/worktrees/tree/modules/lib/config`);
      const seen = "sha256sum .git/index .git/worktrees/tree/index .git/worktrees/tree/modules/lib/config";
      const before = world.outside(seen);
      const run = await walled(user, world);
      const git = join(world.root, ".git");
      const write = (paths: readonly string[]): string => paths.map((path) => `echo evil >>${git}/${path}`).join("; ");
      const others = await run(
        `${write(["worktrees/tree/index", "worktrees/tree/modules/lib/config", "worktrees/empty/index"])}; mkdir ${git}/worktrees/empty/modules`,
        WRITES,
      );
      expect(others.end.movedAway.map(({ path }) => path.slice(git.length + 1)).toSorted()).toEqual([
        "worktrees/empty/index",
        "worktrees/empty/modules",
      ]);
      const inTree = { ...WRITES, root: join(world.folder, "tree") };
      const { end } = await run(`${write(["index", "worktrees/empty/index"])}; mv ${git}/index ${git}/i`, inTree);
      expect(end.movedAway).toMatchObject([{ path: join(git, "worktrees/empty/index") }]);
      expect(world.outside(seen)).toBe(before);
      const works = `set -e; echo b >b.txt; git add b.txt; git commit -qm own; echo c >>b.txt; git stash -q; git stash pop -q; git checkout -q b.txt
      git checkout -q -b side HEAD~1; git commit -q --allow-empty -m side; git rebase -q -; git status --short; git log --format=%s -2`;
      expect((await run(works, inTree)).text).toBe("side\nown\n");
      expect((await run(works.replaceAll("side", "second"), WRITES)).text).toBe("second\nown\n");
    });

    test("the work trees of a bare repository in the workspace are read-only", async () => {
      const world = wallWorld(user);
      world.outside(`git init -q; git add a.txt; git commit -qm first; git clone -q --bare . .bare; rm -rf .git
      echo 'gitdir: ./.bare' >.git; git worktree add -q tree main`);
      const run = await walled(user, world);
      const { text } = await run("git -C tree status --short; echo evil >>.bare/worktrees/tree/index; :", WRITES);
      expect(text).toMatch(/^.*Read-only file system\n$/);
    });

    test("in a folder of a repository its history can be read, and is never written", async () => {
      const world = repository(user);
      const run = await walled(user, world);
      const plan = { ...WRITES, root: join(world.root, "src") };
      const { text } = await run(
        "git log --format=%s; ls ..; git commit -qam x || echo refused; echo changed >code.ts",
        plan,
      );
      expect(text).toMatch(/^first\nsrc\n(?:.*\n)*refused\n$/);
      expect(world.outside("git status --short; cat src/code.ts")).toBe(" M src/code.ts\nchanged\n");
    });

    test.each([
      [
        "by an index that no longer names it",
        SUBMODULE,
        "git update-index --force-remove node_modules/lib",
        "node_modules/lib/.git/config",
      ],
      [
        "by a file that makes .git one of another repository",
        SUBMODULE,
        "echo . >.git/commondir",
        "node_modules/lib/.git/config",
      ],
      ["by what it consists of", "git init -q --bare lib", "mv lib/objects lib/o", "lib/config"],
    ])(
      "a repository that a command in flight hides %s is read-only to others, and stays",
      async (_, make, hide, file) => {
        const world = repository(user);
        world.outside(make);
        const run = await walled(user, world);
        const before = world.outside(`cat ${file}`);
        const first = run(
          `${hide}; touch made; until [ -e ended ]; do sleep 0.02; done; [ ! -e lib ] || mv lib/o lib/objects`,
          WRITES,
        );
        await expect.poll(() => existsSync(join(world.root, "made"))).toBe(true);
        const second = await run(`echo evil >>${file}`, WRITES);
        expect(second.text).toContain(`${file}: Read-only file system`);
        expect(second.end.movedAway).toEqual([]);
        world.put("work/ended");
        const moved = hide.includes("commondir") ? [{ path: join(world.root, ".git/commondir") }] : [];
        expect((await first).end.movedAway).toMatchObject(moved);
        expect(world.outside(`cat ${file}`)).toBe(before);
      },
    );

    test("a repository that a command pushes out of the search is read-only to others, and stays when it is found again", async () => {
      const world = repository(user);
      world.outside("git init -q vendor/far/lib; git init -q vendor/far/moved");
      const run = await walled(user, world);
      const many = await run("mkdir many; cd many; seq 20500 | xargs mkdir", WRITES);
      expect(many.end.movedAway).toEqual([]);
      const second = await run("echo evil >>vendor/far/lib/.git/config", WRITES);
      expect(second.text).toContain("Read-only file system");
      const enter = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),vendor/far/new";
      const third = await run(`mv vendor/far/moved vendor/far/new; ${enter}`, WRITES);
      expect(third.end.movedAway).toMatchObject([{ path: join(world.root, "vendor/far/new/.git") }]);
      // Without what this process has seen.
      const unaware = await walled(user, world);
      const { end } = await unaware("mkdir node_modules; mv many node_modules; git init -q vendor/far/made", WRITES);
      expect(end.movedAway).toMatchObject([{ path: join(world.root, "vendor/far/made/.git") }]);
    });

    test("files and folders are renamed and linked beside a submodule, which stays closed", async () => {
      const world = repository(user);
      world.put("work/packages/app/a.ts", "a");
      world.own();
      world.outside(`git init -q ../lib; git -C ../lib commit -q --allow-empty -m lib
      git -c protocol.file.allow=always submodule --quiet add ../lib packages/lib; git add .; git commit -qm sub`);
      const run = await walled(user, world);
      const honest = await run(
        "git mv packages/app/a.ts src/b.ts; mkdir packages/new; mv -T packages/new src/new; ln a.txt packages/a.txt; git status --short",
        WRITES,
      );
      expect(honest.text).toBe("R  packages/app/a.ts -> src/b.ts\n?? packages/a.txt\n");
      expect(honest.end.movedAway).toEqual([]);
      const other =
        "mkdir -p packages/lib; git init -q node_modules/evil; echo 'gitdir: ../../node_modules/evil/.git' >packages/lib/.git";
      const { text, end } = await run(`echo evil >packages/lib/.git; mv packages/lib away; ${other}`, WRITES);
      expect(text).toContain("Read-only file system");
      expect(end.movedAway.map(({ path }) => path.slice(world.root.length + 1)).toSorted()).toEqual([
        "away/.git",
        "packages/lib/.git",
      ]);
    });

    test("a submodule in a folder of a repository is read-only there, also where nothing is searched", async () => {
      const world = repository(user);
      world.outside(`git init -q src/node_modules/lib; git -C src/node_modules/lib commit -q --allow-empty -m lib
      git update-index --add --cacheinfo 160000,$(git -C src/node_modules/lib rev-parse HEAD),src/node_modules/lib`);
      const run = await walled(user, world);
      const { text } = await run("echo evil >>node_modules/lib/.git/config", {
        ...WRITES,
        root: join(world.root, "src"),
      });
      expect(text).toContain("Read-only file system");
    });

    test("hooks that git looks for from the top of the work tree or the home folder are closed, or moved away if there were none", async () => {
      const world = repository(user);
      world.outside(`git config core.hooksPath src/.husky/_; git config --add core.hooksPath '~/../work/src/hooks'; git config --add core.hooksPath src/none
      mkdir -p src/.husky/_ src/hooks`);
      const run = await walled(user, world);
      const line = "for at in .husky/pre-commit hooks/pre-commit none; do echo evil >$at; done";
      const { text, end } = await run(line, { ...WRITES, root: join(world.root, "src") });
      expect(text.match(/Read-only file system/g)).toHaveLength(2);
      expect(end.movedAway).toMatchObject([{ path: join(world.root, "src/none") }]);
    });

    test("a .git that leads to a repository elsewhere, as a command in flight can make it, is closed as a whole to all others", async () => {
      const world = repository(user);
      const run = await walled(user, world);
      const first = run("echo . >.git/commondir; touch made; until [ -e ended ]; do sleep 0.02; done", WRITES);
      await expect.poll(() => existsSync(join(world.root, "made"))).toBe(true);
      const second = await run(
        "echo evil >>.git/config; echo evil >.git/hooks/pre-commit; mv .git x; rm -r .git; echo written >b.txt; :",
        WRITES,
      );
      world.put("work/ended");
      expect((await first).end.movedAway).toMatchObject([{ path: join(world.root, ".git/commondir") }]);
      expect(second.end.movedAway).toEqual([]);
      expect(world.outside("cat b.txt; git log --format=%s; cat .git/config .git/hooks/pre-commit 2>&1 || :")).toMatch(
        /^written\nfirst\n(?!(?:.*\n)*evil)/,
      );
    });

    test("a .git that leads to another repository leads nowhere, and one that is a link is refused", async () => {
      const world = wallWorld(user);
      world.outside("mkdir ../other; cd ../other; git init -q; git commit -q --allow-empty -m secret");
      world.put("work/.git", `gitdir: ${world.folder}/other/.git\n`);
      world.own();
      const run = await walled(user, world);
      expect((await run("git log", WRITES)).text).not.toContain("secret");
      world.outside("rm .git");
      symlinkSync(join(world.folder, "other/.git"), join(world.root, ".git"));
      await expect(run("echo ran", WRITES)).rejects.toThrow(/sandbox_failed: .*link/);
      expect(readFileSync(join(world.folder, "other/.git/HEAD"), "utf8")).toContain("main");
    });
  },
);
