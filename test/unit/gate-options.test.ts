import { describe, expect, test } from "vitest";
import { judge, word, words } from "../support/gate.ts";

/** Words as a shell reads them: with quotes where they hold blanks. */
function split(line: string): readonly string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
}

function under(rule: string, line: string): string {
  return word(judge("Bash", { allowedTools: [`Bash(${rule})`], subjects: [words(split(line))] }));
}

/** Without a sandbox, in a stage that may not write. */
describe("a rule with a * covers the words that people give", () => {
  test.each<[rule: string, ...lines: readonly string[]]>([
    ["npm test *", "npm test -- src/a.test.ts --testNamePattern adds", "npm test --silent", "npm test --if-present"],
    ["npm test *", "npm test -- --run", "npm test -- --run src/a.test.ts"],
    ["npm test *", "npm test -- --reporter verbose", "npm test -- --reporter=dot", "npm test -- --timeout 5000"],
    [
      "npm test *",
      "npm test -- --bail=1",
      "npm test -- --bail 1",
      "npm test -- --watch=false",
      "npm test -- --grep 'adds two'",
    ],
    ["npm run *", "npm run test:unit -- --grep adds", "npm run build --silent"],
    ["pnpm test *", "pnpm test --grep adds"],
    [
      "npx vitest *",
      "npx vitest run --bail=1",
      "npx vitest run -t adds",
      "npx vitest run --reporter dot src/a.test.ts",
    ],
    ["npx jest *", "npx jest --bail 0", "npx jest -- 0"],
    ["bunx vitest *", "bunx vitest run 'a > b'"],
    ["npx jest *", "npx jest --runInBand -t name", "npx jest -i", "npx jest --coverage=false -t '@smoke a=1'"],
    ["node_modules/.bin/jest *", "node_modules/.bin/jest -t=adds"],
    ["mocha *", "mocha --grep @smoke", "mocha -g 'a=1' x.test.js", "mocha --reporter dot"],
    ["npx playwright test *", "npx playwright test -g @smoke --project=firefox -x"],
    ["node --test *", "node --test --test-name-pattern=adds --test-reporter=tap a.test.js"],
    [
      "pytest *",
      "pytest --tb=short -q",
      "pytest --tb short",
      "pytest -m slow",
      "pytest --lf -x",
      "pytest -rA",
      "pytest -xvs",
    ],
    [
      "pytest *",
      "pytest 't.py::x[a=1]'",
      "pytest -k 'a=1 or b'",
      "pytest -m '(slow and not (b or c))' -k 'x[1-2] or not(y)'",
      "pytest -vk name",
      "pytest -n4 --maxfail 3 --collect-only",
    ],
    ["python -m pytest *", "python -m pytest -q tests/a.py"],
    [
      "python3 -m unittest *",
      "python3 -m unittest discover -s tools -p 'test_*.py' -v",
      "python3 -m unittest tests.unit.test_a.B.test_c test_a.B a_tests tests tests.models.v1.test_a",
    ],
    [
      "python3 -m unittest *",
      "python3 -m unittest test_a.B",
      "python3 -m unittest a_test",
      "python3 -m unittest src/x.py",
    ],
    ["python -m *", "python -m unittest -q"],
    ["uv run pytest *", "uv run pytest -q"],
    [
      "go test *",
      "go test -count=1 -run TestX ./...",
      "go test -race -v ./...",
      "go test -run 'TestX/a=1' -timeout 30s .",
    ],
    ["cargo test *", "cargo test -- --nocapture", "cargo test --lib -p core", "cargo test -- --test-threads=1 adds"],
    ["cargo clippy *", "cargo clippy --all-targets -- -D warnings"],
    ["npx tsc *", "npx tsc --noEmit", "npx tsc --version", "npx tsc --noEmit --pretty false"],
    ["npx eslint *", "npx eslint --max-warnings=0 .", "npx eslint src --max-warnings 0", "npx eslint -f json src"],
    ["npx prettier *", "npx prettier --check src"],
    ["ruff check *", "ruff check --output-format=github --diff ."],
    ["mypy *", "mypy --strict -p core"],
    ["make *", "make -k check", "make -j4 check", "make -kj 4 check", "make -j check", "make -sn"],
    ["./gradlew test *", "./gradlew test --tests a.B --info"],
    ["mvn test *", "mvn test -q -B", "mvn test verify"],
    ["mvn -B -ntp test *", "mvn -B -ntp test", "mvn -B -ntp test verify"],
    ["python3.11 -m unittest *", "python3.11 -m unittest tests.test_a"],
    ["npm exec -- mocha *", "npm exec -- mocha a.test.js"],
    ["npm install *", "npm install debug", "npm install --silent inspect"],
    ["npm -w api run *", "npm -w api run unit"],
    ["yarn add *", "yarn add debug"],
    ["node --run *", "node --run unit"],
    ["tool *", "tool make 'a;b'"],
    ["cmake *", "cmake 'a;b'"],
    ["makex *", "makex 'a;b'"],
    ["xnpx *", "xnpx 'a$b'"],
    ["npxx *", "npxx 'a$b'"],
    ["yarn add *", "yarn add runner debug"],
    ["pnpm vitest *", "pnpm vitest run -t adds", "pnpm vitest run -t 'adds two' src/a.test.ts"],
    ["yarn jest *", "yarn jest -t adds"],
    ["pnpm playwright test *", "pnpm playwright test -g smoke"],
    ["yarn tsc *", "yarn tsc --noEmit"],
    ["pnpm exec vitest *", "pnpm exec vitest run -t adds"],
    ["npx vitest *", "npx vitest run -t test"],
    ["xnpm run -s unit *", "xnpm run -s unit word"],
    ["npmx run -s unit *", "npmx run -s unit word"],
    ["npm -w a run-script *", "npm -w a run-script unit"],
    ["npm start *", "npm start --silent"],
    [
      "npm test *",
      "npm test -- --test-reporter=dot",
      "npm test -- --bail 10",
      "npm test --color",
      "npm test --no-color",
    ],
    ["git add *", "git add @a.txt"],
    ["tool *", "tool 'a\nb'"],
    ["tool --name *", "tool --name x0"],
    ["tool mo_cha *", "tool mo_cha word"],
    ["xnpm test *", "xnpm test word"],
    ["yarn --cwd a add *", "yarn --cwd a add debug"],
    ["coverage run -m pytest *", "coverage run -m pytest unit"],
    ["npm exec *", "npm exec tool word", "npm exec -- vitest run -t adds"],
    ["yarn workspace a add *", "yarn workspace a add debug"],
    ["pnpm -r --filter api run *", "pnpm -r --filter api run unit"],
    ["pnpm run --silent *", "pnpm run --silent test src"],
    ["npm run *", "npm run test:unit -- src", "npm run test:unit test", "npm run test:unit tests"],
    ["bun --silent add *", "bun --silent add debug"],
    ["just test *", "just test unit"],
    ["npm --prefix web install *", "npm --prefix web install debug"],
    ["npm test --workspace=a *", "npm test --workspace=a -- --grep adds"],
    ["npm exec -- mocha *", "npm exec -- mocha 'a/b[x=1]'"],
    ["npx jest *", "npx jest --bail 10"],
    ["just test *", "just test a.test.ts"],
    [
      "npm test *",
      "npm test a.test.mts src/b_test.py src/test_c src tests",
      "npm test -s",
      "npm test 'src/[id].spec.ts'",
    ],
    ["npx mocha@10 *", "npx mocha@10 a.test.js --grep adds"],
    ["npx vitest@latest *", "npx vitest@latest run src"],
    ["nice mocha *", "nice mocha a.mts b.cjs c.py d.rs src/x src"],
    ["/usr/bin/npx vitest *", "/usr/bin/npx vitest run"],
    ["npm *", "npm ci", "npm test"],
    ["deno task *", "deno task lint"],
    ["cargo make *", "cargo make lint"],
    ["python -m unittest *", "python -m unittest mypkg.tests.test_a", "python -m unittest ./tests/test_a.py"],
    ["mvn *", "mvn -q test -o"],
    ["make *", "make build/a.o lib-x+y_1:z%", "make -j4 check"],
    ["npx vitest *", "npx vitest -t 'adds (two) & more; or <none>'"],
    ["mvn *", "mvn test", "mvn clean verify"],
    ["gradle *", "gradle :app:test", "gradle test :app:build --info"],
    ["git add *", "git add -A", "git add -- a.txt"],
    ["git commit *", "git commit -m x", "git commit -am 'a=1'"],
    ["npx jest *", "npx jest @scope/name -t @smoke"],
    ["npx *", "npx @scope/tool a", "npx playwright test --grep @smoke"],
    ["npx -y *", "npx -y @scope/tool@1.0.0"],
    ["npm install *", "npm install @scope/name @other/name@2"],
    ["npm view *", "npm view @types/node version"],
    ["npm test -w *", "npm test -w @scope/name"],
    ["npm exec *", "npm exec @scope/tool"],
    ["pnpm --filter * test", "pnpm --filter @scope/name test"],
    ["yarn workspace *", "yarn workspace @scope/name test"],
    ["git checkout *", "git checkout @", "git checkout @~1", "git checkout @{u}", "git checkout @me/topic"],
    ["git commit *", "git commit -m '@me fixed it'"],
    ["tool *", "tool me@example.com"],
    ["tool *", "tool a.txt", "tool --verbose --help", "tool -- a", "tool --color=never"],
  ])("%s: %j", (rule, ...lines) => {
    expect(lines.filter((line) => under(rule, line) !== "envelope")).toEqual([]);
  });
});

