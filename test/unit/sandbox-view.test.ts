import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { hasWall, walled, wallUsers, wallWorld } from "../support/walls.ts";

const isThere = hasWall();

describe.skipIf(!isThere).each(wallUsers())("behind the wall (skipped where none can be built), as $name", (user) => {
  test("a stage that reads changes nothing: not the workspace, not the system, and what it writes elsewhere is gone", async () => {
    const world = wallWorld(user);
    const run = await walled(user, world);
    const places = [world.root, join(world.root, "src"), "/usr/bin", "/etc", "/opt", "/", "/dev", "/proc/sys/vm"];
    const tries = places.map((place) => `( : >"${place}/planted" ) 2>/dev/null && echo "wrote ${place}"`);
    const { text, end } = await run(`${tries.join("\n")}
      echo changed >>a.txt; rm -f a.txt; chmod 777 a.txt; mv src other; ln a.txt b.txt
      v=$(cat /proc/sys/vm/swappiness) && echo "$v" >/proc/sys/vm/swappiness && echo "wrote sysctl"
      echo x >/tmp/planted && echo x >~/planted && echo x >/var/tmp/planted && echo x >/dev/shm/planted && echo temporary`);
    expect(text.match(/^wrote .*$/gm)).toBeNull();
    expect(text).toContain("temporary");
    expect(end).toMatchObject({ by: "itself", movedAway: [] });
    expect(world.outside("cat a.txt; ls -a; ls -a ~")).toBe("a\n.\n..\n.sluice\na.txt\nsrc\n.\n..\n.gitconfig\n.ssh\n");
    for (const folder of ["/tmp", "/var/tmp", "/dev/shm"]) expect(existsSync(join(folder, "planted"))).toBe(false);
  });

  test("of the rest of the disk there are the system's folders without its keys, and nothing of the home folder but programs", async () => {
    const world = wallWorld(user);
    world.put("beside/file");
    const elsewhere = mkdtempSync("/var/tmp/sluice-wall-");
    onTestFinished(() => rmSync(elsewhere, { recursive: true }));
    const run = await walled(user, world);
    const { text } = await run(`
      for place in ${world.folder}/beside ${world.folder}/state ~/.ssh ${elsewhere} /root/.bashrc /home/* /mnt /srv /boot /sys/kernel /run/* /var/lib; do
        [ -e "$place" ] && echo "sees $place"; done
      for file in /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/ssh/ssh_host_*_key; do [ -r "$file" ] && [ -s "$file" ] && echo "reads $file"; done
      ls -A /etc/ssl/private 2>/dev/null; find /etc ! -type l ! -perm -o=r -type f -size +0 -readable 2>/dev/null
      cat /etc/hostname >/dev/null && ls /usr/bin/env && cat a.txt`);
    expect(text.split("\n").filter((line) => !line.startsWith("/var/run"))).toEqual(["/usr/bin/env", "a", ""]);
  });

  test("the run store is absent, in the workspace and elsewhere, and cannot be made in either", async () => {
    const world = wallWorld(user);
    world.put("work/.sluice/pipelines/mine.ts", "planted pipeline");
    world.own();
    const run = await walled(user, world);
    for (const writes of [[], [""]]) {
      const { text, end } = await run(
        `ls -A .sluice; cat .sluice/pipelines/* .sluice/runs/journal ${world.folder}/state/runs/journal; mkdir -p .sluice/runs; echo evil >.sluice/pipelines/mine.ts; mv .sluice s; rm -rf .sluice; :`,
        { writes },
      );
      expect(text).not.toContain("planted");
      expect(end.movedAway).toEqual([]);
    }
    expect(world.outside("cat .sluice/*/*")).toBe("planted pipelineplanted store");
  });

  test("a store in a folder that is bound is absent too, and a file that is to be absent is empty", async () => {
    const world = wallWorld(user);
    const absent = [world.put("work/keep/store/journal", "planted"), world.put("work/token", "planted")];
    world.own();
    const run = await walled(user, world);
    const plan = { absent: [join(world.root, "keep/store"), absent[1] ?? ""], writes: [""] };
    const { text } = await run(
      "cat keep/store/* token; echo x >keep/store/y; echo x >token; mv keep k; echo end",
      plan,
    );
    expect(text).not.toContain("planted");
    expect(text).toContain("end");
    expect(world.outside("cat keep/store/journal token")).toBe("plantedplanted");
  });

  test("only what a stage reads of the workspace is there, and only what it writes can be written", async () => {
    const world = wallWorld(user);
    world.put("work/docs/page", "page\n");
    world.put("work/dist/old", "old\n");
    symlinkSync("/etc", join(world.root, "out"));
    world.own();
    const run = await walled(user, world);
    const scoped = await run("cat docs/page; ls -A; cat a.txt src/code.ts; echo x >new; echo x >docs/x", {
      reads: ["docs", "out", "missing"],
    });
    expect(scoped.text).toMatch(/^page\ndocs\n(.*(No such file|Read-only).*\n)+$/);
    const nothing = await run("pwd; ls -A; echo x >new", { reads: [] });
    expect(nothing.text).toMatch(new RegExp(`^${world.root}\n.*Read-only`));
    const writing = await run("echo new >dist/new; rm dist/old; echo x >a.txt; echo x >src/x; cat a.txt", {
      writes: ["dist", "out"],
    });
    expect(writing.text).toMatch(/^(.*Read-only.*\n){2}a\n$/);
    expect(world.outside("ls dist; cat a.txt")).toBe("new\na\n");
  });

  test("a scratch folder can be filled and is gone afterwards, with the folders that were made for it", async () => {
    const world = wallWorld(user);
    world.put("work/node_modules/kept", "kept");
    world.own();
    symlinkSync("/var/tmp", join(world.root, "away"));
    const run = await walled(user, world);
    const plan = { scratch: ["node_modules/.vite-temp", "build/cache/deep", "src", "away/x", "../beside"] };
    const { text } = await run(
      "for d in node_modules/.vite-temp build/cache/deep src; do echo x >$d/x && ls $d; done; ls",
      plan,
    );
    expect(text).toBe("x\nx\nx\na.txt\naway\nbuild\nnode_modules\nsrc\n");
    expect(world.outside("ls -A . node_modules src ..")).not.toMatch(/vite|build|beside|^x$/m);
    const both = await Promise.all(
      [1, 2, 3].map(() => run("echo x >build/cache/deep/x && sleep 0.05 && ls build/cache/deep", plan)),
    );
    expect(both.map((one) => one.text)).toEqual(["x\n", "x\n", "x\n"]);
    expect(existsSync(join(world.root, "build"))).toBe(false);
  });

  test("folders in memory have a size", async () => {
    const world = wallWorld(user);
    const run = await walled(user, world);
    const { text } = await run(
      "df -B1M --output=size,target /tmp /var/tmp ~ /dev/shm s | tail -n +2; df -B1M --output=size / /dev .sluice | tail -n +2 | wc -l",
      {
        scratch: ["s"],
      },
    );
    const sizes = text
      .trim()
      .split("\n")
      .map((line) => Number(line.trim().split(/\s+/)[0]));
    expect(sizes.slice(0, 5).every((size) => size > 0 && size <= 1024)).toBe(true);
  });

  test("what links of the workspace lead to is not shown, whatever they are called and PATH says", async () => {
    const world = wallWorld(user);
    world.put("elsewhere/key", "planted");
    world.put("work/node_modules/.keep", "");
    world.put("work/tools/.keep", "");
    symlinkSync(join(world.home, ".ssh"), join(world.root, "node_modules/evil"));
    symlinkSync(join(world.folder, "elsewhere"), join(world.root, "node_modules/other"));
    symlinkSync(join(world.folder, "elsewhere"), join(world.root, "node_modules/.bin"));
    symlinkSync(join(world.home, ".ssh"), join(world.root, "tools/bin"));
    world.own();
    const run = await walled(user, world);
    const own = ["node_modules/.bin", "tools/bin"].map((name) => join(world.root, name));
    const env = { PATH: [...own, process.env.PATH].join(":") };
    const { text } = await run(`cat node_modules/evil/id node_modules/other/key ~/.ssh/id tools/bin/id; :`, {}, env);
    expect(text).not.toContain("planted");
  });

  test("programs below the home folder and those that PATH names elsewhere run, and their secrets are not there", async () => {
    const world = wallWorld(user);
    const script = (says: string): string => `#!/bin/sh\necho ${says}\n`;
    world.put("home/.pyenv/versions/3/bin/python9", script("python9"), 0o755);
    world.put("home/.pyenv/shims/python9", `#!/bin/sh\nexec "$HOME/.pyenv/versions/3/bin/python9"\n`, 0o755);
    world.put("home/.nvm/versions/node/v1/bin/node1", script("node1"), 0o755);
    world.put("home/.cargo/bin/crate", script("crate"), 0o755);
    world.put("home/.cargo/credentials.toml", "planted");
    world.put("home/.local/share/pnpm/store/v10/links/dep/node_modules/dep/index.js", "module.exports = 'stored'");
    world.put("home/.local/share/keyrings/login", "planted");
    world.put("home/.local/share/uv/tools/ruff/bin/ruff", script("ruff"), 0o755);
    world.put("home/.config/git/credentials", "planted");
    world.put("home/.config/git/ignore", "*.log\n");
    world.put("home/.npmrc", "planted");
    world.put("tools/kit/bin/kit", `#!/bin/sh\ncat "$(dirname "$0")/../lib/kit"\n`, 0o755);
    world.put("tools/kit/lib/kit", "kit\n");
    world.put("project/bin/run", script("run"), 0o755);
    world.put("project/.env", "planted");
    world.put("project/lib/x", "planted");
    mkdirSync(join(world.home, ".local/bin"), { recursive: true });
    symlinkSync("../share/uv/tools/ruff/bin/ruff", join(world.home, ".local/bin/ruff"));
    mkdirSync(join(world.root, "node_modules"));
    symlinkSync(
      join(world.home, ".local/share/pnpm/store/v10/links/dep/node_modules/dep"),
      join(world.root, "node_modules/dep"),
    );
    world.own();
    const run = await walled(user, world);
    const home = [".pyenv/shims", ".nvm/versions/node/v1/bin", ".cargo/bin", ".local/bin", "."].map((name) =>
      join(world.home, name),
    );
    const elsewhere = ["tools/kit/bin", "project/bin"].map((name) => join(world.folder, name));
    const env = { PATH: [...home, ...elsewhere, world.folder, "/", process.env.PATH].join(":") };
    const { text } = await run(
      `python9; node1; crate; ruff; kit; run; node -p 'require("dep")'; git config user.name
      grep -rl planted ~ ${world.folder}; touch ~/.pyenv/x ~/.cargo/bin/x ${world.folder}/tools/kit/x ~/.gitconfig; cat ~/.config/git/ignore`,
      {},
      env,
    );
    expect(text.split("\n").filter((line) => !/Read-only|cannot touch/.test(line))).toEqual([
      "python9",
      "node1",
      "crate",
      "ruff",
      "kit",
      "run",
      "stored",
      "A",
      "*.log",
      "",
    ]);
    expect(text.match(/cannot touch/g)).toHaveLength(4);
  });

  test("a user's settings of git that look as if they held a key stay away", async () => {
    const world = wallWorld(user);
    world.put("home/.gitconfig", '[url "https://me:planted@example.com/"]\n\tinsteadOf = https://example.com/\n');
    world.own();
    expect((await (await walled(user, world))("cat ~/.gitconfig")).text).toContain("No such file");
  });

  test("a home folder that is a link, in the workspace, or the workspace itself, hides what is in it and nothing else", async () => {
    const world = wallWorld(user);
    world.put("work/home/.ssh/id", "planted key");
    symlinkSync(world.home, join(world.folder, "linked"));
    world.own();
    const run = await walled(user, world);
    const line = "ls -A ~; cat ~/.ssh/id; cat a.txt";
    const linked = await run(`git config user.name; ${line}`, {}, { HOME: join(world.folder, "linked") });
    expect(linked.text).toMatch(/^A\n\.gitconfig\ncat: .*\na\n$/);
    expect((await run(line, {}, { HOME: join(world.root, "home") })).text).toMatch(/^cat: .*\na\n$/);
    expect((await run("ls -A ~", {}, { HOME: world.root })).text).toBe(".sluice\na.txt\nhome\nsrc\n");
    expect((await run("cat a.txt", {}, { HOME: "/", TMPDIR: `${world.folder}/t` })).text).toBe("a\n");
  });

  test("sockets and FIFOs in the workspace lead nowhere, and too many of them are refused", async () => {
    const world = wallWorld(user);
    const heard: string[] = [];
    const server = createServer((socket) => void heard.push(String(socket.remoteAddress)));
    const path = join(world.root, "src/docker.sock");
    await new Promise<void>((resolve) => server.listen(path, resolve));
    onTestFinished(() => void server.close());
    world.outside("mkfifo src/pipe; chmod 777 src/docker.sock src/pipe || :");
    world.own();
    const reader = `node -e 'require("net").connect(process.argv[1]).on("error", (e) => console.log(e.code)).on("connect", () => console.log("connected"))'`;
    const run = await walled(user, world);
    for (const plan of [{}, { writes: [""] }, { reads: ["src"] }]) {
      const { text } = await run(
        `${reader} src/docker.sock; timeout 1 bash -c 'echo x >src/pipe' && echo wrote; mv src/docker.sock s; rm src/docker.sock; :`,
        plan,
      );
      expect(text).not.toMatch(/^connected|^wrote/m);
    }
    expect(heard).toEqual([]);
    world.outside("mkdir many; for i in $(seq 101); do mkfifo many/$i; done");
    await expect(run("echo ran")).rejects.toThrow(/sandbox_failed: .*103 sockets and FIFOs/);
  });
});
