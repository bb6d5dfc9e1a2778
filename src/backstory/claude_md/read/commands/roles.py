"""What a command is for, by its program and arguments. Pure.

Roles, in the order in which they are shown:

    install    brings what the project needs      lint      checks, types too, and changes nothing
    build      makes the program                  format    rewrites files
    run        starts it                          generate  writes code or data from others
    test       runs tests                         migrate   brings a database up to date
    one        runs a single test                 configure a step before a build, shown with it
    check      a task that runs checks of several kinds
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

COMMAND_ROLES = ("install", "build", "run", "test", "one", "check", "lint", "format", "generate", "migrate")
NONE = "-"  # a command that is known, and not for this list
WATCH = "watch"  # a command that waits for changes, or for answers; never shown as a check
WIPE = "wipe"  # a command that throws a database away; never shown, and what runs it brings none up to date

# Program, words that follow it, options that it must have, and the role. The first line that fits counts.
# `a|b` is either; `*` is any word; TASK stands for the name of a task, whose own recipe tells the role.
TABLE = """
cargo fmt --check                                   lint
cargo fmt                                           format
cargo clippy --fix                                  format
cargo fix                                           format
cargo test|t|nextest                                test
cargo insta test --accept|--review                  -
cargo insta test                                    test
cargo build --target                                -
cargo build|b                                       build
cargo xtask TASK                                    NAME
cargo run|r                                         run
cargo clippy|check|c|deny|machete|sort              lint
cargo-sort --check                                  lint
rustfmt --check                                     lint
rustfmt                                             format
go test                                             test
go build                                            build
go run                                              run
go vet                                              lint
go fmt                                              format
go generate                                         generate
go mod download                                     -
go tool TASK                                        -
gofmt|goimports|gofumpt -w                          format
gofmt|goimports|gofumpt -l|-d                       lint
golangci-lint fmt --diff                            lint
golangci-lint fmt                                   format
golangci-lint run --fix                             format
golangci-lint run                                   lint
staticcheck|revive                                  lint
gotestsum|ginkgo                                    test
buf lint|breaking                                   lint
buf|sqlc|templ generate                             generate
mockgen|protoc                                      generate
npm|pnpm|yarn|bun ci                                install
npm|pnpm|bun install|i --global|-g                  -
npm|pnpm|bun install|i *                            -
npm|pnpm|yarn|bun install|i|clean-install|bootstrap install
npm|pnpm|yarn add|link|publish|version|pack|dlx|create|init|config|audit|info|login|set -
bun test                                            test
bun build|add|create|init|upgrade                   -
npm|pnpm|yarn|bun run|run-script TASK               TASK
npm test|t|start                                    TASK
pnpm|yarn|bun TASK                                  TASK
yarn                                                install
turbo run TASK                                      NAME
turbo TASK                                          NAME
nx run-many|affected TASK                           NAME
nx TASK                                             NAME
lerna run TASK                                      NAME
lerna bootstrap                                     install
deno task TASK                                      TASK
deno fmt --check                                    lint
deno fmt                                            format
deno lint|check                                     lint
deno test                                           test
deno run                                            run
deno install *                                      -
deno install                                        install
tsc|vue-tsc --watch|-w                              watch
tsc|vue-tsc --noEmit                                lint
tsc|vue-tsc                                         build
vite build                                          build
vite preview                                        -
vite                                                run
next|nuxt|nuxi|astro|gatsby|remix|svelte-kit|react-router|ng|expo build build
next|nuxt|nuxi|astro|gatsby|remix|react-router dev  run
next|nuxt|astro|gatsby|ng lint|check                lint
next|nuxt|ng|expo|webpack|vue-cli-service start|serve run
ng test --watch=true                                watch
ng test                                             test
vue-cli-service build                               build
vue-cli-service lint                                lint
react-scripts start                                 run
react-scripts build                                 build
react-scripts test                                  test
webpack|rollup|esbuild|tsup|tsdown|parcel|unbuild|swc|microbundle|bunchee|pkgroll|babel|tsc-alias build
contentlayer|velite build                           build
storybook|start-storybook|build-storybook           -
eslint|xo|standard|stylelint|oxlint --fix           format
eslint|xo|standard|stylelint|oxlint|svelte-check|publint|attw|manypkg|knip|dprint|markdownlint lint
biome check|lint|ci --write|--fix|--apply           format
biome check|lint|ci                                 lint
biome format --write|--fix                          format
biome format                                        lint
prettier|oxfmt --check|-c|--list-different|-l       lint
prettier --write|-w                                 format
prettier                                            lint
oxfmt                                               format
jest|mocha|ava --watch|--watchAll|-w                watch
vitest watch|dev                                    watch
vitest --watch|-w|--ui                              watch
playwright install|install-deps|codegen|show-report    -
vitest|jest|mocha|ava|tap|jasmine|karma|uvu|c8|nyc|playwright|cypress|wtr|borp|tsd|start-server-and-test test
node --test                                         test
nodemon|ts-node-dev|tsx|ts-node                     run
prisma generate                                     generate
prisma migrate reset                                wipe
prisma migrate dev|deploy                           migrate
prisma db push --force-reset                        wipe
prisma db push                                      migrate
drizzle-kit generate                                generate
drizzle-kit migrate|push                            migrate
knex migrate:latest                                 migrate
typeorm schema:drop                                 wipe
typeorm migration:run                               migrate
sequelize|sequelize-cli db:drop                     wipe
sequelize|sequelize-cli db:migrate                  migrate
sqlx|diesel database reset|drop                     wipe
sqlx|diesel migrate|migration run                   migrate
goose|dbmate up                                     migrate
dbmate drop                                         wipe
graphql-codegen|openapi-generator-cli|swagger       generate
uv sync                                             install
uv pip install -e|-r|--editable|--requirement       install
uv build|publish|lock|export|pip|tool|python|add|version|cache|venv -
poetry install                                      install
poetry build|publish|add|lock|config|version|update|export|check -
pdm install|sync                                    install
pdm build|publish|add|lock|update                   -
pipenv install *                                    -
pipenv install|sync                                 install
hatch test                                          test
hatch fmt --check|-l                                lint
hatch fmt                                           format
hatch build|publish|version|env                     -
pip|pip3 install -e|-r|--editable|--requirement|--group install
pip|pip3 install .                                  install
pip|pip3                                            -
conda|mamba|micromamba env create                   install
pixi install                                        install
pixi run TASK                                       TASK
pytest|py.test|unittest|nose2|nosetests|stestr|trial|ward test
mypy|pyright|basedpyright|pyrefly|ty|slotscheck       lint
flake8|pylint|pycodestyle|pydocstyle|bandit|vulture|codespell|typos lint
ruff check --fix                                    format
ruff format --check|--diff                          lint
ruff format                                         format
ruff check                                          lint
black|isort --check|--check-only|-c|--diff          lint
black|isort|autopep8|yapf|pyupgrade                 format
djlint --reformat                                   format
djlint                                              lint
pre-commit|prek run                                 lint
pre-commit|prek install                             -
manage.py test                                      test
manage.py runserver                                 run
manage.py flush|reset_db                            wipe
manage.py migrate                                   migrate
manage.py check|makemigrations --check              lint
manage.py compilemessages|collectstatic             -
alembic upgrade                                     migrate
flask run                                           run
flask db upgrade                                    migrate
uvicorn|gunicorn|hypercorn|streamlit                run
jupyter lab|notebook                                run
quarto render                                       build
quarto preview                                      run
maturin develop                                     build
make|gmake distcheck|dist|install|clean|distclean   -
make|gmake|just|task|go-task|mage TASK              TASK
mise run|r TASK                                     TASK
mise install                                        install
poe|invoke|inv TASK                                 TASK
pdm run TASK                                        TASK
make|gmake                                          build
./autogen.sh|./bootstrap.sh|./bootstrap             configure
autoreconf|./configure|../configure                 configure
cmake --workflow                                    build
cmake --build --target                              -
cmake --build                                       build
cmake --install|--version|-E|-P                     -
cmake                                               configure
ctest                                               test
meson setup                                         configure
meson compile                                       build
meson test                                          test
ninja test                                          test
ninja install                                       -
ninja                                               build
clang-format --dry-run|-n                           lint
clang-format -i                                     format
clang-tidy|cppcheck|shellcheck|hadolint|actionlint|yamllint|editorconfig-checker lint
shfmt -w                                            format
shfmt -d|-l                                         lint
bazel|bazelisk build                                build
bazel|bazelisk test                                 test
bazel|bazelisk run                                  run
zig build test                                      test
zig build run                                       run
zig build                                           build
zig test                                            test
zig fmt --check                                     lint
zig fmt                                             format
mix deps.get                                        install
mix format --check-formatted                        lint
mix format                                          format
mix test                                            test
mix compile                                         build
mix phx.server                                      run
mix credo|dialyzer|sobelow                          lint
mix ecto.drop|ecto.reset|ecto.load                  wipe
mix ecto.migrate                                    migrate
mix hex|local.hex|local.rebar|escript.install|archive.install|release|docs|hex.publish -
mix TASK                                            TASK
rebar3 compile                                      build
rebar3 ct|eunit                                     test
gleam build|test|run                                NAME
dotnet restore                                      install
dotnet build                                        build
dotnet test                                         test
dotnet run|watch                                    run
dotnet format --verify-no-changes                   lint
dotnet format                                       format
dotnet ef database drop                             wipe
dotnet ef database update                           migrate
dotnet                                              -
swift build                                         build
swift test                                          test
swift run                                           run
swift format lint                                   lint
swift format                                        format
swiftlint --fix                                     format
swiftlint                                           lint
swiftformat --lint                                  lint
swiftformat                                         format
xcodebuild test                                     test
xcodebuild                                          build
pod install                                         install
flutter|dart pub get                                install
flutter test                                        test
flutter analyze                                     lint
flutter run                                         run
flutter build                                       build
dart test                                           test
dart analyze                                        lint
dart run build_runner                               generate
dart format --set-exit-if-changed                   lint
dart format                                         format
melos bootstrap                                     install
melos run TASK                                      NAME
cabal build                                         build
cabal test                                          test
cabal run                                           run
stack build --test                                  test
stack build                                         build
stack test                                          test
stack run                                           run
hlint                                               lint
ormolu|fourmolu --mode                              lint
gulp|grunt TASK                                     NAME
sbt TASK                                            NAME
ant TASK                                            NAME
bundle install                                      install
bundle                                              install
rspec|minitest|cucumber                             test
brakeman -I|--interactive-ignore                    watch
rubocop|standardrb -a|-A|--autocorrect|--autocorrect-all|--fix|--fix-unsafely format
rubocop|standardrb|brakeman|erb_lint|erblint|database_consistency|haml-lint lint
rails server|s                                      run
rails test|spec                                     test
rails|rake db:drop|db:reset|db:setup|db:purge|db:truncate_all wipe
rails|rake db:schema:load|db:structure:load|db:migrate:reset wipe
rails|rake db:prepare|db:migrate                    migrate
rails|rake spec|test|default                        test
rails|rake lint|standard|rubocop                    lint
bin/setup|script/setup|script/bootstrap             install
bin/dev|bin/server|script/server                    run
foreman|overmind start                              run
composer install                                    install
composer update|require|validate|dump-autoload      -
composer run|run-script TASK                        TASK
composer TASK                                       TASK
phpunit|pest|paratest|simple-phpunit                test
artisan serve                                       run
artisan test                                        test
artisan migrate:fresh|migrate:refresh|migrate:reset|db:wipe wipe
artisan migrate                                     migrate
phpstan|psalm|phpcs|phpmd|rector                    lint
php-cs-fixer --dry-run                              lint
pint --test                                         lint
php-cs-fixer|phpcbf|pint                            format
docker compose up                                   run
docker-compose up                                   run
terraform fmt -check                                lint
terraform validate                                  lint
"""

# Programs that run another one: what stands between it and that, and which of their options take a value.
WRAPPERS = {
    "uv run": "--python -p --group --extra --with --package --project --directory --env-file --only-group"
    " --no-group --with-editable --with-requirements",
    "poetry run": "",
    "pdm run": "-p",
    "pipenv run": "",
    "hatch run": "",
    "rye run": "",
    "pixi run": "-e --environment",
    "conda run": "-n --name -p --prefix",
    "npx": "-p --package",
    "bunx": "",
    "pnpm exec": "--filter -F -C",
    "yarn exec": "",
    "npm exec": "-p --package",
    "bundle exec": "",
    "xvfb-run": "-s --server-args -n",
    "cross-env": "",
    "dotenv": "-e -f",
    "nix develop": "",
    "nix-shell": "",
    "mise exec": "",
    "mise x": "",
    "time": "",
    "php": "",
    "coverage run": "--source -p --rcfile",
    "turbo exec": "",
}
# Options by which a formatter only checks; without them it rewrites.
CHECK_OPTIONS = frozenset(
    "--check --check-formatted --diff --check-only --verify-no-changes --dry-run --list-different".split()
)
CHECKING_FORMATTERS = frozenset(
    (
        "cargo fmt",
        "mix format",
        "ruff format",
        "black",
        "isort",
        "zig fmt",
        "deno fmt",
        "dotnet format",
        "hatch fmt",
    )
)
PYTHON = re.compile(r"(?:python|pypy)[\d.]*|py")
# Options before the word that says what to do, which take a value.
WITH_VALUE = frozenset(
    "-C -f --filter -F --prefix --cwd --dir --manifest-path --file --directory --project --project-dir"
    " --color --makefile --justfile --taskfile --rcfile --config --projects".split()
)
PINNING = frozenset(  # what a developer needs not say: it makes sure of the lock, or is gone (pipenv --three)
    "--locked --frozen --frozen-lockfile --immutable --no-progress --no-interaction --prefer-offline --quiet"
    " --verbose --no-audit --no-fund --color=always --show-diff-on-failure --prefer-dist --ci"
    " --no-default-groups --three --offline --no-daemon --stacktrace --info".split()
)

# What the name of a task says about it.
WORDS = {
    word: role
    for role, words in {
        "install": "install setup bootstrap",
        "build": "build compile bundle",
        "run": "run start dev serve server develop",
        "test": "test tests testall testsuite unit spec pytest jest vitest e2e integration check-test",
        "lint": "lint eslint typecheck typing types type tsc mypy style standard clippy vet rubocop ruff"
        " flake8 precommit stan phpstan credo lints",
        "format": "format fmt prettier black pretty reformat",
        "generate": "generate gen codegen proto protos protobuf",
        "migrate": "migrate migrations",
    }.items()
    for word in words.split()
}
NOT_SHOWN = frozenset(
    "release publish deploy docs doc documentation site website bench benchmark benchmarks benches clean"
    " cleanup distclean coverage cov watch docker image images podman prod production update upgrade record"
    " snapshot snapshots storybook pre post ci preview profile debug package dist uninstall help version"
    " changelog pages nightly fuzz perf stress demo demos example examples i18n translations"
    " push tag bump cross windows wasm android ios msrv minimal audit install-hooks sdist wheel"
    " appimage flatpak snap rpm deb homebrew brew sbom binary binaries darwin ubuntu debian fedora macos"
    " seed".split()
)
# What a name says beside `migrate` that brings no database up to date.
NOT_FORWARD = frozenset(
    "reset drop fresh refresh rollback down undo revert redo create make new add wipe status".split()
)
# Tasks of Rails that throw away what is in the database, wherever they stand in a line.
RAILS_WIPES = frozenset(
    "db:drop db:reset db:setup db:purge db:truncate_all db:schema:load db:structure:load"
    " db:migrate:reset".split()
)
REWRITES = frozenset("fix write apply autofix fixer".split())
CHECKS = frozenset("check verify diff validate dry".split())
# Behind `test` or `e2e`: what is done around tests.
AROUND_TESTS = frozenset(
    "up down start stop setup teardown clean install deps update watch ui report server".split()
)
ALIASES = {"i": "install"}  # of npm and those like it
FOR_ALL = frozenset(
    "all ci checks code commit complete everything full pr pre preflight qa quality ready run".split()
)
FILE_NAME = re.compile(r"[^/]+\.\w{1,12}", re.ASCII)
NAME_PARTS = re.compile(r"[^:_./\-]+")

TaskRole = Callable[
    [str, str], str | None
]  # (program, name of the task) -> role; None: there is no such task


def is_aside(name: str) -> bool:
    """Whether the name of a task says that it is for something else than a developer's everyday work."""
    return not NOT_SHOWN.isdisjoint(part.lower() for part in NAME_PARTS.findall(name))


