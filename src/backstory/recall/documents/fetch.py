"""Fetching one page from the public network, and nothing from any other.

A model may be talked into fetching anything, and we stand where others cannot: behind the firewall, beside
the cloud's metadata server. So a name is resolved once for each hop, all its addresses are judged, and the
connection goes to one that was judged: what a second lookup would say, nobody asks. Odd spellings need no
rule of their own, since what is judged is what would be connected to.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from backstory.errors import BadInput, NotFound
from backstory.recall.documents import file

TIMEOUT = 20.0  # seconds for everything: names, redirects, the last byte
MAX_REDIRECTS = 5
MAX_URL = 2_000

# Of a page whose text goes into somebody's file.
PAGE_TIMEOUT = 10.0
PAGE_LIMIT = 2_000_000
PAGE_TYPES = ("text/html", "text/markdown", "text/plain")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Found = Sequence[tuple[Any, ...]]  # as getaddrinfo gives it
Resolve = Callable[..., Found]

REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {
    "User-Agent": "backstory",
    "Accept": "text/html, text/markdown, text/plain, text/*;q=0.8",
    "Accept-Encoding": "identity",
    "Connection": "close",
}

_KEPT = "/%:@!$&'()*+,;=~-._?"  # means something in a path or a query, or stands for itself

# Networks that are not the public one. `ipaddress` knows most of them, which ones depends on its version. The
# last is public by its number and private by its use: the host service of a cloud.
_SPECIAL_V4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24"
        " 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24"
        " 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32"
    ).split()
]
_SPECIAL_V6 = [ipaddress.IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20")]
_GLOBAL_V6 = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Fetched:
    url: str  # where it was found in the end
    content_type: str
    charset: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class _Target:
    url: str
    tls: bool
    host: str
    port: int
    path: str


def is_forbidden(address: Address) -> bool:
    """Whether an address belongs to this machine, its network or its cloud, however it is wrapped."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _embedded(address)
        if inner:
            return any(is_forbidden(each) for each in inner)
        special = any(address in network for network in _SPECIAL_V6)
        return special or address not in _GLOBAL_V6 or not address.is_global
    return any(address in network for network in _SPECIAL_V4) or not address.is_global


