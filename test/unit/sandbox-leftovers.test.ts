import { chmodSync, chownSync, existsSync, lstatSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { done, type Json, pipeline } from "@sluice/core";
import { COMMANDS_FOLDER } from "@sluice/core/runtime";
import { sqliteHost } from "@sluice/sqlite";
import { moveAwayLeft } from "@sluice/stages/runtime";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createSandbox } from "../../packages/stages/src/sandbox/sandbox.ts";
import { putRecord } from "../support/left-records.ts";
import { completed, session, work } from "../support/run-kit.ts";
import {
  hasWall,
  startOwner,
  type Walled,
  type WallUser,
  type WallWorld,
  walled,
  wallUsers,
  wallWorld,
} from "../support/walls.ts";

const isThere = hasWall();
const OWN: WallUser = { name: "the one who runs the tests", uid: undefined };
/** Creates a package where the code of a run would find it. */
const PACKAGE = "mkdir -p flows/node_modules/kit; echo evil >flows/node_modules/kit/index.js";

/** A command that may write the workspace, in which a folder of packages is awaited. */
function writing({ root }: WallWorld, readOnly = ["flows/node_modules"]) {
  return { writes: [""], readOnly: readOnly.map((path) => join(root, path)) };
}

function movedIn({ root }: WallWorld, { end }: Walled): readonly string[] {
  return end.movedAway.map(({ path }) => path.slice(root.length + 1)).toSorted();
}

test("work of a program that is in the sandbox already is followed by the same, whether it fails or not", async () => {
  const { folder, root, env, plan, put } = wallWorld(OWN);
  const sandbox = createSandbox({
    mode: "off",
    root,
    absent: () => plan.absent,
    store: () => join(folder, "state/runs"),
  });
  const call = async (end: string): Promise<string> => {
    put("work/sluice.config.ts");
    return end === "fails" ? await Promise.reject(new Error(end)) : end;
  };
  const writes = { ...plan, writes: [""] };
  const config = join(root, "sluice.config.ts");
  expect(await sandbox.watched(env, writes, () => call("works"))).toMatchObject({
    end: "works",
    movedAway: [{ path: config }],
  });
  await expect(sandbox.watched(env, writes, () => call("fails"))).rejects.toThrow("fails");
  expect(existsSync(config)).toBe(false);
  expect(await sandbox.watched(env, plan, () => call("only reads"))).toEqual({ end: "only reads", movedAway: [] });
  rmSync(config);
  rmSync(join(folder, "state/moved-away"), { recursive: true });
  put("state/moved-away");
  expect(await sandbox.watched(env, writes, () => call("has no folder"))).toMatchObject({
    movedAway: [{ path: config, to: expect.stringContaining(join(root, "moved-away-")) }],
  });
});

test("without a store on disk it is moved to the folder for temporary files, and not beside what is hidden", async () => {
  const { root, env, plan, put } = wallWorld(OWN);
  const sandbox = createSandbox({ mode: "off", root, absent: () => plan.absent });
  const work = () => Promise.resolve(put("work/sluice.config.ts"));
  const { movedAway } = await sandbox.watched(env, { ...plan, writes: [""] }, work);
  expect(movedAway).toMatchObject([{ path: join(root, "sluice.config.ts") }]);
  for (const { to } of movedAway) {
    onTestFinished(() => rmSync(dirname(to), { recursive: true }));
    expect(dirname(dirname(to))).toBe(tmpdir());
  }
});

test("a folder that holds more configs than a call may have arguments is searched", async () => {
  const { folder, root, env, plan, put, outside } = wallWorld(OWN);
  outside("mkdir many; cd many; seq -f sluice.config.%g 150000 | xargs touch");
  const store = () => join(folder, "state/runs");
  const sandbox = createSandbox({ mode: "off", root, absent: () => plan.absent, store });
  const work = () => Promise.resolve(put("work/pkg/sluice.config.ts"));
  const path = join(root, "pkg/sluice.config.ts");
  expect(await sandbox.watched(env, { ...plan, writes: [""] }, work)).toMatchObject({ movedAway: [{ path }] });
});

test("a record names no file outside of its workspace, and no other file is taken for one", async () => {
  const world = wallWorld(OWN);
  const outside = world.put("home/notes");
  const inside = world.put("work/notes");
  const config = world.put("home/sluice.config.ts");
  const { folder, root } = world;
  const tops = [folder, `${root}/../home`];
  putRecord(join(folder, "state/runs"), { root, tops, paths: [outside, inside, `${root}/../home/notes`] });
  const other = world.put(`state/runs/${COMMANDS_FOLDER}/notes`);
  expect(await moveAwayLeft(join(world.folder, "state/runs"), world.root)).toMatchObject({ length: 1 });
  expect([outside, config, inside, other].map((path) => existsSync(path))).toEqual([true, true, false, true]);
});