describe("a rule with a * covers no word that may run a program or write a file", () => {
  test.each<[rule: string, ...lines: readonly string[]]>([
    [
      "npm test *",
      "npm test -",
      "npm test -c",
      "npm test -o x",
      "npm test -qo",
      "npm test --output=x",
      "npm test --runner",
    ],
    ["npm test *", "npm test -- --reporter=./x.mjs", "npm test -- --reporter ./x.mjs", "npm test -- --reporter=dot/x"],
    [
      "npm test *",
      "npm test -- --watch=true",
      "npm test -- --require=--run",
      "npm test --workspaces",
      "npm test --prefix=x",
    ],
    ["npm test *", "npm test SHELL=./x", "npm test X!=x", "npm test a.b:=x", "npm test -- --grep a=b"],
    // With make, -t writes files, with tap -s does, and node --run deploy runs another script.
    [
      "npm test *",
      "npm test -- -t adds",
      "npm test -- -s x",
      "npm test -- -q",
      "npm test -- -g x",
      "npm test -- --run deploy",
    ],
    ["npm test *", "npm test -- --run=deploy", "pnpm test --run deploy", "npm test -- --run deploy:prod"],
    ["npm run *", "npm run build -- -t adds", "npm run build -- --outDir x"],
    [
      "npx vitest *",
      "npx vitest -tc x.mjs",
      "npx vitest --config=x",
      "npx vitest -u",
      "npx vitest --reporter=json --outputFile=x",
    ],
    ["npx jest *", "npx jest --rootDir=x", "npx jest -tc x.js", "npx jest --reporters ./x", "npx jest X=1"],
    ["mocha *", "mocha -r ./x", "mocha --reporter ./x.js", "mocha --reporter=dot,x"],
    [
      "pytest *",
      "pytest -p x",
      "pytest -xp x",
      "pytest -c x.ini",
      "pytest -vc x.ini",
      "pytest -o addopts=x",
      "pytest --junitxml=x",
    ],
    // Older versions evaluate it.
    ["pytest *", "pytest -m breakpoint()", "pytest -k 'x or exit (1)'", "pytest -m '(a)(b)'", "pytest -k 'éor(x)'"],
    ["npm run *", "npm run unit -- init docs", "npm run unit inspect a.js"],
    ["pytest *", "pytest --rootdir x", "pytest --tb ./x", "pytest --pdbcls=a:b", "pytest -W error::x.Y", "pytest A=1"],
    [
      "go test *",
      "go test -exec ./x",
      "go test -toolexec=./x .",
      "go test -o x",
      "go test -coverprofile x",
      "go test -c",
      "go test -vet ./x",
    ],
    [
      "cargo test *",
      "cargo test --config x",
      "cargo test --target-dir=x",
      "cargo test -- --logfile x",
      "cargo test -Zx",
    ],
    ["tsc *", "tsc --outDir x", "tsc -p x", "tsc --project x", "tsc -b", "tsc --noemit --OUTFILE x"],
    [
      "eslint *",
      "eslint -f ./x.js",
      "eslint -c x",
      "eslint -o x",
      "eslint --fix",
      "eslint --rulesdir x",
      "eslint --plugin x",
    ],
    ["prettier *", "prettier -w a.ts", "prettier --write a.ts", "prettier --plugin=./x a.ts"],
    ["ruff check *", "ruff check --fix", "ruff check -o x", "ruff check --config x"],
    ["mypy *", "mypy --python-executable ./x", "mypy --junit-xml x", "mypy --html-report x"],
    [
      "make *",
      "make -t check",
      "make -kt check",
      "make -f x",
      "make -jf x",
      "make SHELL=./x",
      "make 'x[a!=touch PWN]'",
      "make --eval=x",
    ],
    ["/usr/bin/gmake *", "/usr/bin/gmake -t check"],
    ["git rebase *", "git rebase -x 'touch PWN' HEAD~1", "git rebase --exec 'touch PWN'", "git rebase -s evil main"],
    ["git commit *", "git commit -F x", "git commit -S", "git commit --amend"],
    ["mvn test *", "mvn test -s evil.xml", "mvn test -t x.xml", "mvn test -Dexec=x"],
    ["dotnet test *", "dotnet test -s evil.runsettings", "dotnet test -t"],
    ["kubectl get *", "kubectl get pods -s http://attacker"],
    ["docker run *", "docker run -v /:/host alpine", "docker run -t alpine"],
    ["gdb *", "gdb -x evil.gdb", "gdb -q"],
    ["robot *", "robot -x out.xml tests", "robot --run x"],
    ["mocha *", "mocha init docs", "mocha --grep x init docs", "mocha inspect a.test.js", "mocha debug"],
    ["npm test *", "npm test init docs", "npm test -- inspect a.test.js"],
    // It calls what a name stands for.
    [
      "python3 -m unittest *",
      "python3 -m unittest code.interact",
      "python3 -m unittest -v test.support",
      "python3 -m unittest tests.test_a.unittest.case.sys.breakpointhook",
      "python3 -m unittest test_b.mock.builtins.breakpoint",
      "python3 -m unittest tests.a.b tests.a.test_b.run",
      "python3 -m unittest test_a.B.run",
      "python3 -m unittest x",
    ],
    // Some versions of package managers let a shell read their words.
    ["pnpm test *", "pnpm test '$(touch PWN)'", "pnpm test 'a`b`'"],
    ["npx vitest *", "npx vitest 'a\\b'", "npx vitest 'a\"b'", "npx vitest -t 'costs $5'"],
    ["npx make *", "npx make ';touch PWN'"],
    ["poetry run make *", "poetry run make 'a;b'"],
    ["uv run make *", "uv run make 'a b'"],
    ["make *", "make ';touch PWN'", "make 'a b'", "make 'a|b'", "/usr/bin/make 'a>b'"],
    ["npx vitest *", "npx vitest init browser"],
    ["mvn test *", "mvn test deploy", "mvn test org.codehaus.mojo:exec-maven-plugin:exec"],
    ["./gradlew test *", "./gradlew test publish", "./gradlew test :app:run"],
    // The same programs in another form.
    ["mvn -B -ntp test *", "mvn -B -ntp test deploy"],
    ["mvn clean verify *", "mvn clean verify exec:java"],
    ["./mvnw -pl core test *", "./mvnw -pl core test deploy"],
    ["./gradlew :app:test *", "./gradlew :app:test publish"],
    ["python3.11 -m unittest *", "python3.11 -m unittest code.interact"],
    ["/usr/bin/python3 -W error -m unittest *", "/usr/bin/python3 -W error -m unittest code.interact"],
    ["coverage run -m unittest *", "coverage run -m unittest code.interact"],
    ["npm exec -- mocha *", "npm exec -- mocha init docs"],
    ["yarn run mocha *", "yarn run mocha inspect a.js"],
    ["./node_modules/mocha/bin/mocha.js *", "./node_modules/mocha/bin/mocha.js inspect a.js"],
    ["npm --prefix web test *", "npm --prefix web test inspect"],
    ["npm exec make *", "npm exec make 'x;y'"],
    ["npx mocha@10 *", "npx mocha@10 inspect a.js"],
    ["npm run -s unit *", "npm run -s unit -- code.interact"],
    ["npm --prefix api run unit *", "npm --prefix api run unit -- deploy"],
    ["npm run-script unit *", "npm run-script unit inspect"],
    ["npm start *", "npm start word"],
    ["npm stop *", "npm stop word"],
    ["yarn workspace * unit", "yarn workspace ../docs unit"],
    ["npm run *", "npm run types -- src", "npm run types ''"],
    ["tsc *", "tsc ''"],
    ["npm test *", "npm test //#deploy", "npm test docs/evil.js", "npm test https://x/a.test.ts", "npm test docs"],
    ["nice mocha *", "nice mocha https://x/y", "nice mocha //#a", "nice mocha a"],
    ["/usr/bin/npx mocha *", "/usr/bin/npx mocha inspect"],
    ["pnpm *", "pnpm exec touch PWN", "pnpm dlx evil"],
    ["npm *", "npm exec touch PWN", "npm exec -- touch PWN"],
    ["yarn workspace a *", "yarn workspace a exec touch PWN"],
    ["python3 -m unittest *", "python3 -m unittest docs.evil.x/"],
    ["nose2 *", "nose2 code.interact"],
    ["xdeno task *", "xdeno task 'a b'"],
    ["denox task *", "denox task 'a b'"],
    ["npx *", "npx mocha@10 init"],
    ["npm test *", "npm test -x--silent", "npm test --silently", "npm test -- --bail x1", "npm test -- --bail 1x"],
    ["pnpm xrun *", "pnpm xrun unit"],
    ["pnpm runx *", "pnpm runx unit"],
    ["npm *", "npm teste", "npm xt"],
    ["npm workspace *", "npm workspace a"],
    ["tool --dry-run *", "tool --dry-run n", "tool --dry-run +0"],
    ["yarn run *", "yarn run workspace deploy", "yarn run workspace deploy word"],
    ["yarn restart *", "yarn restart word"],
    ["yarn --cwd a unit *", "yarn --cwd a unit word", "yarn --cwd a unit src/a.ts"],
    ["yarn workspace a unit *", "yarn workspace a unit word"],
    ["yarn add workspace *", "yarn add workspace @x=1"],
    ["uv run -m unittest *", "uv run -m unittest code.interact"],
    ["uv run npm exec mocha *", "uv run npm exec mocha -f init out"],
    ["npm test --grep *", "npm test --grep init"],
    ["npm test *", "npm test -w a", "npm test --prefix=docs", "npm test --weird"],
    ["pnpm *", "pnpm --filter a test", "pnpm run --filter a unit"],
    ["npm exec vitest@3 *", "npm exec vitest@3 init"],
    [
      "npm run *",
      "npm run build -- srcs",
      "npm run build -- a.js.map",
      "npm run build -- a=b.js",
      "npm run build -- a*.js",
    ],
    ["npm test *", "npm test -- --bail x", "npm test -- --timeout 5s", "npm test -- --grep 'a;b'"],
    ["bun test *", "bun test a=1"],
    ["task *", "task 'a b'", "task docs/default"],
    ["npm start *", "npm start src/a.ts"],
    ["npm run -s unit *", "npm run -s unit -- src/a.test.ts", "npm run -s unit a.test.js"],
    ["npm --prefix * test", "npm --prefix docs test"],
    ["npm -w * test", "npm -w ../docs test"],
    ["yarn --cwd * unit", "yarn --cwd docs unit"],
    ["tsc *", "tsc sluice.config.ts"],
    ["tsc -b *", "tsc -b docs/evil"],
    ["npx mocha@10 --reporter *", "npx mocha@10 --reporter ./docs/evil.js"],
    ["npx vitest --config *", "npx vitest --config docs/evil.js"],
    ["eslint -c *", "eslint -c docs/evil.js"],
    ["bmake *", "bmake -v .TARGETS:sh docs/evil.sh"],
    ["just *", "just docs/default"],
    ["python manage.py test *", "python manage.py test code.interact"],
    ["./manage.py *", "./manage.py shell"],
    ["npx vitest@3 *", "npx vitest@3 init"],
    ["npm *", "npm publish", "npm config set script-shell=x"],
    ["npm exec mocha *", "npm exec mocha -f init out"],
    ["node --no-warnings --run unit *", "node --no-warnings --run unit -- code.interact"],
    ["node *", "node --run deploy"],
    ["node --run unit *", "node --run unit -- code.interact"],
    ["yarn unit *", "yarn unit deploy", "yarn unit src/a.test.ts"],
    ["docker compose run app npm test *", "docker compose run app npm test src/a.test.ts"],
    ["pnpm --filter api test *", "pnpm --filter api test inspect", "pnpm --filter api test deploy"],
    ["npm run -s unit *", "npm run -s unit a-b", "npm run -s unit x.py2", "npm run -s unit a.xjs"],
    ["yarn readd *", "yarn readd word"],
    ["yarn addx *", "yarn addx word"],
    ["npx *", "npx make 'a;b'"],
    ["./tools/mocha.cjs *", "./tools/mocha.cjs inspect a.js"],
    ["npx _mocha *", "npx _mocha init docs"],
    ["python3 -munittest *", "python3 -munittest code.interact"],
    ["python3 -m unittest.main *", "python3 -m unittest.main code.interact"],
    ["mvnd test *", "mvnd test deploy"],
    ["go-task test *", "go-task test 'a;b'"],
    ["bmake *", "bmake 'x;y'"],
    // A recipe may use its words as they are.
    ["just test *", "just test 'a; touch PWN'", "just test 'a > b'", "just test 'a -p x'"],
    ["task test *", "task test -- 'a;b'"],
    // What turns off the option in front, which the rule may name for a reason.
    ["npx tsc --noEmit *", "npx tsc --noEmit false", "npx tsc --noEmit NULL a.ts"],
    [
      "npm install --ignore-scripts *",
      "npm install --ignore-scripts false ./evil",
      "npm install --ignore-scripts true",
    ],
    ["tool *", "tool --verbose false"],
    [
      "tool --dry-run *",
      "tool --dry-run 0",
      "tool --dry-run ''",
      "tool --dry-run No",
      "tool --dry-run off",
      "tool --dry-run 0.0",
      "tool --dry-run 00",
      "tool --dry-run -0x0",
      "tool --dry-run f",
      "tool --dry-run .00",
      "tool --dry-run 0e15",
      "tool --dry-run 0x00",
    ],
    ["npm testx *", "npm testx -- --grep adds"],
    ["npm run *", "npm run build -- --grep adds"],
    ["/usr/bin/make *", "/usr/bin/make 'a>b'"],
    ...["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "just", "task", "gmake"].map(
      (program): [string, string] => [`${program} x *`, `${program} x '$(touch PWN)'`],
    ),
    ["ninja *", "ninja -t clean", "ninja -k 0"],
    ["tool *", "tool -q", "tool -5", "tool --run", "tool --bail", "tool x=1", "tool a[x=1]", "tool --color=./x"],
    ["* check", "-x check", "a=b check", "@x check"],
    ["tool *", "tool @x", "tool @", "tool a @src/args.txt", "tool -- @x"],
    ["npx tsc *", "npx tsc a.ts @x"],
    ["tsc *", "tsc @x", "tsc --noEmit @x"],
    ["npx *", "npx tsc @x", "npx @scope/tool @x", "npx javac @x"],
    ["npm *", "npm run build @x", "npm test @x", "npm exec tsc @x", "npm run build workspace @x", "npm @x"],
    ["npm run *", "npm run build '-w' @x", "npm run exec @x", "npm run add @x"],
    ["yarn *", "yarn build @x", "yarn workspace a build @x"],
    ["pytest *", "pytest @x", "pytest -k @x", "pytest tests -- @x"],
    ["npx vitest --reporter *", "npx vitest --reporter ./x.mjs"],
  ])("%s: %j", (rule, ...lines) => {
    expect(lines.filter((line) => under(rule, line) !== "ask")).toEqual([]);
    expect(lines.filter((line) => under(line.replace(/\*/g, "'*'"), line) !== "envelope")).toEqual([]);
  });
});