def _embedded(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that a packet to this one ends at: mapped, 6to4, Teredo (both ends), NAT64."""
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address.sixtofour:
        return [address.sixtofour]
    if address.teredo:
        return list(address.teredo)
    return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)] if address in _NAT64 else []


def fetch(
    url: str,
    *,
    resolve: Resolve = socket.getaddrinfo,
    forbidden: Callable[[Address], bool] = is_forbidden,
    timeout: float = TIMEOUT,
    limit: int = file.LARGEST,
    hosts: Collection[str] | None = None,
    types: Collection[str] | None = None,
) -> Fetched:
    """The page at a public http or https address. Tests that serve on loopback pass their own `forbidden`.

    `hosts` are where a redirect may lead besides the host that was asked; None: anywhere. `types` are the
    content types to take; None: all that is text.
    """
    deadline = time.monotonic() + timeout
    target = _parse(url)
    allowed = None if hosts is None else {_name(host) for host in (target.host, *hosts)}
    for _ in range(MAX_REDIRECTS + 1):
        addresses = _addresses(target, resolve, forbidden, deadline)
        with _answer(target, addresses, deadline) as answer:
            if answer.status not in REDIRECTS:
                return _read(target, answer, limit, types)
            following = _parse(_location(target, answer))
        if allowed is not None:
            _check_redirect(target, following, allowed)
        target = following
    raise BadInput(f"{url[:200]} redirects more than {MAX_REDIRECTS} times; give the address it leads to")


def page(
    url: str,
    *,
    hosts: Collection[str],
    resolve: Resolve = socket.getaddrinfo,
    forbidden: Callable[[Address], bool] = is_forbidden,
    timeout: float = PAGE_TIMEOUT,
    limit: int = PAGE_LIMIT,
) -> str:
    """The main text of a page as Markdown, from these hosts or from the one that was asked."""
    answer = fetch(
        url, resolve=resolve, forbidden=forbidden, timeout=timeout, limit=limit, hosts=hosts, types=PAGE_TYPES
    )
    if file.kind_of_page(answer.url, answer.content_type) != "html":
        return file.decode(answer.body, answer.charset)
    from backstory.recall.documents import extract  # lxml is needed for nothing else

    return extract.main_text(answer.body, answer.charset)[1]


# The request.


def _parse(url: str) -> _Target:
    shown = repr(url[:200])
    if len(url) > MAX_URL or re.search(r"[\x00-\x20\x7f\\]", url):
        raise BadInput(f"{shown} is not a URL; it has blanks or backslashes, or is too long")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        name = host if ":" in host else host.encode("idna").decode("ascii")
    except ValueError as error:  # a bad port, half an IPv6 address, a name that no DNS could hold
        raise BadInput(f"{shown} is not a URL ({error}); correct it") from error
    if parts.scheme not in ("http", "https"):
        raise BadInput(f"{shown} cannot be fetched; only http and https can, for files give a path")
    if "@" in parts.netloc:
        raise BadInput("a URL with a user name or password is not fetched; give it without")
    if not re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+", name):
        raise BadInput(f"{shown} names no host; give something like https://example.org/page")
    path = quote(parts.path, safe=_KEPT) or "/"
    query = f"?{quote(parts.query, safe=_KEPT)}" if parts.query else ""
    tls = parts.scheme == "https"
    shown_host = f"[{name}]" if ":" in name else name
    shown_port = f":{port}" if port is not None else ""
    clean = f"{parts.scheme}://{shown_host}{shown_port}{path}{query}"
    return _Target(clean, tls, name, (443 if tls else 80) if port is None else port, path + query)


def _location(target: _Target, answer: http.client.HTTPResponse) -> str:
    location = answer.getheader("Location")
    if not location:
        raise NotFound(
            f"{target.url[:200]} answers {answer.status} without saying where to; try another address"
        )
    # Header bytes arrive as Latin-1; servers mean UTF-8.
    location = location.encode("latin-1", "replace").decode("utf-8", "replace").strip()
    try:
        return urljoin(target.url, location.replace(" ", "%20"))
    except ValueError as error:
        raise BadInput(f"{target.url[:200]} redirects to {location[:200]!r}, which is not a URL") from error


def _check_redirect(target: _Target, following: _Target, allowed: Collection[str]) -> None:
    if _name(following.host) not in allowed:
        raise BadInput(
            f"{target.url[:200]} redirects to {following.host[:100]}, which is not one of its own hosts;"
            " if you trust that address, set it in place of this one"
        )
    if target.tls and not following.tls:
        raise BadInput(f"{target.url[:200]} redirects to an address without encryption; give another one")


def _name(host: str) -> str:
    return host.lower().rstrip(".")


def _addresses(
    target: _Target, resolve: Resolve, forbidden: Callable[[Address], bool], deadline: float
) -> list[Address]:
    """Every address of the host, all of them allowed. One bad address condemns the name."""
    try:
        found = _within(deadline, lambda: resolve(target.host, target.port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        raise NotFound(f"{target.host[:100]} cannot be found ({error}); check the address") from error
    addresses = []
    for entry in found:
        address = ipaddress.ip_address(str(entry[4][0]).partition("%")[0])
        if forbidden(address):
            raise BadInput(
                f"{target.host[:100]} is {address}, which is not a public address; "
                "save the page to a file in the project and give its path"
            )
        if address not in addresses:
            addresses.append(address)
    return addresses


def _within(deadline: float, call: Callable[[], Found]) -> Found:
    """The resolver knows no timeout, so it is left behind in a thread when it takes too long."""
    results: list[Found] = []
    errors: list[OSError | UnicodeError] = []

    def run() -> None:
        try:
            results.append(call())
        except (OSError, UnicodeError) as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(deadline - time.monotonic(), 0))
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError("no answer in time")
    return results[0]


# The connection.


class _Line:
    """A socket as http.client sees one, with a deadline for all it does: a timeout would begin anew with each
    byte that drips in. Closing is left to whoever opened it, since http.client closes before it has read."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def armed(self) -> socket.socket:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is up")
        self._sock.settimeout(left)
        return self._sock

    def sendall(self, data: bytes) -> None:
        self.armed().sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        pass


