"""Below HTTP: half-sent requests, endless heads, answers that nobody reads. Nobody else notices."""

from __future__ import annotations

import time

import pytest

from tacit.serve import connections
from tacit.serve.keys import Keys
from tacit.serve.settings import ServiceSettings
from tests.serve.live import ask, connect, error_code, everything, is_open, served

HALF = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-more: "
JSON = "content-type: application/json\r\n"


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize(
    "limits",
    [{"connections": 6, "connections_per_address": 100}, {"connections_per_address": 3}],
    ids=["all", "address"],
)
def test_b6_half_sent_requests_keep_nobody_out(tmp_path, limits):
    """2,000 of them were a 503 for everybody, for as long as the attacker liked."""
    with served(ServiceSettings(state=tmp_path, **limits)) as port:
        attackers = [connect(port, HALF) for _ in range(12)]
        for _ in range(5):
            assert ask(port)[0] == 200
        wait_until(lambda: sum(map(is_open, attackers)) <= 6)
        for attacker in attackers:
            attacker.close()
        assert ask(port)[0] == 200


def test_b6_connections_at_work_are_not_given_up_for_new_ones(tmp_path):
    """Where nobody waits for a head there is no room to make: whoever is served keeps his place."""
    Keys(tmp_path).add("team", 600)
    secret = Keys(tmp_path).add("other", 600)
    body = b"x" * 100
    head = f"POST /v1/rewrite HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret}\r\n{JSON}"
    with served(ServiceSettings(state=tmp_path, connections_per_address=3)) as port:
        working = [connect(port, f"{head}content-length: 200\r\n\r\n".encode() + body) for _ in range(3)]
        time.sleep(0.2)
        with connect(port, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n") as connection:
            assert b" 503 " in everything(connection)
        assert all(map(is_open, working))
        working[0].sendall(b"x" * 100)  # its body is complete now, and no JSON
        assert b" 400 " in working[0].recv(1000)
        for connection in working:
            connection.close()


def test_b6_the_requests_of_one_key_are_bounded(tmp_path):
    secret, other = (Keys(tmp_path).add(name, 600) for name in ("team", "other"))
    with served(ServiceSettings(state=tmp_path, requests_per_key=2)) as port:
        head = f"POST /v1/rewrite HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret}\r\n{JSON}"
        working = [connect(port, f"{head}content-length: 200\r\n\r\n{{".encode()) for _ in range(2)]
        time.sleep(0.2)
        assert ask(port, "/v1/mechanisms", f"authorization: Bearer {secret}\r\n")[0] == 429
        assert ask(port, "/v1/mechanisms", f"authorization: Bearer {other}\r\n")[0] == 200
        for connection in working:
            connection.close()
        wait_until(lambda: ask(port, "/v1/mechanisms", f"authorization: Bearer {secret}\r\n")[0] == 200)


def test_b6_a_head_that_does_not_come_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    with served(ServiceSettings(state=tmp_path)) as port:
        silent, half, blank = connect(port), connect(port, HALF), connect(port, b"\r\n")
        again = connect(port, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert b" 200 " in again.recv(10_000)
        time.sleep(0.5)
        assert is_open(again)  # a connection that is kept alive has more time, until it begins to ask
        again.sendall(HALF)
        assert b" 408 " in everything(half)
        assert b" 408 " in everything(again)
        assert everything(silent) == everything(blank) == b""
        for connection in (silent, half, blank, again):
            connection.close()


def test_b6_a_dribbled_head_is_given_up(tmp_path, monkeypatch):
    """A byte now and then does not buy time."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with served(ServiceSettings(state=tmp_path)) as port, connect(port, HALF) as connection:
        assert ended_by_the_service(connection)


@pytest.mark.parametrize(
    "endless",
    [
        HALF + b"x" * 400_000,
        b"GET /healthz HTTP/1.1\r\n" + b"a: b\r\n" * 60_000,
        b"GET /" + b"x" * 400_000,
        b"GET /healthz HTTP/1.1\r\n" + b"x" * 400_000,
        b"\r\n" * 200_000,
    ],
    ids=["value", "headers", "path", "name", "blank"],
)
def test_b6_a_head_without_an_end_is_cut_off(tmp_path, endless):
    """400 MB of headers were taken in without a key."""
    with served(ServiceSettings(state=tmp_path)) as port:
        connection = connect(port)
        sent = 0
        try:
            for start in range(0, len(endless), 10_000):
                connection.sendall(endless[start : start + 10_000])
                sent += 10_000
                time.sleep(0.002)
        except ConnectionError:
            pass
        assert sent < len(endless) or not is_open(connection)
        connection.close()
        assert ask(port)[0] == 200


def test_b6_many_headers_are_refused(tmp_path):
    with served(ServiceSettings(state=tmp_path)) as port:
        assert ask(port, headers="a: b\r\n" * 50)[0] == 200
        status, body = ask(port, headers="a: b\r\n" * 200)
        assert (status, error_code(body)) == (431, "large_head")
        status, body = ask(port, headers=f"a: {'x' * 50_000}\r\n")
        assert (status, error_code(body)) == (431, "large_head")


@pytest.mark.parametrize(
    "tail", [b"1;" + b"x" * 400_000, b"0\r\n" + b"a: b\r\n" * 60_000, b"0\r\na: " + b"x" * 400_000]
)
def test_b6_what_comes_beside_a_body_is_counted_like_a_head(tmp_path, tail):
    """Chunk extensions and trailers."""
    head = (
        f"POST /v1/rewrite HTTP/1.1\r\nhost: localhost\r\n{JSON}transfer-encoding: chunked\r\n\r\n1\r\n{{\r\n".encode()
    )
    with served(ServiceSettings(state=tmp_path)) as port:
        connection = connect(port, head)
        sent = 0
        try:
            for start in range(0, len(tail), 10_000):
                connection.sendall(tail[start : start + 10_000])
                sent += 10_000
                time.sleep(0.002)
        except ConnectionError:
            pass
        assert sent < len(tail) or not is_open(connection)
        connection.close()


def test_b6_a_refused_body_is_not_taken_in_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.2)
    Keys(tmp_path).add("team", 600)
    with served(ServiceSettings(state=tmp_path)) as port:
        head = f"POST /v1/rewrite HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: 9000000\r\n\r\n"
        with connect(port, head.encode()) as connection:
            assert b" 401 " in connection.recv(10_000)
            assert ended_by_the_service(connection)


def ended_by_the_service(connection, seconds=10.0):
    """Whether a connection that we only write to is ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            connection.sendall(b"x")
        except ConnectionError:
            return True
        time.sleep(0.05)
    return False


def test_b6_an_answer_that_nobody_reads_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "READ_SECONDS", 0.3)
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "large.html").write_bytes(b"x" * 30_000_000)
    with served(ServiceSettings(state=tmp_path / "state", reports=reports)) as port:
        with connect(port, b"GET /v1/reports/large.html HTTP/1.1\r\nhost: localhost\r\n\r\n") as connection:
            assert ended_by_the_service(connection)
        assert len(ask(port, "/v1/reports/large.html")[1]) == 30_000_000