describe("of a command that Sluice knows, without a sandbox", () => {
  const runners = ["vitest", "jest", "mocha", "playwright test", "node --test", "bun test"];

  test.each([...runners, "pytest", "unittest", "go test", "cargo test", "git add", "git commit"])(
    "%s: a = behind another character is part of a name, and NAME= is a setting",
    (command) => {
      expect(under(`${command} *`, `${command} a/b.c[x=1]`)).toBe("envelope");
      expect(under(`${command} *`, `${command} AB=1`)).toBe("ask");
      expect(under(`${command} *`, `${command} A:=1`)).toBe("ask");
    },
  );

  test.each([...runners, "eslint", "prettier"])("%s: a word with @ is one like others", (command) => {
    expect(under(`${command} *`, `${command} @smoke`)).toBe("envelope");
  });

  test.each([
    ["pytest", "-xq"],
    ["unittest", "-vf"],
    ["cargo test", "-qr"],
    ["ruff check", "-qn"],
    ["ruff format", "-qn"],
    ["mypy", "-vh"],
    ["make", "-ks"],
    ["git add", "-Av"],
    ["git commit", "-aq"],
  ])("%s: letters may be joined, as in %s", (command, letters) => {
    expect(under(`${command} *`, `${command} ${letters}`)).toBe("envelope");
  });

  test.each([
    ["eslint *", "eslint --debug"],
    ["prettier *", "prettier --log-level silent"],
    [".venv/bin/pytest *", ".venv/bin/pytest -q"],
    ["venv/bin/pytest *", "venv/bin/pytest -q"],
    ["npm run *", "npm run"],
    ["npm run x -w *", "npm run x -w @s/p"],
    ["pnpm -r --filter *", "pnpm -r --filter @s/p"],
    ["npx *", "npx @s/tool"],
    ["bunx *", "bunx @s/tool"],
    ["npx -y *", "npx -y @s/tool"],
    ["pytest *", "pytest -p no:cacheprovider"],
  ])("the rule %s covers %s", (rule, line) => {
    expect(under(rule, line)).toBe("envelope");
  });

  test.each([
    ["tools/node_modules/.bin/vitest *", "tools/node_modules/.bin/vitest --bail=1"],
    ["npm run *", "npm run types -- -t x"],
    ["pytest *", "pytest -x A=1"],
    ["pytest *", "pytest -psrc.x"],
    ["gcc -w *", "gcc -w @src/args"],
    ["xnpm install *", "xnpm install @s/p"],
    ["npmx install *", "npmx install @s/p"],
    ["npm xadd *", "npm xadd @s/p"],
    ["npm addx *", "npm addx @s/p"],
    ["npm ax *", "npm ax @s/p"],
    ["npm xa *", "npm xa @s/p"],
    ["npm exec a *", "npm exec a @s/p"],
    ["npm run x-w *", "npm run x-w @a"],
    ["npm run -wx *", "npm run -wx @a"],
    ["npm test -- -w *", "npm test -- -w @src/a"],
    ["yarn tsc -w *", "yarn tsc -w @src/args"],
    ["python3 -m unittest *", "python3 -m unittest 'x\ny'"],
    ["npx tsc *", "npx tsc @src/args"],
  ])("the rule %s does not cover %s", (rule, line) => {
    expect(under(rule, line)).toBe("ask");
  });
});

