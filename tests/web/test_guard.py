"""Hostile requests are answered rightly, and every answer has its headers."""

from __future__ import annotations

import base64
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError
from starlette.testclient import TestClient

from streamdp.config.model import Web
from streamdp.web.app import application
from streamdp.web.guard import Limiter
from streamdp.web.reader import Reader
from tests.web.addresses import HOST, addresses

TOKEN = "a token of enough letters"  # noqa: S105

HOSTILE: list[tuple[str, str, dict[str, str], int]] = [
    ("POST", "/", {}, 405),
    ("PUT", "/api/v1/ledger", {}, 405),
    ("DELETE", "/jobs/daily", {}, 405),
    ("PATCH", "/api/v1/status", {}, 405),
    ("OPTIONS", "/api/v1/status", {"Origin": "https://evil.example"}, 405),
    ("TRACE", "/", {}, 405),
    ("GET", "/static/../../etc/passwd", {}, 404),
    ("GET", "/static/%2e%2e%2f%2e%2e%2fetc%2fpasswd", {}, 404),
    ("GET", "/static/..%5c..%5cwindows", {}, 400),
    ("GET", "/static/page.css%00.js", {}, 400),
    ("GET", "/static/", {}, 404),
    ("GET", "//etc/passwd", {}, 404),
    ("GET", "/%00", {}, 400),
    ("GET", "/jobs/daily%0d%0aSet-Cookie:%20a=b", {}, 400),
    ("GET", "/jobs/' OR 1=1 --", {}, 404),
    ("GET", "/jobs/<script>alert(1)</script>", {}, 404),
    ("GET", "/jobs/{{7*7}}", {}, 404),
    ("GET", "/releases/' UNION SELECT hidden FROM gate_run --", {}, 404),
    ("GET", "/jobs/daily/releases.exe", {}, 404),
    ("GET", "/jobs/daily?last=99999999", {}, 400),
    ("GET", "/jobs/daily?last[]=1", {}, 400),
    ("GET", "/jobs/daily?since=now", {}, 400),
    ("GET", "/jobs/daily?since=2023-13-45", {}, 400),
    ("GET", "/jobs/daily?since=2024-01-01&until=2023-01-01", {}, 400),
    ("GET", "/jobs/daily?before=';--", {}, 400),
    ("GET", "/jobs/daily?unknown=1", {}, 400),
    ("GET", "/api/v1/ledger?limit=-1", {}, 400),
    ("GET", "/api/v1/ledger?limit=1e9", {}, 400),
    ("GET", "/api/v1/ledger?limit=501", {}, 400),
    ("GET", "/api/v1/ledger?limit=" + "9" * 40, {}, 400),
    ("GET", "/api/v1/ledger?limit=١٢", {}, 400),
    ("GET", "/api/v1/ledger?purpose=drop", {}, 400),
    ("GET", "/api/v1/ledger?job=%00", {}, 400),
    ("GET", "/api/v1/ledger?job=" + "a" * 300, {}, 400),
    ("GET", "/log?level=trace", {}, 400),
    ("GET", "/?" + "a" * 5000, {}, 414),
    ("GET", "/" + "a" * 5000, {}, 414),
    ("GET", "/", {"Host": "evil.example"}, 421),
    ("GET", "/", {"Host": "127.0.0.1.evil.example:8765"}, 421),
    ("GET", "/", {"Host": ""}, 421),
    ("GET", "/api/v1/status", {"Origin": "https://evil.example"}, 403),
    ("GET", "/api/v1/status", {"Origin": "null"}, 403),
    ("GET", "/api/v1/status", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
    ("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"}, 403),
    ("GET", "/", {"Content-Length": "1000000"}, 413),
    ("GET", "/", {"Transfer-Encoding": "chunked"}, 413),
    ("GET", "/metrics?name=x", {}, 400),
    ("GET", "/nothing", {}, 404),
    ("GET", "/budget/", {}, 404),
    ("GET", "/releases/..%2f", {}, 404),
]


@pytest.mark.parametrize(("method", "address", "headers", "status"), HOSTILE)
def test_hostile_requests_are_refused(
    client: TestClient, method: str, address: str, headers: dict[str, str], status: int
) -> None:
    """Each with its own status, with all headers, and without echoing what was sent."""
    answer = client.request(method, address, headers=headers)
    assert answer.status_code == status
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "access-control-allow-origin" not in answer.headers
    assert "set-cookie" not in answer.headers
    for echo in ("<script>", "UNION", "passwd", "evil", "{{7*7}}"):
        assert echo not in answer.text