def is_of_docs(name: str) -> bool:
    return not {"docs", "doc", "documentation", "site", "website"}.isdisjoint(
        NAME_PARTS.findall(name.lower())
    )


def is_around_tests(name: str) -> bool:
    """Whether the name of a task is for what tests need, or leave: `e2e:up`."""
    parts = [part.lower() for part in NAME_PARTS.findall(name)]
    return len(parts) > 1 and parts[-1] in AROUND_TESTS and "test" in {WORDS.get(part) for part in parts[:-1]}


def is_file(name: str) -> bool:
    """Whether a target of a Makefile is something that is made, not something to do."""
    return "/" in name or (FILE_NAME.fullmatch(name) is not None and role_of_name(name) is None)


def is_for_all(name: str) -> bool:
    """Whether the name of a task says nothing but that it checks: `check-all`, `ci`; not `ui:check`."""
    parts = {part.lower() for part in NAME_PARTS.findall(name)}
    return all(part in CHECKS | FOR_ALL or WORDS.get(part) == "lint" for part in parts) and not parts & {
        "type",
        "types",
        "typing",
    }


def is_clear(name: str) -> bool:
    """Whether the name of a task says nothing but its role: `test`, `type-check`, `test:unit`."""
    return {part.lower() for part in NAME_PARTS.findall(name)} <= {*WORDS, *CHECKS, *REWRITES}