describe("a rule with a * for a script of package.json covers the options of the script's program", () => {
  const run = (line: string, script: string): string =>
    word(
      judge("Bash", {
        allowedTools: ["npm test", "npm run", "yarn test", "pnpm test", "bun run", "yarn lint", "yarn workspace a"].map(
          (begins) => `Bash(${begins} *)`,
        ),
        subjects: [words(split(line), { script: script === "" ? [] : script.split(" ") })],
      }),
    );

  test.each([
    ["npm test -- src/a.test.ts", "npm run unit \n vitest run"],
    ["pnpm test -t adds", "pnpm run unit \n vitest run"],
    ["npm test -- -t adds --run", "vitest"],
    ["npm test -- -t 'adds two'", "jest --ci"],
    ["npm test -- @smoke", "jest"],
    ["npm test -- -g adds -t 5000", "mocha -r ts-node/register test/**/*.ts"],
    ["npm test -- --test-name-pattern adds", "node --test"],
    ["npm test -- -k adds -x", "uv run pytest"],
    ["npm run unit -- --runInBand", "npx jest"],
    ["yarn test -t adds", "vitest run"],
    ["npm test src/a.test.ts", "vitest"],
    ["npm test -- --grep adds", "tap"],
    ["npm test --if-present src/a.test.ts", "vitest"],
    ["npm test --silent -- -t adds", "vitest"],
    ["npm test src -- -t adds", "vitest"],
    ["bun run test -t 'adds two'", "vitest"],
    ["bun run test a-b", "vitest"],
    ["yarn lint src", "eslint"],
    ["yarn lint -f json", "eslint"],
    ["npm test -- -t adds", "yarn unit \n vitest run"],
    ["yarn lint src", "biome check --write"],
    ["npm test -- src/a.test.ts", "vitest --coverage"],
    ["npm test -- src/a.test.ts", "vitest --config vitest.config.ts"],
    ["npm test -- src/a.test.ts", "vitest --unknown=1"],
    ["npm test -- src/a.test.ts", "jest --config jest.config.js --coverage"],
    ["npm test -- src/a.test.ts", "jest --reporters=default --ci"],
    ["npm test -- src/a.test.ts", "jest --reporters default --"],
    ["npm test -- src/a.test.ts", "tap --timeout 60"],
    ["npm test 'src/[id].test.ts'", "vitest"],
  ])("%s for %j", (line, script) => {
    expect(run(line, script)).toBe("envelope");
  });

  test.each([
    ["npm test -- --run deploy", "node --test"],
    ["npm test -- -t release.txt", "make test"],
    ["npm test -- -s out.txt", "tap"],
    ["npm test -- -c x.ini", "vitest"],
    ["npm test -- init docs", "mocha"],
    ["npm test -- ./x.mjs", "vitest --reporter"],
    ["npm test -- --watch=false", "node --test"],
    // In front of `--` they are options of npm, which runs the script of a workspace with -w.
    ["npm test -w 2 -- src", "jest"],
    ["npm test -t adds", "jest"],
    ["npm test -f init out", "mocha"],
    ["npm test --grep init out", "mocha"],
    ["npm test --timeout inspect x.js", "mocha"],
    ["npm test init out", "mocha"],
    ["npm test init -- out", "mocha"],
    ["npm test -p code.interact", "python3 -m unittest"],
    ["npm test -w pkgs/b -- -t results", "jest"],
    ["npm test --workspace pkgs/b", "cargo test"],
    ["npm test -- 'x;touch PWN'", "make test"],
    // Other forms of a program, also where it is not the first one.
    ["npm run unit -- code.interact", "python3 -W error -m unittest"],
    ["npm run unit -- code.interact", "coverage run -m unittest"],
    ["npm run java -- deploy", "mvn clean test"],
    ["npm run java publish", "../gradlew :app:test"],
    ["npm test -- code.interact", "npm run py \n python3 -m unittest"],
    ["yarn lint code.interact", "python3 -m unittest"],
    ["yarn lint deploy", "mvn -B -ntp test"],
    ["npm test -- deploy", "npm run a \n npm run b \n mvn -B -ntp test"],
    ["npm test -- -f init out", "npm run unit \n mocha"],
    ["npm run end -- touch", ""],
    ["npm run end src/a.ts", ""],
    ["npm run unit word", "my-linter"],
    ["npm test -- src/a.test.ts", ""],
    ["npm run unit word", "xyarn a"],
    ["yarn lint src", "my-linter"],
    ["npm run unit -- src/a.test.ts", "my-tests"],
    ["npm run unit -- docs/evil.js", "rollup -c"],
    ["npm test -- docs/evil.js", "rollup -c"],
    ["npm test -- docs/evil.js", "vitest --config"],
    ["npm test -- docs/evil.js", "vitest --unknown"],
    ["npm test -- docs/evil.js", "jest --reporters=default"],
    ["npm test -- docs/evil.js", "jest --projects . src"],
    ["yarn workspace a unit -t adds", "jest"],
    ["npm test -- -t adds", "yarn unit"],
    ["npm test -- touch", "npm run end \n"],
    ["npm run unit 'a b'", "nice make test"],
    ["bun run test '{a,--config=./p.ts}'", "vitest"],
    ["npm test -- 'x;touch PWN'", "poetry run make"],
    ["npm test -- -f init out", "npm run unit"],
    ["npm test -- --grep init out", "npm run unit"],
    ["npm test -- 'x;touch PWN'", "tap"],
    ["npm test 'x|y'", "tap"],
    ["pnpm test '$(touch PWN)'", "vitest"],
    // Older versions of Bun let a shell read these words, too.
    ["bun run test 'a;touch PWN'", "vitest"],
    ["bun run test 'a --config x.mjs'", "vitest"],
    ["npm run unit -- -t adds", "make unit"],
  ])("and not %s for %j", (line, script) => {
    expect(run(line, script)).toBe("ask");
  });
});

