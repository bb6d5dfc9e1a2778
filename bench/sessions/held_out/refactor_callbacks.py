"""Callbacks become promises in three files; nothing is committed, and one interface is kept on purpose."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, together, turn, write

ROOT = "/home/dev/feedpress"

READER = """
const fs = require("node:fs");

function readFeeds(file, callback) {
  fs.readFile(file, "utf8", (error, text) => {
    if (error) return callback(error);
    let feeds;
    try {
      feeds = JSON.parse(text);
    } catch (broken) {
      return callback(broken);
    }
    callback(null, feeds);
  });
}

module.exports = { readFeeds };
"""
BUILDER = """
const fs = require("node:fs");
const path = require("node:path");
const { readFeeds } = require("./reader");

function build(source, target, callback) {
  readFeeds(source, (error, feeds) => {
    if (error) return callback(error);
    fs.mkdir(target, { recursive: true }, (error) => {
      if (error) return callback(error);
      let left = feeds.length;
      if (!left) return callback(null, 0);
      for (const feed of feeds) {
        const page = `<h1>${feed.title}</h1>`;
        fs.writeFile(path.join(target, `${feed.name}.html`), page, (error) => {
          if (error) return callback(error);
          if (--left === 0) callback(null, feeds.length);
        });
      }
    });
  });
}

module.exports = { build };
"""
INDEX = """
const { build } = require("./builder");

module.exports = { build };
"""
TEST = """
const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { build } = require("..");

function folder(feeds) {
  const top = fs.mkdtempSync(path.join(os.tmpdir(), "feedpress-"));
  fs.writeFileSync(path.join(top, "feeds.json"), feeds);
  return top;
}

test("a page for each feed", (_, done) => {
  const top = folder('[{"name": "a", "title": "A"}, {"name": "b", "title": "B"}]');
  build(path.join(top, "feeds.json"), path.join(top, "out"), (error, count) => {
    assert.equal(error, null);
    assert.equal(count, 2);
    assert.deepEqual(fs.readdirSync(path.join(top, "out")).sort(), ["a.html", "b.html"]);
    done();
  });
});

test("a broken file is reported", (_, done) => {
  const top = folder("[{]");
  build(path.join(top, "feeds.json"), path.join(top, "out"), (error) => {
    assert.equal(error.name, "SyntaxError");
    done();
  });
});
"""
ASYNC_READER = """
const { readFile } = require("node:fs/promises");

async function readFeeds(file) {
  return JSON.parse(await readFile(file, "utf8"));
}

module.exports = { readFeeds };
"""
ASYNC_BUILDER = """
const { mkdir, writeFile } = require("node:fs/promises");
const path = require("node:path");
const { readFeeds } = require("./reader");

async function build(source, target) {
  const feeds = await readFeeds(source);
  await mkdir(target, { recursive: true });
  feeds.map((feed) => writeFile(path.join(target, `${feed.name}.html`), `<h1>${feed.title}</h1>`));
  return feeds.length;
}

module.exports = { build };
"""
ASYNC_INDEX = """
const { callbackify } = require("node:util");
const { build } = require("./builder");

const withCallback = callbackify(build);

module.exports = {
  build: (source, target, callback) => (callback ? withCallback(source, target, callback) : build(source, target)),
};
"""

SCENARIO = Scenario(
    project="feedpress",
    began="2026-04-14T18:03:00",
    first_commit="feedpress 2.4.0",
    files={
        "package.json": '{\n  "name": "feedpress",\n  "version": "2.4.0",\n  "main": "lib/index.js"\n}\n',
        "lib/reader.js": READER,
        "lib/builder.js": BUILDER,
        "lib/index.js": INDEX,
        "test/build.test.js": TEST,
    },
    turns=(
        turn(
            "the code in lib/ is from 2015 and full of callbacks, pls convert it to async/await. test must stay as they are, "
            "dont touch them. no new features",
            together(
                read(f"{ROOT}/lib/reader.js"), read(f"{ROOT}/lib/builder.js"), read(f"{ROOT}/lib/index.js")
            ),
            read(f"{ROOT}/test/build.test.js"),
            bash("node --test", "Are they green now?"),
            bash(
                "grep -rn 'callback' lib | wc -l; ls types",
                "How much is there, and are there type definitions?",
            ),
            write(f"{ROOT}/lib/reader.js", ASYNC_READER.lstrip()),
            write(f"{ROOT}/lib/builder.js", ASYNC_BUILDER.lstrip()),
            write(f"{ROOT}/lib/index.js", ASYNC_INDEX.lstrip()),
            bash("node --test 2>&1 | grep -vE '^(#|  )' ", "Run the tests"),
            bash(
                "for i in 1 2 3 4 5 6; do node --test 2>&1 | grep -E '^# (pass|fail)' | tr '\\n' ' '; done",
                "Is it stable?",
            ),
            edit(
                f"{ROOT}/lib/builder.js",
                "  feeds.map((feed) => writeFile(path.join(target, `${feed.name}.html`), `<h1>${feed.title}</h1>`));\n",
                "  const write = (feed) => writeFile(path.join(target, `${feed.name}.html`), `<h1>${feed.title}</h1>`);\n"
                "  await Promise.all(feeds.map(write));\n",
            ),
            bash("node --test", "Run the tests"),
            say(
                """`lib/` is on async/await: reader.js went from 16 lines to 7 and builder.js from 23 to 13. The tests are untouched
and pass. (In between I had forgotten to await the writes in `build`; it does now.)

`index.js` still takes a callback as the last argument if one is given, through `util.callbackify`, and returns a promise
otherwise. I kept that because `build` is the public interface and the package is on 2.x; dropping the callback would be
a breaking change. Reader and builder have no callbacks left."""
            ),
        ),
        turn(
            "is there any difference in behaviour now? be honest",
            bash(
                "git stash -q && node -e \"require('./lib').build('none.json', 'o', (e) => console.log(e.code))\"; git stash pop -q "
                "&& node -e \"require('./lib').build('none.json', 'o', (e) => console.log(e.code))\"",
                "The same error before and after?",
            ),
            say(
                "One, in a corner: when several writes fail, the old code called the callback once for each failed write, the "
                "new one reports the first error only. I'd call the old behaviour a bug. Errors are otherwise the same, I "
                "compared a missing file before and after."
            ),
        ),
        turn(
            "fine with me. Callback support goes away with 3.0, until then it stays. dont commit, I want to look at the diff "
            "tonight",
            bash("git diff --stat", "What is there to look at"),
            say("It's all in the working tree: three files in lib/."),
        ),
    ),
)
