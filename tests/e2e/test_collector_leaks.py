"""Nothing of a request except its reports is in any file that the process wrote."""

import base64
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rappor.collection import Collection
from rappor.store import open_store
from rappor.wire import encode_batch, encode_batch_json
from support.collecting import (
    PARAMS,
    PATIENCE,
    Client,
    Process,
    batch,
    client_of,
    collect_command,
    collector,
    day,
    write_collections,
)
from support.markers import MARK, NETWORK, marker, traces, written

PAGE = "https://app.example.org"  # whose browsers may report
SIDE_FILES = ("store.sqlite-wal", "store.sqlite-shm", "store.sqlite-commits")


def headers_of(number: int) -> dict[str, str]:
    """Markers wherever a client can put one, in a request that is otherwise good."""
    mark = marker(number)
    return {
        "user_agent": f"Browser/{mark}",
        "cookie": f"session={mark}; id={mark}",
        "referer": f"https://{mark}.example/{mark}",
        "x_request_id": mark,
        "traceparent": f"00-{mark}-01",
        "x_forwarded_for": f"2001:db8:5ca1:ab1e::{number:x}",
        f"x_{mark}": mark,
        **browser_headers(number),
    }


def browser_headers(number: int) -> dict[str, str]:
    """What a browser adds by itself, with markers; every other page is of an allowed origin."""
    mark = marker(number)
    return {
        "origin": PAGE if number % 2 else f"https://{mark.lower()}.example",
        "accept": f"*/*, text/{mark}",
        "accept_language": f"{mark}-NZ,mi;q=0.9",
        "accept_encoding": f"gzip, {mark}",
        "sec_fetch_site": f"cross-site-{mark}",
        "sec_fetch_mode": f"cors-{mark}",
        "sec_fetch_dest": f"empty-{mark}",
        "sec_fetch_storage_access": mark,
        "sec_ch_ua": f'"{mark}";v="131"',
        "sec_ch_ua_platform": f'"{mark}"',
        "sec_gpc": mark,
        "dnt": mark,
        "priority": f"u=1, {mark}",
        "cache_control": f"no-cache, {mark}",
    }


def send(client: Client, number: int) -> None:
    """One request; which kind goes round."""
    mark, headers = marker(number), headers_of(number)
    good = batch(collection="kept" if number % 2 else "homepage")
    name = mark.lower()
    match number % 10:
        case 0 | 1:
            asked = {
                "access_control_request_method": "POST",
                "access_control_request_headers": f"content-type,{mark}",
            }
            answer = client.send(None, method="OPTIONS", **headers, **asked)
            assert answer.status == (204 if number % 2 else 405)
            assert mark.encode() not in answer.body + str(answer.headers).encode()
            assert client.deliver(good, **headers).status == 204
        case 2:
            assert client.deliver(good, f"/v1/reports?{mark}={mark}", **headers).status == 204
        case 3:
            assert client.send(None, f"/{mark}/x?y={mark}#{mark}", "GET", **headers).status == 404
        case 4:
            assert client.send(batch(collection=name), **headers).code == "unknown-collection"
        case 5:
            body = encode_batch(good).replace(b"RPR1", mark.encode())
            assert client.send(body, **headers).code == "malformed-batch"
        case 6:
            pairs = ((name, mark),)
            body = encode_batch_json(batch(dimensions=pairs))
            answer = client.send(body, content_type="application/json", **headers)
            assert answer.code == "wrong-dimensions"
        case 7:
            text = json.dumps({mark: mark, "rappor": mark}).encode()
            answer = client.send(text, content_type="application/json", **headers)
            assert answer.code == "malformed-batch"
        case 8:
            answer = client.send(mark.encode(), content_type=f"text/{mark}", **headers)
            assert answer.code == "unsupported-media-type"
        case _:
            authorization = f"Bearer {mark}"
            answer = client.send(good, "/healthz", authorization=authorization, **headers)
            assert answer.code == "method-not-allowed"
            assert mark.encode() not in answer.body


def send_all(port: int, first: int, requests: int) -> None:
    with contextlib.closing(Client(port)) as client:
        for number in range(first, requests, 8):
            if number % 500 == 499:
                no_http(port, number)
            else:
                send(client, number)


def no_http(port: int, number: int) -> None:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as raw:
        raw.sendall(f"{marker(number)} {marker(number)}\r\n\r\n".encode())
        said = b""
        while part := raw.recv(65536):
            said += part
    assert b"bad-request" in said
    assert MARK.encode() not in said


