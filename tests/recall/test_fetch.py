"""Only public addresses are fetched, only once looked up, only text, only so much and only so long."""

from __future__ import annotations

import gzip
import ipaddress
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from backstory.errors import BadInput, NotFound
from backstory.recall.documents.fetch import Address, Fetched, fetch, is_forbidden, page

pytestmark = pytest.mark.slow

Answer = Callable[["Handler"], None]
PUBLIC = "93.184.215.14"


class Handler(BaseHTTPRequestHandler):
    answers: dict[str, Answer]
    asked: list[tuple[str, dict[str, str]]]

    def do_GET(self) -> None:
        self.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        try:
            self.answers[urlsplit(self.path).path](self)
        except OSError:
            pass  # the client had enough

    def log_message(self, format: str, *args: object) -> None:
        pass

    def send(self, body: bytes = b"", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Type": "text/html", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class Site:
    """A web server on loopback, and a resolver by which every name leads to it."""

    def __init__(self, port: int, handler: type[Handler]) -> None:
        self.port = port
        self.answers = handler.answers
        self.asked = handler.asked
        self.looked_up: list[str] = []
        self.names: dict[str, list[str]] = {}

    def resolve(self, host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        self.looked_up.append(host)
        addresses = self.names.get(host, ["127.0.0.1"])
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    def url(self, path: str, host: str = "site.example") -> str:
        return f"http://{host}:{self.port}{path}"

    def fetch(self, path: str, **options: Any) -> Fetched:
        return fetch(self.url(path), **{"resolve": self.resolve, "forbidden": but_loopback, **options})

    def redirect(self, path: str, location: str, status: int = 302) -> None:
        self.answers[path] = lambda handler: handler.send(status=status, Location=location)


def but_loopback(address: Address) -> bool:
    return is_forbidden(address) and address != ipaddress.ip_address("127.0.0.1")


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Site]:
    handler = type("Fresh", (Handler,), {"answers": {}, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Site(server.server_address[1], handler)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as site:
        yield site


# What comes back.


def test_a_page_comes_back_with_its_type_and_charset(site: Site) -> None:
    site.answers["/a"] = lambda handler: handler.send(b"<p>hi", Content_Type="Text/HTML; charset=Latin-1")
    assert site.fetch("/a?q=1#part") == Fetched(site.url("/a?q=1"), "text/html", "latin-1", b"<p>hi")


def test_the_request_carries_nothing_of_the_user(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    Path(Path.home(), ".netrc").write_text("default login me password secret\n")
    site.answers["/a"] = lambda handler: handler.send(b"x", Set_Cookie="a=b")
    site.fetch("/a")
    site.fetch("/a")
    path, headers = site.asked[1]
    assert path == "/a"
    assert set(headers) == {"host", "user-agent", "accept", "accept-encoding", "connection"}
    assert headers["accept-encoding"] == "identity"
    assert headers["host"] == f"site.example:{site.port}"


def test_letters_that_a_url_cannot_hold_are_quoted(site: Site) -> None:
    site.answers["/caf%C3%A9"] = lambda handler: handler.send(b"x")
    assert site.fetch("/café?ü=%20").url == site.url("/caf%C3%A9?%C3%BC=%20")


@pytest.mark.parametrize(
    "kind", ["text/plain", "text/markdown", "text/x-rst", "application/xhtml+xml", "text/x"]
)
def test_text_is_taken(site: Site, kind: str) -> None:
    site.answers["/a"] = lambda handler: handler.send(b"x", Content_Type=kind)
    assert site.fetch("/a").content_type == kind


@pytest.mark.parametrize("kind", ["application/pdf", "image/png", "application/json", ""])
def test_anything_else_is_refused_with_its_type(site: Site, kind: str) -> None:
    site.answers["/a"] = lambda handler: handler.send(b"x", Content_Type=kind)
    with pytest.raises(BadInput, match=kind or "nothing"):
        site.fetch("/a")


@pytest.mark.parametrize("status", [204, 206, 304, 401, 403, 404, 500, 503])
def test_a_status_other_than_200_is_an_error_with_the_code(site: Site, status: int) -> None:
    site.answers["/a"] = lambda handler: handler.send(status=status)
    with pytest.raises(NotFound, match=str(status)):
        site.fetch("/a")


def test_a_compressed_answer_is_refused(site: Site) -> None:
    bomb = gzip.compress(b"x" * 1_000_000)
    site.answers["/a"] = lambda handler: handler.send(bomb, Content_Encoding="gzip")
    with pytest.raises(BadInput, match="gzip"):
        site.fetch("/a")


# Where it may lead.

FORBIDDEN = """
127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 169.254.1.1
100.64.0.1 100.100.100.200 192.0.0.192 192.0.2.1 203.0.113.9 192.88.99.1 198.18.0.1 224.0.0.1 240.0.0.1
255.255.255.255 168.63.129.16 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
fe80::1 fec0::1 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 2001:2::1 3fff::1 4000::1 100::1 2002:7f00:1::
2002:a00:1::1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2001:0:4136:e378:8000:63bf:80ff:fffe
2001:0:a00:1:8000:63bf:a247:28f1
""".split()


@pytest.mark.parametrize("address", FORBIDDEN)
def test_an_address_of_our_own_surroundings_is_forbidden(address: str) -> None:
    assert is_forbidden(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        PUBLIC,
        "1.1.1.1",
        "100.128.0.1",
        "2606:4700::1111",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::",
    ],
)
def test_a_public_address_is_not(address: str) -> None:
    assert not is_forbidden(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "host",
    "127.0.0.1 2130706433 0x7f000001 0x7f.1 127.1 0177.0.0.1 0 localhost localhost. LOCALHOST 127.0.0.1."
    " [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:0:0:1] 127。0。0。1 １２７.0.0.1 ①②⑦.0.0.1"
    " [64:ff9b::127.0.0.1] 169.254.169.254 [fd00:ec2::254]".split(),
)
def test_no_spelling_of_this_machine_gets_through(site: Site, host: str) -> None:
    """With the system's own resolver, and a server there that would answer."""
    site.answers["/"] = lambda handler: handler.send(b"secret")
    with pytest.raises((BadInput, NotFound)):
        fetch(site.url("/", host), timeout=5)
    assert site.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org/page",
        "//example.org/page",
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://example.org/",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "http://user@site.example/",
        "http://user:secret@site.example/",
        "http://site.example\\@127.0.0.1/",
        "http://site.example:port/",
        "http://site.example:99999/",
        "http://[::1/",
        "http://[fe80::1%25lo]/",
        "http://site.example%00.org/",
        "http://%31%32%37.0.0.1/",
        "http://a..b/",
        "http://site.example/a b",
        "http://site.example/\r\nX-Evil: 1",
        "http://site.ex\nample/",
        " http://site.example/",
        "http://site.example/\0",
        "http://" + "a" * 64 + ".example/",
        "http://site.example/" + "a" * 2000,
        "http://evil℀.example/",
    ],
)
def test_what_is_no_url_for_us_is_refused_before_any_lookup(url: str) -> None:
    def resolve(*_: object, **__: object) -> list[tuple[Any, ...]]:
        raise AssertionError("looked up")

    with pytest.raises(BadInput) as refusal:
        fetch(url, resolve=resolve)
    assert "secret" not in str(refusal.value)


def test_one_private_address_among_public_ones_condemns_the_name(site: Site) -> None:
    site.names["site.example"] = [PUBLIC, "10.0.0.1"]
    with pytest.raises(BadInput, match=r"10\.0\.0\.1"):
        site.fetch("/")


def test_a_name_is_looked_up_once_and_the_address_that_was_judged_is_used(site: Site) -> None:
    site.answers["/a"] = lambda handler: handler.send(b"x")
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])

    def resolve(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        site.names[host] = next(answers)
        return site.resolve(host, port)

    assert site.fetch("/a", resolve=resolve).body == b"x"
    assert site.looked_up == ["site.example"]


def test_a_name_that_rebinds_between_two_hops_is_judged_again(site: Site) -> None:
    site.redirect("/a", "/b")
    site.answers["/b"] = lambda handler: handler.send(b"secret")
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])

    def resolve(host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        site.names[host] = next(answers)
        return site.resolve(host, port)

    with pytest.raises(BadInput, match=r"169\.254\.169\.254"):
        site.fetch("/a", resolve=resolve)
    assert [path for path, _ in site.asked] == ["/a"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(site: Site, status: int) -> None:
    site.redirect("/a", f"http://other.example:{site.port}/b c", status)
    site.answers["/b%20c"] = lambda handler: handler.send(b"x")
    assert site.fetch("/a").url == site.url("/b%20c", "other.example")
    assert site.looked_up == ["site.example", "other.example"]


@pytest.mark.parametrize(
    "location",
    [
        "http://10.0.0.1/",
        "http://inside.example/",
        "//inside.example/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "http://user:pw@site.example/",
        "http://[::1",
        "javascript:1",
    ],
)
def test_a_redirect_to_where_we_would_not_go_is_refused(site: Site, location: str) -> None:
    site.redirect("/a", location)
    for host, address in (("10.0.0.1",) * 2, ("inside.example", "10.0.0.1"), ("169.254.169.254",) * 2):
        site.names[host] = [address]
    with pytest.raises(BadInput):
        site.fetch("/a")
    assert [path for path, _ in site.asked] == ["/a"]


def test_five_redirects_are_followed_and_no_more(site: Site) -> None:
    for number in range(6):
        site.redirect(f"/{number}", f"/{number + 1}")
    site.answers["/6"] = lambda handler: handler.send(b"x")
    assert site.fetch("/1").body == b"x"
    with pytest.raises(BadInput, match="5 times"):
        site.fetch("/0")


def test_a_redirect_to_nowhere_is_an_error(site: Site) -> None:
    site.answers["/a"] = lambda handler: handler.send(status=302)
    with pytest.raises(NotFound, match="302"):
        site.fetch("/a")


# Where a redirect may lead, where somebody says so.

OWN = ("docs.example", "Help.Example.")


@pytest.mark.parametrize("host", ["docs.example", "help.example", "DOCS.example.", "site.example"])
def test_a_redirect_within_the_named_hosts_is_followed(site: Site, host: str) -> None:
    site.redirect("/a", f"http://{host}:{site.port}/b")
    site.answers["/b"] = lambda handler: handler.send(b"x")
    assert site.fetch("/a", hosts=OWN).body == b"x"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "docs.example.evil.example",
        "xdocs.example",
        "sub.docs.example",
        "127.0.0.1",
        "docs。evil",
    ],
)
def test_a_redirect_to_any_other_host_is_refused_before_it_is_looked_up(site: Site, host: str) -> None:
    site.redirect("/a", f"http://{host}:{site.port}/b".encode().decode("latin-1"))
    site.answers["/b"] = lambda handler: handler.send(b"secret")
    with pytest.raises(BadInput, match="not one of its own hosts"):
        site.fetch("/a", hosts=OWN)
    assert [path for path, _ in site.asked] == ["/a"]
    assert site.looked_up == ["site.example"]