def test_every_answer_has_its_headers(client: TestClient) -> None:
    """As current practice wants: nothing is framed, sniffed, shared or kept by others."""
    for address in [*addresses(client), "/healthz", "/static/page.js"]:
        headers = client.get(address).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers


def test_pages_hold_no_script_and_no_style_of_their_own(client: TestClient) -> None:
    """What the policy would refuse is not there to begin with."""
    for address in addresses(client):
        answer = client.get(address)
        if answer.headers["content-type"].startswith("text/html"):
            assert "<style" not in answer.text, address
            assert " style=" not in answer.text, address
            assert "<script>" not in answer.text, address
            assert " onclick" not in answer.text, address


def _client(reader: Reader, web: Web, peer: str = "10.0.0.9") -> TestClient:
    return TestClient(application(reader, web), base_url="http://page.example", client=(peer, 1))


def test_a_token_opens_the_page(reader: Reader) -> None:
    """As a bearer or as the password of a browser; nothing else does."""
    web = Web(listen="0.0.0.0:8765", token=SecretStr(TOKEN), hosts=("page.example",))
    client = _client(reader, web)
    closed = client.get("/")
    assert closed.status_code == 401
    assert closed.headers["www-authenticate"].startswith("Basic")
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    for header in (f"Bearer {TOKEN}", f"Basic {basic}"):
        assert client.get("/", headers={"Authorization": header}).status_code == 200
    wrong = ["", "Bearer", "Bearer x", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Basic !!!"]
    for header in [*wrong, f"Digest {TOKEN}", "Basic " + base64.b64encode(b"\xff").decode()]:
        assert client.get("/", headers={"Authorization": header}).status_code == 401
    assert client.get("/metrics").status_code == 401
    assert client.get("/static/page.css").status_code == 401
    assert client.get("/healthz").status_code == 200


def test_a_proxy_is_believed_from_its_own_address_only(reader: Reader) -> None:
    """Who can reach the port could write the header too."""
    proxy = {"header": "X-User", "addresses": ["10.0.0.0/24"]}
    web = Web.model_validate({"listen": "0.0.0.0:8765", "proxy": proxy, "hosts": ["page.example"]})
    named = {"X-User": "ann"}
    assert _client(reader, web).get("/", headers=named).status_code == 200
    assert _client(reader, web).get("/").status_code == 401
    assert _client(reader, web, "10.0.1.9").get("/", headers=named).status_code == 401


def test_beyond_this_machine_a_token_or_a_proxy_is_wanted() -> None:
    """An open page is for loopback."""
    for listen in ("0.0.0.0:80", "10.1.2.3:80", "[::]:80", "page.example:80"):
        with pytest.raises(ValidationError, match="needs a token or a proxy"):
            Web(listen=listen)
    for listen in ("127.0.0.1:0", "localhost:80", "[::1]:80", "127.8.8.8:1"):
        assert Web(listen=listen).is_loopback()
    with pytest.raises(ValidationError, match="characters"):
        Web(token=SecretStr("short"))


def test_one_address_has_so_many_requests_a_second() -> None:
    """More are refused until time has passed; others are not held up."""
    now = [0.0]
    limiter = Limiter(3, lambda: now[0])
    assert [limiter.admits("a") for _ in range(5)] == [True, True, True, False, False]
    assert limiter.admits("b")
    now[0] = 0.5
    assert [limiter.admits("a") for _ in range(2)] == [True, False]


def test_too_many_requests_are_told_to_wait(reader: Reader) -> None:
    """With the status that says so."""
    client = TestClient(application(reader, Web(requests_per_second=1)), base_url=HOST)
    assert client.get("/healthz").status_code == 200
    refused = client.get("/healthz")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")


def test_a_store_that_is_gone_or_no_store_is_told_in_a_word(
    reader: Reader, home: Path, tmp_path: Path
) -> None:
    """No path, no traceback."""
    store = reader.configuration.store.model_copy(update={"path": tmp_path / "secret-name.db"})
    reader.configuration = reader.configuration.model_copy(update={"store": store})
    client = TestClient(application(reader, Web()), base_url=HOST)
    for address in ("/", "/api/v1/status", "/metrics"):
        answer = client.get(address)
        assert answer.status_code == 503
        assert "secret-name" not in answer.text
    shutil.copy(home / "store.db", store.path)
    with closing(sqlite3.connect(store.path)) as older:
        older.execute("DELETE FROM migration WHERE version > 3")
        older.commit()
    assert "another version" in client.get("/").text
    store.path.unlink()
    store.path.write_bytes(b"no database" * 1000)
    answer = client.get("/")
    assert answer.status_code in (500, 503)
    assert "secret-name" not in answer.text