test("a run begins after what a command of a killed process left was moved away, and its session says so", async () => {
  const world = wallWorld(OWN);
  const left = world.put("work/agent.cjs");
  putRecord(join(world.folder, "state/store"), { root: world.root, tops: [], paths: [left] });
  const host = sqliteHost(join(world.folder, "state/store"));
  onTestFinished(() => host.close());
  const faults: string[] = [];
  const begin = work({ act: () => Promise.resolve(completed(existsSync(left))) });
  const stages = { begin };
  const next = { begin: ({ output }: { readonly output: Json }) => done(output) };
  const one = pipeline({ id: "one", input: z.object({}), stages, initial: "begin", next });
  const runs = session({ cwd: world.root, host, onFault: ({ message }) => void faults.push(message) });
  expect(await runs.start(one, {})).toMatchObject({ output: false });
  expect(faults).toEqual([expect.stringContaining(`killed left ${left}; it was moved to `)]);
});

describe.skipIf(!isThere).each(wallUsers())(
  "what a command leaves (skipped where no wall can be built), as $name",
  (user) => {
    test("it is moved away beside a folder that is too deep to be named, and later commands run", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const deep = "for at in $(seq 30); do mkdir $name; cd $name; done";
      const left = await run(
        `${PACKAGE}; name=$(printf 'd%.0s' $(seq 240)); (${deep}); git init -q own`,
        writing(world),
      );
      expect(movedIn(world, left)).toEqual(["flows/node_modules", "own/.git"]);
      expect(movedIn(world, await run("git init -q own", writing(world)))).toEqual(["own/.git"]);
      world.outside("rm -rf d*");
    });

    test("it is moved away out of folders that the command closed, and those are opened for their owner", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const nested = "mkdir -p listed/below hidden; git init -q listed/below; git init -q hidden/own";
      const left = await run(`${PACKAGE}; ${nested}; chmod 444 listed; chmod 000 hidden`, writing(world));
      expect(movedIn(world, left)).toEqual(["flows/node_modules", "hidden/own/.git", "listed/below/.git"]);
      const modes = ["listed", "hidden"].map((name) => lstatSync(join(world.root, name)).mode & 0o777);
      expect(modes).toEqual([0o744, 0o700]);
    });

    test("a folder that takes the place of one that was changed at the same time is searched", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const [there, other] = ["pkg/down", "node_modules/pkg/down"];
      const areEqual = `[ -e ${there} -a "$(stat -c %z ${there})" = "$(stat -c %z ${other})" ]`;
      const make = `rm -rf pkg node_modules; mkdir -p ${there} ${other}; touch ${other}/.git; chmod 755 ${there} ${other}`;
      await run(`until ${areEqual}; do ${make}; done`, writing(world));
      // Until then, it is read again in any case.
      await expect.poll(() => Date.now() - lstatSync(join(world.root, there)).ctimeMs).toBeGreaterThan(100);
      await run("true", writing(world));
      const left = await run("mv pkg node_modules/was; mv node_modules/pkg pkg", writing(world));
      expect(movedIn(world, left)).toEqual([`${there}/.git`]);
    });

    test("a folder that the user closed stays closed to commands that may write only elsewhere", async () => {
      const world = wallWorld(user);
      world.outside("mkdir closed; chmod 000 closed");
      const run = await walled(user, world);
      const { end } = await run("mkdir src/closed; git init -q src/closed; chmod 000 src/closed", { writes: ["src"] });
      expect(end.movedAway).toMatchObject([{ path: join(world.root, "src/closed/.git") }]);
      expect(lstatSync(join(world.root, "closed")).mode & 0o777).toBe(0);
    });

    test("it is moved away although its folders may not be changed, and the folder that held it keeps its mode", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const name = `sluice.config.${"é".repeat(120)}`;
      const left = await run(`${PACKAGE}; touch ${name}; chmod 555 flows/node_modules/kit flows/node_modules flows`, {
        ...writing(world),
      });
      expect(movedIn(world, left)).toEqual(["flows/node_modules", name]);
      expect(lstatSync(join(world.root, "flows")).mode & 0o777).toBe(0o555);
    });

    test.each(["state/store", "/dev/shm"])(
      "a folder or link whose name is no text is moved away as a whole, and one of the user stays (store in %s)",
      async (place) => {
        const world = wallWorld(user);
        const run = await walled(user, world);
        const elsewhere = mkdtempSync(join(place.startsWith("/") ? place : world.folder, "sluice-wall-"));
        onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }));
        if (user.uid !== undefined) chownSync(elsewhere, user.uid, user.uid);
        const plan = { ...writing(world), absent: [join(elsewhere, "store")] };
        const name = "$'lib\\xff'";
        world.outside(`mkdir ${name}; echo mine >${name}/file; mkdir deep`);
        const left = await run(
          `cd deep; mkdir ${name}; git init -q ${name}; ln -s . $'\\xfe'; touch $'\\xfd' $'\\uFFFD'; mkdir $'\\uFFFDe'; chmod 555 ${name} .`,
          plan,
        );
        expect(movedIn(world, left)).toEqual(["deep/lib\uFFFD", "deep/\uFFFD"]);
        expect(world.outside(`cat ${name}/file; ls -A deep | wc -l`)).toMatch(/^mine\n/);
        expect(lstatSync(join(world.root, "deep")).mode & 0o777).toBe(0o555);
        for (const { to } of left.end.movedAway) expect(lstatSync(to).isFile()).toBe(false);
        expect(movedIn(world, await run("true", plan))).toEqual([]);
      },
    );

    test("what takes the place on the disk of a folder of the user whose name is no text is moved away", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const [mine, other] = ["$'caf\\xe9'", "$'caf\\xe8'"];
      world.outside(`mkdir ${mine}`);
      const take = `place=$(stat -c %i ${mine}); rmdir ${mine}; for at in $(seq 500); do touch pkg/$at; [ $(stat -c %i pkg/$at) = $place ] && break; done`;
      expect(movedIn(world, await run(`mkdir pkg; ${take}; mv pkg/$at pkg/.git`, writing(world)))).toEqual([
        "pkg/.git",
      ]);
      world.outside(`mkdir ${mine}`);
      const left = await run(`rmdir ${mine}; mkdir ${other}`, writing(world));
      expect(movedIn(world, left)).toEqual(["caf\uFFFD"]);
    });

    test("it is moved away behind a link of the user, if that is the folder that the command may write", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      world.outside("mkdir flows; ln -s flows lib");
      const made = "mkdir -p lib/node_modules/kit lib/own; git init -q lib/own";
      const left = await run(made, { ...writing(world), writes: ["lib"] });
      expect(movedIn(world, left)).toEqual(["flows/node_modules", "flows/own/.git"]);
    });

    test("it is moved away where a link of the user leads that led nowhere, and the link stays", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      world.outside(
        "git init -q; rm -rf .git/hooks; ln -s ../.githooks .git/hooks; mkdir flows; ln -s ../packages flows/node_modules; ln -s src code",
      );
      const make =
        "mkdir .githooks packages; echo evil >.githooks/pre-commit; echo evil >packages/kit; echo evil >src/agent";
      const left = await run(make, writing(world, ["flows/node_modules", "code/agent"]));
      expect(movedIn(world, left)).toEqual([".githooks", "packages", "src/agent"]);
      expect(world.outside("readlink .git/hooks flows/node_modules code")).toBe("../.githooks\n../packages\nsrc\n");
    });

    test("what its user makes meanwhile, where it may not write, stays", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      world.outside("mkdir -p src");
      const command = run("touch src/made; until [ -e src/go ]; do sleep 0.02; done", { writes: ["src"] });
      await expect.poll(() => existsSync(join(world.root, "src/made"))).toBe(true);
      world.put("work/other/sluice.config.ts");
      world.put("work/src/go");
      expect(movedIn(world, await command)).toEqual([]);
    });

    test("hooks of a bare repository, and a submodule where nothing is searched, are read-only", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const commit = "git -C node_modules/lib -c user.name=a -c user.email=a@b commit -q --allow-empty -m one";
      const entry = "160000,$(git -C node_modules/lib rev-parse HEAD),node_modules/lib";
      world.outside(
        `git init -q .; git init -q --bare own; mkdir -p own/hooks; git init -q node_modules/lib; ${commit}; git update-index --add --cacheinfo ${entry}`,
      );
      for (const file of ["own/hooks/pre-commit", "node_modules/lib/.git/config"])
        expect([file, (await run(`echo evil >>${file}`, writing(world))).text]).toEqual([
          file,
          expect.stringContaining("Read-only file system"),
        ]);
    });

    test("on another disk than the store it is renamed where it is, whatever it contains", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const elsewhere = mkdtempSync("/dev/shm/sluice-wall-");
      onTestFinished(() => rmSync(elsewhere, { recursive: true }));
      if (user.uid !== undefined) chownSync(elsewhere, user.uid, user.uid);
      const plan = { ...writing(world, ["a/deep", "b/closed"]), absent: [join(elsewhere, "store")] };
      const deep = "mkdir -p a/deep; cd a/deep; for at in $(seq 30); do mkdir $name; cd $name; done";
      const closed =
        "mkdir -p b/closed/in; mkfifo b/closed/pipe; echo evil >b/closed/in/file; chmod 000 b/closed/in/file b/closed/in b/closed";
      const left = await run(`touch sluice.config.ts; name=$(printf 'd%.0s' $(seq 240)); (${deep}); ${closed}`, plan);
      expect(movedIn(world, left)).toEqual(["a/deep", "b/closed", "sluice.config.ts"]);
      for (const { path, to } of left.end.movedAway) {
        expect(existsSync(path)).toBe(false);
        expect(to.slice(dirname(path).length)).toMatch(/^\/moved-away-[^/]+\.moved$/);
        expect(existsSync(to)).toBe(true);
      }
      expect(movedIn(world, await run("echo ran", plan))).toEqual([]);
      world.outside("rm -rf a b");
    });

    test("it is moved to where no command reaches it, if the store is in a folder of the workspace", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const plan = { ...writing(world), absent: [join(world.root, "data/store")] };
      world.outside("mkdir -p data/store");
      const link = `ln -s ${world.home} data/moved-away`;
      const left = await run(`${link}; ${PACKAGE}`, plan);
      expect(movedIn(world, left)).toEqual(["flows/node_modules"]);
      for (const { to } of left.end.movedAway) {
        expect(realpathSync(to).startsWith(realpathSync(tmpdir()))).toBe(true);
        onTestFinished(() => rmSync(dirname(to), { recursive: true, force: true }));
      }
      expect(world.outside(`ls -A ${world.home}`)).not.toContain("moved");
    });

    test("it is renamed where it is, if commands reach the store's folder and the one for temporary files", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world, { env: { TMPDIR: join(world.root, "tmp") } });
      const plan = { ...writing(world), absent: [join(world.root, "data/store")] };
      world.outside("mkdir -p data/store tmp");
      const left = await run(`rmdir tmp; ln -s ${world.home} tmp; ${PACKAGE}`, plan);
      expect(movedIn(world, left)).toEqual(["flows/node_modules"]);
      for (const { to } of left.end.movedAway) expect(dirname(to)).toBe(join(world.root, "flows"));
      expect(world.outside(`ls -A ${world.home}`)).not.toContain("moved");
    });

    test.skipIf(user.uid === undefined)(
      "what cannot be moved keeps nothing else from it, and no command runs until it is gone",
      async () => {
        const world = wallWorld(user);
        const run = await walled(user, world);
        const folder = dirname(world.put("work/b/there"));
        chownSync(folder, 0, 0);
        chmodSync(folder, 0o777);
        const plan = writing(world, ["a/other", "b/closed"]);
        const first = run(
          "mkdir a; echo evil >a/other; echo evil >b/closed; touch made; until [ -e go ]; do sleep 0.02; done",
          plan,
        );
        const message = /sandbox_failed: A command left .*work\/b\/closed \(EACCES/;
        const refused = expect(first).rejects.toThrow(message);
        await expect.poll(() => existsSync(join(world.root, "made"))).toBe(true);
        // Only its owner, another user, may change it from now on.
        chmodSync(folder, 0o755);
        world.put("work/go");
        await refused;
        expect(readdirSync(join(world.root, "a"))).toEqual([]);
        await expect(run("echo ran", plan)).rejects.toThrow(message);
        await expect(run("echo ran")).rejects.toThrow(message);
        rmSync(join(folder, "closed"));
        expect((await run("echo ran", plan)).text).toBe("ran\n");
      },
    );

    test.each(["flows/node_modules", "own/.git"])(
      "%s, which a command made and removed itself, is moved away if another one that began meanwhile makes it again",
      async (made) => {
        const world = wallWorld(user);
        const run = await walled(user, world);
        const until = (what: string): string => `until [ ${what} ]; do sleep 0.02; done`;
        const make = `mkdir -p ${made}; echo evil >${made}/HEAD`;
        const first = run(`${make}; touch made; ${until("-e begun")}; rm -r ${made}; touch removed`, writing(world));
        await expect.poll(() => existsSync(join(world.root, "made"))).toBe(true);
        const second = run(`touch begun; ${until("-e ended")}; ${make}`, writing(world));
        expect(movedIn(world, await first)).toEqual([]);
        world.put("work/ended");
        expect(movedIn(world, await second)).toEqual([made]);
      },
    );

    test("what one command leaves is moved away again if another one, which began while it was there, leaves it again", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const until = (what: string): string => `until [ ${what} ]; do sleep 0.02; done`;
      const own = "git init -q own";
      const first = run(`${PACKAGE}; ${own}; touch made; ${until("-e begun")}`, writing(world));
      await expect.poll(() => existsSync(join(world.root, "made"))).toBe(true);
      const second = run(
        `touch begun; ${until("! -e flows/node_modules -a ! -e own/.git")}; ${PACKAGE}; ${own}`,
        writing(world),
      );
      expect(movedIn(world, await first)).toEqual(["flows/node_modules", "own/.git"]);
      expect(movedIn(world, await second)).toEqual(["flows/node_modules", "own/.git"]);
    });

    test("what a command of a killed process leaves is moved away by the next process, and nothing of the user's", async () => {
      const world = wallWorld(user);
      world.put("work/sluice.config.ts", "mine");
      world.put("work/pkg/sluice.config.ts", "mine");
      world.own();
      world.outside("git init -q; git init -q vendor/own");
      const [store = ""] = world.plan.absent;
      const owner = await startOwner(user);
      const plan = { ...world.plan, ...writing(world) };
      const named =
        "git init -q node_modules/x; git -C node_modules/x commit -q --allow-empty -m x; S=$(git -C node_modules/x rev-parse HEAD); git update-index --add --cacheinfo 160000,$S,node_modules/x";
      const line = `${PACKAGE}; git init -q nested; ${named}; echo >.git/commondir; chmod 000 flows; touch made; until [ -e never ]; do sleep 0.1; done`;
      const call = owner.call({ line, plan, env: world.env });
      await expect.poll(() => existsSync(join(world.root, "made"))).toBe(true);
      // Not while that process lives.
      expect(await moveAwayLeft(store, world.root)).toEqual([]);
      owner.child.kill("SIGKILL");
      expect(await call).toMatchObject({ error: { code: "exit" } });
      // As an editor saves a file.
      world.outside("cp sluice.config.ts draft; mv draft sluice.config.ts");
      expect(await moveAwayLeft(store, world.folder)).toEqual([]);
      const messages = await moveAwayLeft(store, world.root);
      expect(messages.map((text) => /killed left (\S+);/.exec(text)?.[1] ?? "").toSorted()).toEqual(
        [".git/commondir", "flows/node_modules", "nested/.git", "node_modules/x/.git"].map((path) =>
          join(world.root, path),
        ),
      );
      expect(
        world.outside("cat sluice.config.ts pkg/sluice.config.ts; git status --short vendor; ls vendor/own/.git/HEAD"),
      ).toMatch(/^minemine/);
      expect(readdirSync(join(store, COMMANDS_FOLDER))).toEqual([]);
      expect(await moveAwayLeft(store, world.root)).toEqual([]);
    });

    test("configs that a command of a killed process put elsewhere with their folder, or in their place, are moved away", async () => {
      const world = wallWorld(user);
      world.put("work/pkg/sluice.config.ts", "mine");
      world.own();
      const [store = ""] = world.plan.absent;
      const owner = await startOwner(user);
      const line =
        "mv pkg was; mkdir pkg; echo evil >pkg/sluice.config.ts; touch made; until [ -e never ]; do sleep 0.1; done";
      const call = owner.call({ line, plan: { ...world.plan, ...writing(world) }, env: world.env });
      await expect.poll(() => existsSync(join(world.root, "made"))).toBe(true);
      owner.child.kill("SIGKILL");
      await call;
      expect(await moveAwayLeft(store, world.root)).toEqual([
        expect.stringContaining(`killed left ${world.root}/pkg/sluice.config.ts;`),
        expect.stringContaining(`killed left ${world.root}/was/sluice.config.ts;`),
      ]);
    });

    test("a link that a command of a killed process made on the way to what is protected is moved away", async () => {
      const world = wallWorld(user);
      const [store = ""] = world.plan.absent;
      const owner = await startOwner(user);
      const line =
        "mkdir other; echo evil >other/agent; ln -s other tools; touch made; until [ -e never ]; do sleep 0.1; done";
      const call = owner.call({ line, plan: { ...world.plan, ...writing(world, ["tools/agent"]) }, env: world.env });
      await expect.poll(() => existsSync(join(world.root, "made"))).toBe(true);
      owner.child.kill("SIGKILL");
      await call;
      expect(await moveAwayLeft(store, world.root)).toEqual([
        expect.stringContaining(`killed left ${world.root}/tools;`),
      ]);
    });

    test("a command that ended leaves no record", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      await run(PACKAGE, writing(world));
      expect(readdirSync(join(world.plan.absent[0] ?? "", COMMANDS_FOLDER))).toEqual([]);
    });

    test("what is protected or hidden stays so although its folders were closed before the command", async () => {
      const world = wallWorld(user);
      world.put("work/data/store/journal", "planted");
      world.put("work/flows/node_modules/kit/index.js", "mine");
      world.put("work/tools/hooks/pre-commit", "mine");
      world.own();
      world.outside(
        "git init -q; git config core.hooksPath tools/hooks; mkdir -p .git/worktrees/w; echo mine >.git/worktrees/w/commondir",
      );
      const seen =
        "cat .git/config .git/worktrees/w/commondir tools/hooks/pre-commit flows/node_modules/kit/index.js data/store/journal";
      const before = world.outside(seen);
      const closed = ".git/worktrees .git data flows tools";
      const run = await walled(user, world);
      const plan = { ...writing(world), absent: [join(world.root, "data/store")] };
      const opens = `chmod 755 .git; chmod 755 ${closed}`;
      for (const line of [
        `${opens}; git config core.pager evil; echo evil >.git/worktrees/w/commondir; echo evil >tools/hooks/pre-commit; echo evil >flows/node_modules/kit/index.js; cat data/store/journal; mv data d; echo evil >data/store/journal; :`,
        `${opens}; echo evil >>.git/config; chmod 000 ${closed} .`,
      ]) {
        world.outside(`chmod 000 ${closed}`);
        const { text, end } = await run(line, plan);
        expect(text).not.toContain("planted");
        expect(end.movedAway).toEqual([]);
      }
      expect(world.outside(seen)).toBe(before);
    });

    // No folder is closed to the superuser.
    test.skipIf(user.uid === undefined && process.getuid?.() === 0)(
      "a hidden path stays hidden from a command that only reads, although its folder was closed before",
      async () => {
        const world = wallWorld(user);
        world.put("work/data/store/journal", "planted");
        world.own();
        world.outside("chmod 000 data");
        const run = await walled(user, world);
        // Another command could open the folder meanwhile.
        const { text } = await run("ls -A data/store; cat data/store/*", { absent: [join(world.root, "data/store")] });
        expect(text).not.toContain("planted");
        expect(lstatSync(join(world.root, "data")).mode & 0o777).toBe(0o700);
      },
    );

    test("what a command leaves in a workspace that it closes is moved away", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const left = await run(`${PACKAGE}; git init -q own; chmod 000 flows/node_modules flows .`, writing(world));
      expect(movedIn(world, left)).toEqual(["flows/node_modules", "own/.git"]);
    });

    test.skipIf(user.uid === undefined)(
      "nothing runs if a folder of another user hides whether what is protected is there",
      async () => {
        const world = wallWorld(user);
        const run = await walled(user, world);
        world.outside("mkdir flows");
        chownSync(join(world.root, "flows"), 0, 0);
        chmodSync(join(world.root, "flows"), 0o700);
        const message =
          /sandbox_failed: The sandbox cannot protect what is in .*work\/flows, which cannot be examined \(EACCES\)/;
        await expect(run("echo ran", writing(world))).rejects.toThrow(message);
      },
    );

    test.skipIf(process.getuid?.() !== 0)("a folder of another user that cannot be read stays as it is", async () => {
      const world = wallWorld(user);
      const theirs = join(world.root, "theirs");
      world.outside("mkdir theirs; chmod 300 theirs");
      chownSync(theirs, user.uid === undefined ? 65_534 : 0, 0);
      const run = await walled(user, world);
      expect(movedIn(world, await run(PACKAGE, writing(world)))).toEqual(["flows/node_modules"]);
      expect(lstatSync(theirs).mode & 0o777).toBe(0o300);
    });
  },
);