def test_b6_requests_in_advance_are_bounded(tmp_path):
    """Each costs memory before the first is answered, and needs no key."""
    request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with served(ServiceSettings(state=tmp_path)) as port:
        with connect(port, request * 1_000) as connection:
            assert everything(connection).count(b"HTTP/1.1 200") < 100
        with connect(port, request * 5) as connection:
            time.sleep(0.3)
            assert connection.recv(100_000).count(b"HTTP/1.1 200") == 5


@pytest.mark.parametrize("host", ["http://[", "[", "]", "a]b", "[::1", "//[x", "\xff[", ""])
def test_b6_a_host_that_is_none_is_a_bad_request(client, host):
    for headers in ({"host": host.encode("latin-1")}, {"origin": b"http://" + host.encode("latin-1")}):
        assert client.get("/healthz", headers=headers).status_code in (400, 403)
        assert client.get("/v1/mechanisms", headers=headers).status_code in (400, 403)


def test_b6_many_large_bodies_do_not_take_all_memory(tmp_path, monkeypatch):
    """Twenty times the largest body, in all."""
    from tacit.serve import settings

    monkeypatch.setattr(settings, "BODIES_AT_ONCE", 2)
    head = f"POST /v1/rewrite HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: 900000\r\n\r\n".encode()
    with served(ServiceSettings(state=tmp_path, body_bytes=1_000_000)) as port:
        held = [connect(port, head + b" " * 800_000) for _ in range(2)]
        time.sleep(0.5)
        with connect(port, head + b" " * 800_000) as connection:
            assert b" 503 " in connection.recv(10_000)
        for connection in held:
            connection.close()
        wait_until(lambda: ask(port, "/v1/rewrite", JSON, "POST", b" " * 900_000)[0] == 400)
