"""The frameworks that we know, by the dependency or the configuration file that gives them away."""

from __future__ import annotations

import re
from collections.abc import Iterable

# In the order in which they are shown.
FOR_TESTS = tuple(
    "pytest Hypothesis Jest Vitest Mocha AVA tap Jasmine Karma Playwright Cypress JUnit TestNG Mockito RSpec"
    " Minitest PHPUnit Testify Criterion Proptest Quickcheck".split()
)
NAMES = (
    *"Django Flask FastAPI Starlette aiohttp Tornado SQLAlchemy Pydantic Click".split(),
    *"React Vue Angular Svelte Next.js Nuxt Express Koa Fastify NestJS Electron".split(),
    *"Gin Echo Fiber Chi Cobra gRPC Actix Axum Rocket Tokio Serde Clap".split(),
    *("Spring", "Spring Boot", "Quarkus", "Micronaut", "Rails", "Sinatra", "Laravel", "Symfony"),
    *FOR_TESTS,
)

# What their packages are called; in go and maven a path or a group stands for all below it. `_` is a blank.
PACKAGES = {
    ecosystem: dict(pair.replace("_", " ").split("=") for pair in pairs.split())
    for ecosystem, pairs in {
        "pypi": """django=Django flask=Flask fastapi=FastAPI starlette=Starlette aiohttp=aiohttp
        tornado=Tornado sqlalchemy=SQLAlchemy pydantic=Pydantic click=Click grpcio=gRPC pytest=pytest
        hypothesis=Hypothesis playwright=Playwright""",
        "npm": """react=React vue=Vue @angular/core=Angular svelte=Svelte next=Next.js nuxt=Nuxt
        express=Express koa=Koa fastify=Fastify @nestjs/core=NestJS @nestjs/common=NestJS electron=Electron
        @grpc/grpc-js=gRPC grpc=gRPC jest=Jest vitest=Vitest mocha=Mocha ava=AVA tap=tap jasmine=Jasmine
        jasmine-core=Jasmine karma=Karma playwright=Playwright @playwright/test=Playwright cypress=Cypress""",
        "go": """github.com/gin-gonic/gin=Gin github.com/labstack/echo=Echo github.com/gofiber/fiber=Fiber
        github.com/go-chi/chi=Chi github.com/spf13/cobra=Cobra google.golang.org/grpc=gRPC
        github.com/stretchr/testify=Testify""",
        "cargo": """actix=Actix actix-web=Actix axum=Axum rocket=Rocket tokio=Tokio serde=Serde clap=Clap
        tonic=gRPC grpcio=gRPC criterion=Criterion proptest=Proptest quickcheck=Quickcheck""",
        "maven": """org.springframework=Spring org.springframework.boot=Spring_Boot io.quarkus=Quarkus
        io.micronaut=Micronaut io.grpc=gRPC junit=JUnit org.junit=JUnit org.testng=TestNG
        org.mockito=Mockito""",
        "gem": """rails=Rails sinatra=Sinatra grpc=gRPC rspec=RSpec rspec-core=RSpec rspec-rails=RSpec
        minitest=Minitest""",
        "composer": """laravel/framework=Laravel symfony/symfony=Symfony symfony/framework-bundle=Symfony
        phpunit/phpunit=PHPUnit""",
    }.items()
}
SEPARATORS = {"go": "/", "maven": "."}

FILES = re.compile(
    r"""(?P<Angular>angular\.json)
    |(?P<Svelte>svelte\.config\.[cm]?[jt]s)
    |(?P<Vue>vue\.config\.[cm]?[jt]s)
    |(?P<Next>next\.config\.[cm]?[jt]s)
    |(?P<Nuxt>nuxt\.config\.[cm]?[jt]s)
    |(?P<NestJS>nest-cli\.json)
    |(?P<Jest>jest\.config\.([cm]?[jt]s|json))
    |(?P<Vitest>vitest\.(config|workspace)\.[cm]?[jt]s)
    |(?P<Mocha>\.mocharc(\.\w+)?)
    |(?P<AVA>ava\.config\.[cm]?js)
    |(?P<tap>\.taprc)
    |(?P<Jasmine>jasmine\.(json|js|mjs))
    |(?P<Karma>karma\.conf\.[cm]?[jt]s)
    |(?P<Playwright>playwright\.config\.[cm]?[jt]s)
    |(?P<Cypress>cypress\.(config\.[cm]?[jt]s|json))
    |(?P<Symfony>symfony\.lock)
    |(?P<Laravel>artisan)
    |(?P<PHPUnit>phpunit\.xml(\.dist)?)
    |(?P<RSpec>\.rspec)""",
    re.VERBOSE,
)


def of_packages(ecosystem: str, packages: Iterable[str]) -> set[str]:
    known = PACKAGES.get(ecosystem, {})
    separator = SEPARATORS.get(ecosystem)
    found = set()
    for package in packages:
        name = package.partition(":")[0] if ecosystem == "maven" else package
        while separator and name and name not in known:
            name = name.rpartition(separator)[0]
        if name in known:
            found.add(known[name])
    return found


def of_files(names: Iterable[str]) -> set[str]:
    matches = (FILES.fullmatch(name) for name in names)
    kinds = (
        kind for match in matches if match for kind, text in match.groupdict().items() if text is not None
    )
    return {"Next.js" if kind == "Next" else kind for kind in kinds}


def called(name: str) -> set[str]:
    """The framework that a project is, going by its name: none is a framework of its own."""
    return {known for known in NAMES if known.lower() == name.lower()}