def role_of_name(name: str) -> str | None:
    """What the name of a task or a script says that it is for."""
    parts = [part.lower() for part in NAME_PARTS.findall(name)]
    roles = [WORDS[part] for part in parts if part in WORDS and not is_around_tests(name)]
    if "migrate" in roles and not NOT_FORWARD.isdisjoint(parts):
        roles = [role for role in roles if role != "migrate"]
    if {"type", "types"} & {*parts} and "check" in parts:
        return "lint"
    if not roles:
        return "lint" if parts in (["check"], ["checks"]) else None
    if roles[0] in ("lint", "format"):
        if not REWRITES.isdisjoint(parts):
            return "format"
        return "lint" if roles[0] == "lint" or not CHECKS.isdisjoint(parts) else "format"
    if parts[0] == "run" and parts[1:]:  # run-tests, run-all-checks
        return roles[1] if len(roles) > 1 else None if parts[-1] in CHECKS | FOR_ALL else "run"
    return roles[0]


TAKE_SEVERAL = frozenset(("make", "gmake", "just", "task", "go-task"))  # tasks, to be run one after another


def role_of(words: Sequence[str], task_role: TaskRole) -> tuple[str, str] | None:
    """(role, what it comes down to: the program and the word that says what to do) of a simple command. The
    second is the same for two commands that differ only in options."""
    words = unwrapped(words)
    if not words:
        return None
    program = _program(words[0])
    plain, options = _arguments(words[1:])
    if program in ("rails", "rake", "xcodebuild"):  # of several tasks, one that wipes tells, or tests
        telling = {"test"} if program == "xcodebuild" else RAILS_WIPES
        plain = sorted(plain, key=lambda word: word not in telling)
    if program in ("tox", "nox"):
        return _of_sessions(program, words[1:], task_role)
    if program in GOALS:
        return _of_goals(program, plain)
    if program in ("make", "gmake"):
        plain = [word for word in plain if not word.isdigit() and "=" not in word]  # -j 4, CC=clang
    for row in _ROWS.get(program, ()):
        if not row.fits(plain, options):
            continue
        if row.role not in ("TASK", "NAME"):
            word = " ".join(plain[: len(row.words)])
            return row.role, f"{program} {ALIASES.get(word, word)}".rstrip()
        return _of_task(program, row, plain, task_role)
    path = plain[0] if program in SHELLS and plain else words[0]
    is_path = path != words[0] or "/" in path or path.endswith(SCRIPT_ENDINGS)
    role = task_role("script", path) if is_path else None
    if role == "format" and not CHECK_OPTIONS.isdisjoint(options):
        role = "lint"
    return (role, path) if role else None


