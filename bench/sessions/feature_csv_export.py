"""A new command in a small Node project: a dependency that the user does not want, tests first, a follow-up."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, together, turn, write

ROOT = "/home/dev/taskpile"

PACKAGE = """
{
  "name": "taskpile",
  "version": "0.3.1",
  "type": "module",
  "bin": { "taskpile": "src/cli.js" },
  "scripts": { "test": "node --test" }
}
"""
STORE = """
import { existsSync, readFileSync, writeFileSync } from "node:fs";

export function load(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
}

export function save(file, tasks) {
  writeFileSync(file, JSON.stringify(tasks, null, 2) + "\\n");
}
"""
CLI = """
#!/usr/bin/env node
import { load, save } from "./store.js";

const FILE = process.env.TASKPILE ?? "tasks.json";

export function run(args, file = FILE, print = console.log) {
  const [command, ...rest] = args;
  const tasks = load(file);
  switch (command) {
    case "add":
      tasks.push({ id: tasks.length + 1, title: rest.join(" "), done: false, created: "2026-03-05" });
      save(file, tasks);
      return 0;
    case "done":
      tasks.find((task) => task.id === Number(rest[0])).done = true;
      save(file, tasks);
      return 0;
    case "list":
      for (const task of tasks) print(`${task.done ? "x" : " "} ${task.id} ${task.title}`);
      return 0;
    default:
      print("usage: taskpile add|done|list");
      return 2;
  }
}

if (process.argv[1]?.endsWith("cli.js")) process.exit(run(process.argv.slice(2)));
"""
CLI_TEST = """
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../src/cli.js";

const file = () => join(mkdtempSync(join(tmpdir(), "taskpile-")), "tasks.json");

test("a task that was added is listed", () => {
  const path = file();
  const lines = [];
  run(["add", "water", "plants"], path);
  run(["list"], path, (line) => lines.push(line));
  assert.deepEqual(lines, ["  1 water plants"]);
});
"""
CSV_TEST = """
import assert from "node:assert/strict";
import { test } from "node:test";
import { toCsv } from "../src/csv.js";

const task = (title) => ({ id: 1, title, done: false, created: "2026-03-05" });

test("a header and a line for each task", () => {
  assert.equal(toCsv([task("water plants")]), "id,title,done,created\\r\\n1,water plants,false,2026-03-05\\r\\n");
});

test("commas, quotes and newlines are quoted", () => {
  assert.match(toCsv([task('say "hi", twice\\nor not')]), /"say ""hi"", twice\\nor not"/);
});
"""
CSV = """
const COLUMNS = ["id", "title", "done", "created"];