@pytest.mark.parametrize("requests", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_no_marker_of_any_request_is_in_any_file(tmp_path: Path, requests: int) -> None:
    """A thousand requests are a hundred of each of the ten kinds: what writes one kind down always,
    or once in twenty, is found (1 - 0.95^100 > 0.99)."""
    write_collections(
        tmp_path,
        Collection("homepage", 1, PARAMS),
        Collection("kept", 1, PARAMS, keep_reports_days=7),
    )
    home = tmp_path / "home"
    home.mkdir()
    # Home, temporary and working folder are ours: whatever is written is below tmp_path.
    env = {"HOME": str(home), "TMPDIR": str(home), "SQLITE_TMPDIR": str(home)}
    command = collect_command(tmp_path, "--forwarded", "--rate", "0", "--log-level", "debug")
    command += ["--allow-origin", PAGE]
    process = Process(command, env)
    try:
        process.wait_until_listening()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(send_all, [process.port] * 8, range(8), [requests] * 8))
        with client_of(process) as client:
            page = client.get("/metrics").body
            assert open_files(process.process.pid) <= {
                str(tmp_path / "data" / name)
                for name in ("collector.lock", "store.lock", "store.sqlite", *SIDE_FILES)
            }
            while_it_runs = dict(written(tmp_path))
        assert process.end() == 0
    finally:
        process.close()
    assert f'code="unknown-collection"}} {requests // 10}.0\n'.encode() in page
    exported = exports(tmp_path)
    everything = [
        ("metrics", page),
        ("log", "".join(process.text).encode()),
        *while_it_runs.items(),
        *written(tmp_path),
        *exported,
    ]
    assert any(name.endswith("store.sqlite-wal") for name in while_it_runs)
    assert [(name, found) for name, data in everything if (found := traces(data))] == []


def open_files(pid: int) -> set[str]:
    """Regular files that a process holds open for writing."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
            flags = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().split()[3]
        except OSError:
            continue
        if Path(target).is_file() and int(flags, 8) & os.O_ACCMODE:
            found.add(target)
    return found


def exports(folder: Path) -> list[tuple[str, bytes]]:
    """What leaves the store again: counts and kept reports."""
    store = open_store(folder / "data", read_only=True)
    counts = repr([(each.cell, each.ones.tolist()) for each in store.counts("homepage")])
    kept = b"".join(reports for _, _, reports in store.reports("kept"))
    audit = repr(store.audit_log())
    store.close()
    assert day() in counts
    assert kept
    return [("counts", counts.encode()), ("reports", kept), ("audit", audit.encode())]


@pytest.mark.parametrize(
    "leak",
    [
        marker(17).encode(),
        marker(17).upper().encode(),
        marker(17).encode("utf-16-le"),
        marker(17).encode().hex().encode(),
        base64.b64encode(b"1" + marker(17).encode()),
        base64.b64encode(b"12" + marker(17).encode()),
        base64.b64encode(marker(17).encode()),
        b"2001:db8:5ca1:ab1e::11",
        NETWORK + bytes(8),
    ],
)
def test_the_search_would_find_a_leak(leak: bytes) -> None:
    assert traces(b"before" + leak + b"after")
    assert not traces(b"before" + leak[:3] + b"after")


def test_a_failure_inside_is_logged_without_what_caused_it(tmp_path: Path) -> None:
    code = (
        "import logging; from rappor.collector import log; log.set_up('debug')\n"
        "try: int('qZ7xkVw')\n"
        "except ValueError as error: log.failure('request-failed', error)\n"
        "logging.getLogger('uvicorn.error').error('%s', 'qZ7xkVw', exc_info=True)\n"
        "import warnings; warnings.warn('qZ7xkVw')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
    assert traces(done.stderr) == []
    first = json.loads(done.stderr.splitlines()[0])
    assert (first["event"], first["error"]) == ("request-failed", "ValueError")
    assert first["at"][0].endswith("<module>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[Process]:
    """One collector for tests that leave it as it was."""
    with collector(folder, "--log-level", "debug") as process:
        yield process


def test_an_answer_repeats_nothing_of_its_request(shared: Process) -> None:
    with client_of(shared) as client:
        for number in range(200):
            try:
                client.connection.request(
                    "POST",
                    f"/v1/reports?{marker(number)}" if number % 2 else f"/{marker(number)}",
                    marker(number).encode(),
                    {"content-type": f"application/json; x={marker(number)}", "cookie": marker(7)},
                )
                response = client.connection.getresponse()
            except http.client.HTTPException:
                client.close()
                continue
            said = response.read() + str(response.getheaders()).encode()
            assert response.status >= 400
            assert traces(said) == []


def test_nothing_of_a_request_is_logged_at_debug_level(folder: Path, shared: Process) -> None:
    for path in (f"/{MARK}", f"/v1/reports?{MARK}", f"/%ff{MARK}"):
        with client_of(shared) as client:
            client.send(MARK.encode() * 10, path, user_agent=MARK, cookie=MARK)
            client.send(MARK.encode(), path, "GET", x_forwarded_for=MARK)
    no_http(shared.port, 17)
    with client_of(shared) as client:
        assert client.get("/healthz").status == 200  # so that all of it was dealt with
    assert traces("".join(shared.text).encode()) == []
    assert [name for name, data in written(folder) if traces(data)] == []


def test_metrics_have_no_label_that_a_client_chose(shared: Process) -> None:
    with client_of(shared) as client:
        client.send(b"x", "/m4rk3r", "PROPFIND")
        client.send(batch(collection="m4rk3r"))
        assert b"m4rk3r" not in client.get("/metrics").body