def test_no_redirect_of_a_chain_may_leave_the_named_hosts(site: Site) -> None:
    site.redirect("/a", f"http://docs.example:{site.port}/b")
    site.redirect("/b", f"//evil.example:{site.port}/c")
    with pytest.raises(BadInput, match=r"evil\.example"):
        site.fetch("/a", hosts=OWN)
    assert site.looked_up == ["site.example", "docs.example"]


def test_a_named_host_that_leads_inside_is_refused_all_the_same(site: Site) -> None:
    site.names["docs.example"] = ["169.254.169.254"]
    site.redirect("/a", "http://docs.example/b")
    with pytest.raises(BadInput, match=r"169\.254\.169\.254"):
        site.fetch("/a", hosts=OWN)


def test_with_no_hosts_named_a_page_may_only_move_within_its_own(site: Site) -> None:
    site.redirect("/a", "/b")
    site.answers["/b"] = lambda handler: handler.send(b"x")
    assert site.fetch("/a", hosts=()).body == b"x"
    site.redirect("/b", f"http://other.example:{site.port}/a")
    with pytest.raises(BadInput, match="own hosts"):
        site.fetch("/a", hosts=())


# A page as text.


def test_a_page_comes_as_the_text_that_matters_on_it(site: Site) -> None:
    site.answers["/a"] = lambda handler: handler.send(
        b"<html><body><nav>Menu</nav><main><h1>Tests</h1><p>Run <b>them</b> often.</p></main></body></html>"
    )
    assert read(site, "/a") == "# Tests\n\nRun them often."