class _Reader(io.RawIOBase):
    def __init__(self, line: _Line) -> None:
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._line.armed().recv_into(buffer)


@contextmanager
def _answer(target: _Target, addresses: list[Address], deadline: float) -> Iterator[http.client.HTTPResponse]:
    sock = None
    try:
        sock = _connect(target, addresses, deadline)
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.sock = _Line(sock, deadline)
        host = target.url.split("/")[2]
        connection.request("GET", target.path, headers={"Host": host, **_HEADERS})
        yield connection.getresponse()
    except ssl.SSLCertVerificationError as error:
        raise NotFound(
            f"the certificate of {target.host[:100]} is not valid ({error.verify_message}); "
            "if you trust the page, save it to a file and give its path"
        ) from error
    except TimeoutError as error:
        raise NotFound(f"{target.url[:200]} takes too long; try again later, or save it to a file") from error
    except (OSError, http.client.HTTPException) as error:
        reason = str(error)[:200] or type(error).__name__
        raise NotFound(f"{target.url[:200]} cannot be fetched ({reason}); try again later") from error
    finally:
        if sock:
            sock.close()


def _connect(target: _Target, addresses: list[Address], deadline: float) -> socket.socket:
    """A connection to the first address that answers; each gets its share of the time that is left."""
    failure: OSError = TimeoutError("the time is up")
    for number, address in enumerate(addresses):
        share = (deadline - time.monotonic()) / (len(addresses) - number)
        if share <= 0:
            break
        sock = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.settimeout(share)
            sock.connect((str(address), target.port))
            if not target.tls:
                return sock
            sock.settimeout(max(deadline - time.monotonic(), 0.001))
            return ssl.create_default_context().wrap_socket(sock, server_hostname=target.host.rstrip("."))
        except OSError as error:
            sock.close()
            failure = error
    raise failure


# The answer.


def _read(
    target: _Target, answer: http.client.HTTPResponse, limit: int, types: Collection[str] | None
) -> Fetched:
    shown = target.url[:200]
    if answer.status != 200:
        raise NotFound(f"{shown} answers {answer.status} {answer.reason[:60]!r}; check the address")
    stated = answer.getheader("Content-Type")
    kind = answer.headers.get_content_type() if stated else "nothing"
    if not kind.startswith("text/") and kind != "application/xhtml+xml":
        raise BadInput(f"{shown} is {kind[:80]!r}; only text can be taken in: HTML, Markdown, plain text")
    if types is not None and kind not in types:
        raise BadInput(f"{shown} is {kind[:80]!r}; only {', '.join(types)} can be used here")
    encoding = answer.getheader("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise BadInput(
            f"{shown} is compressed ({encoding[:40]!r}) though that was not asked for; save it to a file"
        )
    too_large = BadInput(f"{shown} has more than {limit:,} bytes; save the part that matters to a file")
    if (answer.length or 0) > limit:
        raise too_large
    body = bytearray()
    while part := answer.read(min(65_536, limit + 1 - len(body))):
        body += part
        if len(body) > limit:
            raise too_large
    if answer.length:  # what was announced and never came
        raise NotFound(f"{shown} broke off after {len(body):,} bytes; try again")
    charset = answer.headers.get_content_charset()
    return Fetched(target.url, kind, charset, bytes(body))