describe("a rule that names options of npm", () => {
  const run = (rule: string, line: string, script: string): string =>
    word(
      judge("Bash", {
        allowedTools: [`Bash(${rule})`],
        subjects: [words(split(line), { script: script.split(" ") })],
      }),
    );

  test.each([
    ["npm test --silent *", "npm test --silent -- -t adds", "jest"],
    ["npm test --if-present -- *", "npm test --if-present -- -t adds", "jest"],
    ["npm *", "npm test -- -t adds", "jest --config x"],
    ["tool *", "tool a false", "jest"],
  ])("%s: covers %s for %j", (rule, line, script) => {
    expect(run(rule, line, script)).toBe("envelope");
  });

  test.each([
    ["npm test -w a *", "npm test -w a -- -t adds", "jest"],
    ["npm test --prefix a *", "npm test --prefix a -- -t adds", "jest"],
    ["npm test -w a *", "npm test -w a init", "mocha"],
    ["npm test --silent *", "npm test --silent init", "mocha"],
  ])("%s: and not %s for %j", (rule, line, script) => {
    expect(run(rule, line, script)).toBe("ask");
  });
});

test("a name of a test of any length takes time in proportion to it", () => {
  const line = `python3 -m unittest ${"test_a_test.".repeat(1_000)}x`;
  expect(under("python3 -m unittest *", line)).toBe("ask");
});