def _of_task(program: str, row: _Row, plain: Sequence[str], task_role: TaskRole) -> tuple[str, str] | None:
    at = next((at for at, word in enumerate(row.words) if "TASK" in word), None)
    if row.role == "NAME":
        named = plain[at or 0 :]
        roles = [role for name in named if (role := role_of_name(name))]
        name = " ".join(named)
        return ("test" if "test" in roles else roles[0], f"{program} {name}") if roles else None
    name = plain[at] if at is not None else plain[0]
    if role := task_role(program, name):
        several = plain[at or 0 :] if program in TAKE_SEVERAL else ()
        if {"lint", "test"} <= {task_role(program, one) for one in several}:
            return "check", " ".join([program, *several])
        return role, f"{program} {name}"
    if at == 0 and program in ("pnpm", "yarn", "bun"):  # it need not be a script: yarn eslint
        return role_of(plain, lambda *_: None)
    return None


SESSION_VERBS = frozenset(("run", "r", "run-parallel", "p"))


def _of_sessions(program: str, arguments: Sequence[str], task_role: TaskRole) -> tuple[str, str] | None:
    """tox and nox run all of their environments, or those that they are told; what else is told is a sentence
    and no command."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    plain = [word for above, word in pairwise(["", *own]) if not word.startswith("-") and above[:1] != "-"]
    if any(word not in SESSION_VERBS and not task_role(program, word) for word in plain):
        return None
    named = [
        name
        for option, value in pairwise([*arguments, ""])
        if option in ("-e", "-s", "--session", "--sessions")
        for name in value.split(",")
    ]
    named += [name for word in arguments if word.startswith(("-e=", "-s=")) for name in word[3:].split(",")]
    if not named:
        return "test", program
    roles = [task_role(program, name) for name in named]
    return (roles[0], f"{program} {named[0]}") if roles[0] else None


def _of_goals(program: str, plain: Sequence[str]) -> tuple[str, str] | None:
    """Gradle and Maven take any number of goals, of any project: `:core:test`."""
    roles = []
    for goal in plain:
        name = goal if ":" in goal and program.startswith("mvn") else goal.rpartition(":")[2]
        if role := next((role for goals, role in GOALS[program].items() if goals.fullmatch(name)), None):
            roles.append(role)
    if not roles or NONE in roles:
        return None
    role = "test" if "test" in roles else roles[0]
    return role, f"{program} {role}"


def is_single_test(words: Sequence[str]) -> bool:
    """Whether a test command runs only what it is told: `-run X`, `--tests X`, a file."""
    return [*words] != without_choice(words)


def without_choice(words: Sequence[str]) -> list[str]:
    """A test command without what chooses among the tests."""
    inner = unwrapped(words)
    program = _program(inner[0]) if inner else ""
    options = CHOOSING.get(program, frozenset()) | {"--testNamePattern", "-Dtest", "-Dit.test"}
    kept = list(words[: len(words) - len(inner) + 1])
    is_value = False
    for word in inner[1:]:
        is_option = word.partition("=")[0] in options
        if not is_value and not is_option and not TEST_FILE.fullmatch(word.partition("::")[0]):
            kept.append(word)
        is_value = is_option and "=" not in word
    return kept[:-1] if kept[-1:] == ["--"] else kept


def without_watching(words: Sequence[str]) -> str:
    """What a test command needs to end by itself where no CI is set; empty: nothing."""
    words = unwrapped(words)
    program = _program(words[0]) if words else ""
    rest = words[1:]
    if program == "vitest":
        is_told = any(
            word in ("run", "bench", "list", "related") or word.startswith("--run") for word in rest
        )
        ending = "" if is_told else "run"
    elif program == "ng" and rest[:1] == ["test"]:
        ending = "--watch=false"
    elif program == "react-scripts" and rest[:1] == ["test"]:
        ending = "--watchAll=false"
    else:
        return ""
    return "" if any("watch" in word for word in rest) else ending


def unwrapped(words: Sequence[str]) -> list[str]:
    """The command that `uv run`, `npx`, `python -m` and the like run in the end."""
    rest = list(words)
    if rest[:2] == ["mix", "bun"]:  # and what it is set up for: mix bun assets run test
        rest = ["bun", *rest[3:]]
    for _ in range(10):
        while rest and ASSIGNED.match(rest[0]):
            rest = rest[1:]
        inner = _inner(rest)
        if inner is None:
            break
        rest = inner
    return rest


def _inner(words: list[str]) -> list[str] | None:
    if len(words) < 2:
        return None
    first = words[0].rpartition("/")[2]
    if PYTHON.fullmatch(first):
        if "-m" in words[1:4]:
            return words[words.index("-m") + 1 :]
        return words[1:] if words[1].endswith(".py") else None
    if words[:2] in (["docker", "compose"], ["docker-compose", "exec"], ["docker-compose", "run"]):
        at = next((at for at, word in enumerate(words[:6]) if word in ("exec", "run")), 0)
        return _behind_options(words[at + 1 :], "-u --user -e --env -w --workdir")[1:] if at else None
    for length in (2, 1):
        name = " ".join([first, *words[1:length]])
        if name in WRAPPERS and len(words) > length:
            return _behind_options(words[length:], WRAPPERS[name])
    return None


def _behind_options(words: list[str], with_value: str) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in with_value.split() else 1
        if words[at - 1] == "--":
            break
    return words[at:]


def _program(word: str) -> str:
    known = word.removeprefix("./")
    if word in _ROWS or known in _ROWS:
        return word if word in _ROWS else known
    name = known.rpartition("/")[2].removesuffix(".cmd").removesuffix(".bat")
    return name.partition("@")[0] or name


def _arguments(words: Sequence[str]) -> tuple[list[str], frozenset[str]]:
    """The words that are no options, nor values of those that stand before a subcommand; and the options."""
    plain: list[str] = []
    options: set[str] = set()
    is_value = False
    for word in words:
        if word == "--" and plain:
            options.update(word for word in words if word.startswith("-"))  # cargo fmt -- --check
            break
        if is_value:
            is_value = False
        elif word.startswith("-") and len(word) > 1:
            options.add(word.partition("=")[0])
            is_value = word in WITH_VALUE
        elif not word.startswith("+"):
            plain.append(word)
    return plain, frozenset(options)


GOALS = {
    name: {re.compile(goals): role for goals, role in table.items()}
    for names, table in (
        (
            ("gradle", "gradlew"),
            {
                "publish.*|javadoc|dokka.*|.*[Rr]elease.*|jacoco.*": NONE,
                "test|check|connectedCheck|allTests|.*Test": "test",
                "build|assemble\\w*|classes|jar|installDist": "build",
                "run|bootRun|quarkusDev|runIde": "run",
                "spotlessCheck|checkstyle\\w*|lint\\w*|detekt\\w*|ktlintCheck|pmdMain|apiCheck": "lint",
                "spotlessApply|ktlintFormat": "format",
            },
        ),
        (
            ("mvn", "mvnw"),
            {
                "deploy|site|release:.*|javadoc:.*": NONE,
                "test|verify|integration-test|surefire:test": "test",
                "package|compile|install|test-compile": "build",
                "spring-boot:run|quarkus:dev|exec:java": "run",
                "spotless:check|checkstyle:check|pmd:check|spotbugs:check|formatter:validate": "lint",
                "spotless:apply|formatter:format": "format",
            },
        ),
    )
    for name in names
}
# Options that choose among the tests.
CHOOSING = {
    program: frozenset(options.split())
    for programs, options in {
        "gradle gradlew": "--tests",
        "go gotestsum": "-run --run",
        "cargo": "-E --filterset -p --package",
        "pytest py.test": "-k",
        "dotnet swift phpunit pest artisan": "--filter",
        "vitest jest": "-t",
        "ctest": "-R --tests-regex",
        "rspec": "-e --example",
        "flutter dart": "--name --plain-name",
        "mocha": "-g --grep",
    }.items()
    for program in programs.split()
}
TEST_FILE = re.compile(
    r"[\w./@-]{1,200}\.(?:py|go|rs|rb|exs|php|java|kt|cs|swift|dart|[cm]?[jt]sx?)(?::\d{1,6})?", re.ASCII
)
SHELLS = frozenset("bash sh zsh node ruby perl".split())
SCRIPT_ENDINGS = (".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb")
ASSIGNED = re.compile(r"[A-Za-z_]\w*=", re.ASCII)


class _Row:
    """A line of the table."""

    __slots__ = ("options", "role", "words")

    def __init__(self, words: list[str], role: str) -> None:
        sets = [frozenset(word.split("|")) for word in words]
        self.words = [names for names in sets if not any(name.startswith("-") for name in names)]
        self.options = [names for names in sets if names not in self.words]
        self.role = role

    def fits(self, plain: Sequence[str], options: frozenset[str]) -> bool:
        return (
            len(plain) >= len(self.words)
            and all(
                word in names or not names.isdisjoint(("TASK", "*")) or ("." in names and word[:1] == ".")
                for names, word in zip(self.words, plain, strict=False)
            )
            and all(not names.isdisjoint(options) for names in self.options)
        )


def _rows() -> dict[str, list[_Row]]:
    rows: dict[str, list[_Row]] = {}
    for line in TABLE.strip().splitlines():
        programs, *words, role = line.split()
        row = _Row(words, role)
        for program in programs.split("|"):
            rows.setdefault(program, []).append(row)
    return rows


_ROWS = _rows()