def test_markdown_and_plain_text_come_as_they_are(site: Site) -> None:
    for kind in ("text/markdown", "text/plain; charset=latin-1"):
        site.answers["/a"] = lambda handler, kind=kind: handler.send(  # type: ignore[misc]
            b"# T\xe4glich" if "latin" in kind else "# Täglich".encode(), Content_Type=kind
        )
        assert read(site, "/a") == "# Täglich"


@pytest.mark.parametrize("charset", ["zlib", "bz2", "base64", "hex", "uu", "rot13", "quopri", "x"])
def test_a_charset_that_is_none_is_passed_over(site: Site, charset: str) -> None:
    kind = f"text/plain; charset={charset}"
    site.answers["/a"] = lambda handler: handler.send("# Täglich".encode(), Content_Type=kind)
    assert read(site, "/a") == "# Täglich"


def read(site: Site, path: str, **options: Any) -> str:
    return page(
        site.url(path), **{"hosts": OWN, "resolve": site.resolve, "forbidden": but_loopback, **options}
    )


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/pdf", "text/css", "text/javascript", "application/xhtml+xml", ""],
)
def test_a_page_of_another_kind_is_refused(site: Site, kind: str) -> None:
    site.answers["/a"] = lambda handler: handler.send(b"Run the tests.", Content_Type=kind)
    with pytest.raises(BadInput):
        read(site, "/a")