function field(value) {
  const text = String(value);
  return /[",\\r\\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(tasks) {
  const lines = [COLUMNS, ...tasks.map((task) => COLUMNS.map((name) => task[name]))];
  return lines.map((line) => line.map(field).join(",") + "\\r\\n").join("");
}
"""
SEPARATOR_TEST = """
test("another separator, which then needs quotes itself", () => {
  const csv = toCsv([task("eggs; milk")], ";");
  assert.match(csv, /^id;title;done;created/);
  assert.match(csv, /1;"eggs; milk";false/);
  assert.match(toCsv([task("eggs; milk")], ","), /1,eggs; milk,false/);
});
"""

SCENARIO = Scenario(
    project="taskpile",
    began="2026-03-05T13:40:00",
    first_commit="taskpile 0.3.1",
    files={
        "package.json": PACKAGE,
        "src/store.js": STORE,
        "src/cli.js": CLI,
        "test/cli.test.js": CLI_TEST,
        "README.md": "# taskpile\n\nTasks in a JSON file. `taskpile add`, `done`, `list`.\n",
    },
    turns=(
        turn(
            "I'd like to get my tasks into a spreadsheet. Add an `export` command that prints csv, columns id, title, "
            "done, created. Titles can contain anything, commas and quotes included",
            together(
                say("I'll look at how commands are put together first."),
                read(f"{ROOT}/src/cli.js"),
                read(f"{ROOT}/src/store.js"),
            ),
            bash("ls; ls test; node --version", "Look around"),
            read(f"{ROOT}/package.json"),
            edit(
                f"{ROOT}/package.json",
                '  "scripts": { "test": "node --test" }',
                '  "scripts": { "test": "node --test" },\n  "dependencies": { "csv-stringify": "^6.5.0" }',
            ),
            say(
                "The plan: a module `src/csv.js` that turns tasks into CSV and an `export` case in `run()`. For the quoting "
                "I've put `csv-stringify` into package.json, it's the usual choice and handles all the corner cases. "
                "Shall I go ahead with that?"
            ),
        ),
        turn(
            "no please, no dependencies in taskpile. It has to run from a plain checkout without npm install, that's the "
            "whole point. the quoting is five lines, write it yourself",
            bash("git checkout package.json && git status --short", "Take the dependency out again"),
            write(f"{ROOT}/test/csv.test.js", CSV_TEST.lstrip()),
            bash("npm test --silent", "See the new tests fail"),
            write(f"{ROOT}/src/csv.js", CSV.lstrip()),
            edit(f"{ROOT}/src/cli.js", "import { load", 'import { toCsv } from "./csv.js";\nimport { load'),
            edit(
                f"{ROOT}/src/cli.js",
                "    default:\n",
                '    case "export":\n      process.stdout.write(toCsv(tasks));\n      return 0;\n    default:\n',
            ),
            edit(f"{ROOT}/src/cli.js", "add|done|list", "add|done|list|export"),
            bash("npm test --silent 2>&1 | grep -E '^# '", "Run the tests"),
            bash(
                'node src/cli.js add "buy \\"good\\" bread, rolls" && node src/cli.js export; rm tasks.json',
                "Try it for real",
            ),
            bash('git add -A && git commit -m "Add export command that prints tasks as CSV"', "Commit"),
            say(
                "`taskpile export` is in: `src/csv.js` quotes fields with commas, quotes or line breaks after RFC 4180, "
                "lines end in CRLF. No dependency, package.json is as it was. Tests pass and it's committed."
            ),
        ),
        turn(
            "cool. one more thing, excel here is set to german and expects ; between the columns. can you make the "
            "separator an option?",
            read(f"{ROOT}/test/csv.test.js"),
            bash(f"cat >> test/csv.test.js <<'X'\n{SEPARATOR_TEST}X", "Add a test"),
            edit(
                f"{ROOT}/src/csv.js",
                "export function toCsv(tasks) {",
                'export function toCsv(tasks, separator = ",") {',
            ),
            edit(f"{ROOT}/src/csv.js", 'line.map(field).join(",")', "line.map(field).join(separator)"),
            bash("npm test --silent", "Run the tests"),
            edit(
                f"{ROOT}/src/csv.js",
                'function field(value) {\n  const text = String(value);\n  return /[",\\r\\n]/.test(text)',
                "function field(value, separator) {\n  const text = String(value);\n"
                '  return /["\\r\\n]/.test(text) || text.includes(separator)',
            ),
            edit(
                f"{ROOT}/src/csv.js",
                "line.map(field).join(separator)",
                "line.map((value) => field(value, separator)).join(separator)",
            ),
            edit(
                f"{ROOT}/src/cli.js",
                "      process.stdout.write(toCsv(tasks));\n",
                '      process.stdout.write(toCsv(tasks, rest[0] === "--separator" ? rest[1] : ","));\n',
            ),
            bash("npm test --silent 2>&1 | grep -E '^# (pass|fail)'", "Run the tests"),
            bash(
                'git add -A && git commit -m "export: --separator, for spreadsheets that expect semicolons"',
                "Commit",
            ),
            say(
                "`taskpile export --separator ';'` works, and a field is quoted only if it contains the separator in use. "
                "Committed."
            ),
        ),
        turn(
            "super. anything left to do here?",
            bash("grep -n export README.md", "Is it documented?"),
            say(
                "Two small things:\n\n- the README doesn't mention `export` yet\n- there is no byte order mark, so Excel shows "
                "umlauts wrong when the file is opened by double click (importing it as UTF-8 works)\n\nNeither is done; "
                "tell me if you want them."
            ),
        ),
    ),
)
