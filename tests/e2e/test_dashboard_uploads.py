"""Uploads that claim to be small: read in a process with limits, never in that of the pages."""

import io
import json
import struct
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.candidates.candidate_upload import read_upload
from rappor.errors import ParamsError
from support.dashboard_context import Browser, made_context

MEGABYTE = 2**20
UNPACKED = 128  # megabytes that a forged file takes
# Reads a file as the page does, and says by how many megabytes this process has grown at most.
READER = """
import json, re, sys
from pathlib import Path
import pyarrow.parquet
from rappor.dashboard.candidates import candidate_upload
from rappor.errors import ParamsError
read = candidate_upload.read_upload
most = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
data = Path(sys.argv[1]).read_bytes()
before = most()
try:
    said = read(data, "lines").read
except ParamsError as error:
    said = str(error)
print(json.dumps([most() - before, said]))
"""
# `rappor` with 64 MB of memory beyond what its libraries take.
COMMAND = """
import sys
import pyarrow.compute, pyarrow.parquet, numpy
import rappor.aggregate.report_files, rappor.decoding.decode
from rappor.cli.main import main
from rappor.dashboard.limits import limit
limit(64 * 2**20, 300)
sys.exit(main(sys.argv[1:]))
"""

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")


def varint(number: int) -> bytes:
    """As Thrift's compact protocol writes a whole number."""
    number <<= 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def forged_parquet() -> bytes:
    """A small file whose footer says that it unpacks to little; it takes UNPACKED megabytes."""
    row = "a" * MEGABYTE
    sink = io.BytesIO()
    table = pa.table({"string": pa.array([row] * UNPACKED)})
    parquet.write_table(table, sink, compression="brotli", use_dictionary=False)
    about = parquet.read_metadata(sink).row_group(0)
    data = sink.getvalue()
    (size,) = struct.unpack("<I", data[-8:-4])
    footer = data[-8 - size : -8]
    for number in {about.total_byte_size, about.column(0).total_uncompressed_size}:
        assert varint(number) in footer
        footer = footer.replace(varint(number), varint(1000))
    forged = data[: -8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1"
    assert parquet.read_metadata(io.BytesIO(forged)).row_group(0).total_byte_size == 1000
    assert len(forged) < 50_000
    return forged


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("forged") / "list.parquet"
    file.write_bytes(forged_parquet())
    return file


def read_alone(file: Path) -> tuple[int, object]:
    done = subprocess.run(
        [sys.executable, "-c", READER, str(file)], capture_output=True, check=True, timeout=300
    )
    grown, said = json.loads(done.stdout)
    return grown, said


@on_linux
def test_a_forged_footer_does_not_make_the_dashboard_large(forged: Path) -> None:
    grown, said = read_alone(forged)
    assert grown < UNPACKED / 2
    assert isinstance(said, str)


@pytest.mark.long
@on_linux
def test_millions_of_lines_do_not_make_the_dashboard_large(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"".join(b"%d\n" % number for number in range(10**6, 4 * 10**6)))
    grown, said = read_alone(file)
    assert grown < 120  # 24 MB, as bytes and on their way
    assert said == "a list may have 1,000,000 strings; this one has 3,000,000"


def test_what_takes_too_much_memory_is_said_in_words(forged: Path) -> None:
    with pytest.raises(ParamsError, match=r"cannot be read|limits of 64 MB of memory"):
        read_upload(forged.read_bytes(), memory=64 * MEGABYTE)


def test_what_takes_too_long_is_said_in_words() -> None:
    with pytest.raises(ParamsError, match="0 seconds"):
        read_upload(b"a\n" * 4_000_000, seconds=0)


def test_a_good_parquet_file_is_read_in_the_other_process() -> None:
    sink = io.BytesIO()
    parquet.write_table(pa.table({"string": ["b", "a", "a"]}), sink)
    found = read_upload(sink.getvalue())
    assert (found.strings, found.read, found.merged) == (("a", "b"), 3, 1)


def test_the_page_says_what_is_wrong_with_a_forged_file(forged: Path, tmp_path: Path) -> None:
    with made_context(tmp_path) as context:
        browser = Browser(context)
        browser.log_in(Role.ANALYST)
        mark = "----x"
        parts = [
            f'--{mark}\r\ncontent-disposition: form-data; name="csrf"\r\n\r\n{browser.csrf()}\r\n',
            f"--{mark}\r\n",
            'content-disposition: form-data; name="file"; filename="a.parquet"\r\n\r\n',
        ]
        body = "".join(parts).encode() + forged.read_bytes() + f"\r\n--{mark}--\r\n".encode()
        answer = browser.send_body("/collections/homepage/candidates", body, mark)
    assert answer.status_code == 400
    assert "this one unpacks to" in answer.text or "cannot be read" in answer.text


@pytest.mark.parametrize("verb", ["candidates", "aggregate"])
def test_commands_fail_cleanly_on_a_forged_file(forged: Path, verb: str) -> None:
    arguments = [verb, str(forged), "--k", "8", "--h", "2", "--m", "2", "--f", ".5"]
    arguments += ["--p", ".5", "--q", ".75"]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (1, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(f"rappor {verb}: ")