def test_a_page_may_have_two_megabytes(site: Site) -> None:
    site.answers["/a"] = lambda handler: handler.send(b"x" * 2_000_000, Content_Type="text/plain")
    site.answers["/b"] = lambda handler: handler.send(b"x" * 2_000_001, Content_Type="text/plain")
    assert len(read(site, "/a")) == 2_000_000
    with pytest.raises(BadInput, match="2,000,000 bytes"):
        read(site, "/b")


def test_a_page_without_text_and_one_that_moved_away_are_refused(site: Site) -> None:
    site.answers["/a"] = lambda handler: handler.send(b"<html><script>let x = 1</script></html>")
    site.redirect("/b", "http://evil.example/")
    for path in ("/a", "/b"):
        with pytest.raises(BadInput):
            read(site, path)


# How much and how long.


@pytest.mark.parametrize("stated", ["1001", "5", None])
def test_no_more_is_read_than_the_limit_whatever_the_server_says(site: Site, stated: str | None) -> None:
    header: dict[str, Any] = {"Content_Length": stated} if stated else {}
    site.answers["/a"] = lambda handler: handler.send(b"x" * 1001, **header)
    if stated == "5":
        assert len(site.fetch("/a", limit=1000).body) == 5
    else:
        with pytest.raises(BadInput, match="1,000 bytes"):
            site.fetch("/a", limit=1000)


def test_as_much_as_the_limit_is_read(site: Site) -> None:
    site.answers["/a"] = lambda handler: handler.send(b"x" * 1000)
    assert len(site.fetch("/a", limit=1000).body) == 1000


def test_an_endless_answer_ends_at_the_limit(site: Site) -> None:
    def endless(handler: Handler) -> None:
        handler.send(Transfer_Encoding="chunked")
        while True:
            handler.wfile.write(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")

    site.answers["/a"] = endless
    Handler.protocol_version = "HTTP/1.1"
    try:
        with pytest.raises(BadInput, match="100,000 bytes"):
            site.fetch("/a", limit=100_000)
    finally:
        Handler.protocol_version = "HTTP/1.0"


def test_an_answer_that_breaks_off_is_an_error(site: Site) -> None:
    site.answers["/a"] = lambda handler: handler.send(b"half", Content_Length="1000")
    with pytest.raises(NotFound, match="broke off"):
        site.fetch("/a")


def drip(handler: Handler, first: bytes) -> None:
    handler.wfile.write(first)
    for _ in range(100):
        time.sleep(0.05)
        handler.wfile.write(b"x")


@pytest.mark.parametrize(
    "first",
    [b"", b"HTTP/1.0 200 OK\r\nX: ", b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"],
    ids=["status", "header", "body"],
)
def test_a_server_that_drips_is_left_at_the_deadline(site: Site, first: bytes) -> None:
    was_heard_out = threading.Event()

    def answer(handler: Handler) -> None:
        drip(handler, first)
        was_heard_out.set()

    site.answers["/a"] = answer
    with pytest.raises(NotFound, match="too long"):
        site.fetch("/a", timeout=0.4)
    assert not was_heard_out.is_set()


def test_redirects_share_one_deadline(site: Site) -> None:
    def slow(handler: Handler) -> None:
        time.sleep(0.2)
        handler.send(status=302, Location="/a")

    site.answers["/a"] = slow
    with pytest.raises(NotFound, match="too long"):
        site.fetch("/a", timeout=0.5)


def test_a_resolver_that_hangs_is_left_at_the_deadline() -> None:
    is_given_up = threading.Event()

    def resolve(*_: object, **__: object) -> list[tuple[Any, ...]]:
        assert is_given_up.wait(10)
        return []

    with pytest.raises(NotFound, match="no answer in time"):
        fetch("http://site.example/", resolve=resolve, timeout=0.3)
    is_given_up.set()


def test_a_name_that_does_not_exist_says_so() -> None:
    def resolve(*_: object, **__: object) -> list[tuple[Any, ...]]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(NotFound, match=r"nowhere\.example"):
        fetch("http://nowhere.example/", resolve=resolve)


def test_a_port_where_nobody_listens_says_so(site: Site) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://site.example:{free.getsockname()[1]}/"
        with pytest.raises(NotFound, match="refused"):
            fetch(url, resolve=site.resolve, forbidden=but_loopback)


def test_the_next_address_is_tried_when_one_does_not_answer(site: Site) -> None:
    site.names["site.example"] = ["127.0.0.2", "127.0.0.1"]
    site.answers["/a"] = lambda handler: handler.send(b"x")
    assert site.fetch("/a", forbidden=lambda _: False).body == b"x"


def test_what_is_not_http_is_an_error(site: Site) -> None:
    site.answers["/a"] = lambda handler: drip(handler, b"SSH-2.0-OpenSSH_9.2\r\n")
    with pytest.raises(NotFound, match="cannot be fetched"):
        site.fetch("/a")


# TLS.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that vouches for site.example, and that only SSL_CERT_FILE makes anyone believe."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test"
    extra = ["-addext", "subjectAltName=DNS:site.example", "-keyout", str(path), "-out", f"{path}.crt"]
    try:
        subprocess.run([*command.split(), *extra], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("openssl cannot make a certificate here")
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture
def secure_site(certificate: Path) -> Iterator[Site]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(context) as site:
        site.answers["/a"] = lambda handler: handler.send(b"x")
        yield site


def secure(site: Site, host: str) -> Fetched:
    return fetch(f"https://{host}:{site.port}/a", resolve=site.resolve, forbidden=but_loopback, timeout=5)


def test_a_certificate_that_nobody_vouches_for_is_refused(secure_site: Site) -> None:
    with pytest.raises(NotFound, match="certificate"):
        secure(secure_site, "site.example")
    assert secure_site.asked == []


def test_a_certificate_must_be_for_the_name_in_the_url(
    secure_site: Site, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    assert secure(secure_site, "site.example").body == b"x"
    assert secure(secure_site, "site.example.").body == b"x"
    with pytest.raises(NotFound, match="certificate"):
        secure(secure_site, "other.example")


def test_a_page_does_not_move_to_an_address_without_encryption(
    secure_site: Site, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    secure_site.redirect("/a", "http://site.example/b")
    url = f"https://site.example:{secure_site.port}/a"
    with pytest.raises(BadInput, match="without encryption"):
        fetch(url, resolve=secure_site.resolve, forbidden=but_loopback, hosts=OWN)
