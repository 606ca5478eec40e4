"""The command as a person meets it: every verb, in real processes, with real files and pipes."""

import csv
import io
import json
import math
import os
import re
import shutil
import stat
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from rappor import Encoder, Params, __version__, privacy
from rappor.mechanism import bloom_positions, filter_bits
from rappor.wire import from_text
from support.command import COMMAND, environment, rappor

GOLDEN = Path(__file__).parent / "golden"


def six(k: int, h: int, m: int, f: str, p: str, q: str) -> tuple[str, ...]:
    """The six numbers as options."""
    return ("--k", f"{k}", "--h", f"{h}", "--m", f"{m}", "--f", f, "--p", p, "--q", q)


SIX = six(4, 1, 1, ".5", ".5", ".75")
CATEGORY = (*SIX, "--kind", "category", "--categories", "a,b,c")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_bytes(bytes(range(32)))
    return file


def document(*arguments: str | Path) -> Any:
    """The JSON document that a good invocation prints, and nothing else."""
    done = rappor(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


# privacy


def true_epsilons(f: str, p: str, q: str, h: int, n: int) -> tuple[Decimal, Decimal]:
    """ε_n and ε∞ of strings from the likelihoods themselves, to 50 digits.

    n reports of a bit that all say 1 (or all 0) are the most telling ones about it.
    """
    with localcontext() as context:
        context.prec = 50
        flipped, low, high = Decimal(f) / 2, Decimal(p), Decimal(q)
        kept = 1 - flipped

        def likelihood(one: Decimal, zero: Decimal) -> Decimal:
            return kept * one**n + flipped * zero**n

        ones = likelihood(high, low) / likelihood(low, high)
        zeros = likelihood(1 - low, 1 - high) / likelihood(1 - high, 1 - low)
        return h * (ones * zeros).ln(), 2 * h * (kept / flipped).ln()


@pytest.mark.parametrize(
    ("preset", "f", "stated"),
    [
        ("windows", "0.5", {"1": 1.07429, "10": 4.29934, "inf": 4.39445}),
        ("chrome", "0.75", {"1": 0.53432, "inf": 2.04330}),
    ],
)
def test_privacy_states_the_papers_epsilons_and_never_less_than_the_truth(
    preset: str, f: str, stated: dict[str, float]
) -> None:
    facts = document("privacy", "--preset", preset)
    found = facts["epsilon_n"] | {"inf": facts["epsilon_infinity"]}
    assert facts["epsilon_one"] == found["1"]
    for reports, expected in stated.items():
        assert found[reports] == pytest.approx(expected, abs=1e-4)
    for reports, value in facts["epsilon_n"].items():
        once, ever = true_epsilons(f, "0.5", "0.75", 2, int(reports))
        assert Decimal(value) >= once
        assert Decimal(value) - once < Decimal("1e-14")
    assert 0 <= Decimal(found["inf"]) - ever < Decimal("1e-14")


def test_privacy_json_is_what_the_library_says() -> None:
    facts = document("privacy", *SIX, "--kind", "bits", "--n", "7,1e3,7")
    params = Params(4, 1, 1, 0.5, 0.5, 0.75)
    assert facts["params"] == params.to_dict()
    assert facts["digest"] == params.digest
    assert facts["kind"] == "bits"
    assert (facts["p_star"], facts["q_star"]) == (0.5625, 0.6875)
    assert facts["epsilon_one"] == privacy.epsilon_one(params, "bits")
    assert facts["epsilon_n"] == {str(n): privacy.epsilon_n(params, n, "bits") for n in (7, 1000)}
    assert facts["epsilon_infinity"] == privacy.epsilon_infinity(params, "bits")


def test_privacy_json_has_detection_limits_when_asked() -> None:
    facts = document("privacy", "--preset", "windows", "--reports", "1e6", "--candidates", "200")
    limits = facts["detectable"]
    assert (limits["reports"], limits["candidates"], limits["alpha"]) == (10**6, 200, 0.05)
    for power, least in limits["power"].items():
        found = privacy.detectable(Params.preset("windows"), 10**6, 200, float(power))
        assert (least["count"], least["frequency"]) == (found.count, found.frequency)


def test_without_a_permanent_step_epsilon_infinity_is_infinite() -> None:
    assert document("privacy", "--preset", "normal")["epsilon_infinity"] == "inf"
    assert "∞" in rappor("privacy", "--preset", "normal").stdout


@pytest.mark.parametrize(
    ("kind", "replaced", "zero", "words"),
    [
        ("string", 0.25, 0.0625, "for 25 % of clients, all bits of a value"),
        ("category", 0.5, 0.25, "for 50 % of clients, the bit of the value"),
        ("ordinal", 0.5, 0.25, "for 50 % of clients, the bit of the value"),
        ("boolean", 0.5, 0.25, "for 50 % of clients that hold true"),
        ("bits", 0.5**8, 0.25**8, "Of a value that sets all 8 bits: for 0.391 %"),
    ],
)
def test_privacy_shows_deniability_for_every_kind(
    kind: str, replaced: float, zero: float, words: str
) -> None:
    numbers = ("--k", "8", "--h", "2", "--m", "1", "--f", ".5", "--p", ".5", "--q", ".75")
    found = json.loads(rappor("privacy", *numbers, "--kind", kind, "--json").stdout)
    assert found["deniability"]["all_replaced"] == replaced
    assert found["deniability"]["all_zero"] == zero
    printed = rappor("privacy", *numbers, "--kind", kind).stdout
    assert words in printed
    assert "Neither means that nothing is learnt" in printed


def test_privacy_table_is_the_golden_one() -> None:
    done = rappor(*["privacy", "--preset", "windows", "--reports", "1e6", "--candidates", "200"])
    assert done.stdout == (GOLDEN / "privacy-windows.txt").read_text(encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")


def test_tables_round_epsilon_up() -> None:
    table = rappor("privacy", "--preset", "windows").stdout
    for exact, printed in ((1.0742858, "1.075"), (4.2993440, "4.300"), (4.3944491, "4.395")):
        assert printed in table
        assert float(printed) > exact


def test_params_may_come_from_a_file_or_from_six_numbers(tmp_path: Path) -> None:
    Params.preset("windows").to_csv(tmp_path / "params.csv")
    numbers = six(128, 2, 8, ".5", "0.5", "75e-2")
    wanted = document("privacy", "--preset", "windows")
    assert document("privacy", "--params", tmp_path / "params.csv") == wanted
    assert document("privacy", *numbers) == wanted


def test_params_and_kind_may_come_from_a_definition(tmp_path: Path) -> None:
    numbers, kind = six(4, 1, 1, ".25", ".25", ".75"), ("--kind", "category")
    file = tmp_path / "theme.toml"
    made = rappor(
        "collection", "new", "theme", *kind, "--categories", "a,b,c,d", *numbers, "--output", file
    )
    assert made.returncode == 0, made.stderr
    assert document("privacy", "--collection", file) == document("privacy", *numbers, *kind)
    told = rappor("privacy", "--collection", file).stdout
    assert "What theme v1 lets a client spend, rounded up:" in told
    assert re.search(r"all reports together: the client stops here +\d+\.\d{3}\n", told)
    attacked = rappor("attack", "window", "--collection", file, "--trials", "10")
    assert "f = 0.25" in attacked.stdout


def test_home_is_expanded_in_paths(tmp_path: Path) -> None:
    Params.preset("windows").to_csv(tmp_path / "params.csv")
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    assert rappor("privacy", "--params", "~/params.csv", env=home).returncode == 0


def test_the_finest_of_probabilities_give_limits_and_no_crash() -> None:
    # q* - p* = (1-f)(q-p) is far below what floats of p* and q* can tell apart.
    numbers = six(8, 1, 1, "0.9999999999", ".5", "0.5000000000000002")
    facts = document("privacy", *numbers, "--reports", "1e6", "--candidates", "10")
    signal = (1 - Fraction(0.9999999999)) * (Fraction(0.5000000000000002) - Fraction(1, 2))
    spread = math.sqrt(0.25 * 10**6) / float(signal)
    count = facts["detectable"]["power"]["0.5"]["count"]
    assert count == pytest.approx(privacy.critical_value(10) * spread, rel=1e-6)


def test_the_largest_of_epsilons_are_printed() -> None:
    numbers = (*six(4096, 1, 1, "0", "1e-300", ".75"), "--kind", "bits", "--n", "1e18")
    done = rappor("privacy", *numbers)
    assert (done.returncode, done.stderr) == (0, "")


# encode


def reports(text: str) -> list[tuple[int, str]]:
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["cohort", "rappor"]
    return [(int(cohort), bits) for cohort, bits in rows[1:]]


def test_encode_makes_one_report_for_each_value(secret: Path) -> None:
    done = rappor("encode", "--preset", "windows", "--secret-file", secret, "a", "b", "")
    assert (done.returncode, done.stderr) == (0, "")
    made = reports(done.stdout)
    cohort = Encoder(
        Params.preset("windows"), secret=secret.read_bytes(), collection="example"
    ).cohort
    assert [row[0] for row in made] == [cohort] * 3
    assert all(0 <= from_text(bits, 128) < 1 << 128 for _, bits in made)
    assert len({bits for _, bits in made}) == 3


@pytest.mark.parametrize(
    "stdin", ["a\nb\n\nc", "a\r\nb\r\n\r\nc\r\n", "naïve\n☃\n\n𝄞\n"], ids=["lf", "crlf", "utf-8"]
)
def test_encode_reads_one_value_a_line(secret: Path, stdin: str) -> None:
    done = rappor("encode", "--preset", "windows", "--secret-file", secret, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(reports(done.stdout)) == 4


def test_encode_says_what_the_library_says_where_chance_has_no_part(secret: Path) -> None:
    """With p = 0 and q = 1 a report is the permanent response, which the secret decides."""
    numbers = six(64, 2, 8, ".5", "0", "1")
    options = ("--secret-file", secret, "--collection", "home", "--dialect", "google")
    done = rappor("encode", *numbers, *options, stdin="a\r\nb\n")
    encoder = Encoder(
        Params(64, 2, 8, 0.5, 0, 1),
        secret=secret.read_bytes(),
        collection="home",
        dialect="google",
    )
    expected = [encoder.encode("a"), encoder.encode("b")]
    assert [(cohort, from_text(bits, 64)) for cohort, bits in reports(done.stdout)] == expected


def test_encode_json_is_one_object_a_line(secret: Path) -> None:
    options = ("--preset", "windows", "--secret-file", secret, "--cohort", "5", "--json")
    done = rappor("encode", *options, "a", "b")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [found["cohort"] for found in documents] == [5, 5]
    assert all(set(found) == {"cohort", "rappor"} for found in documents)
    assert all(len(found["rappor"]) == 128 for found in documents)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ((*SIX, "--kind", "category", "--categories", "a,b,c"), ("a", "c")),
        ((*SIX, "--kind", "ordinal", "--edges", "0,10,1e2"), ("5", "-5", "inf")),
        ((*SIX, "--kind", "bits"), ("0101", "1111")),
        (("--k", "1", *SIX[2:], "--kind", "boolean"), ("true", "no", "1")),
    ],
    ids=["category", "ordinal", "bits", "boolean"],
)
def test_encode_takes_every_kind(
    secret: Path, options: tuple[str, ...], values: tuple[str, ...]
) -> None:
    done = rappor("encode", *options, "--secret-file", secret, *values)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(reports(done.stdout)) == len(values)


@pytest.mark.skipif(os.name == "nt", reason="file modes are POSIX")
def test_a_secret_is_made_once_for_the_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    options = ("encode", "--preset", "windows", "--secret-file", file, "--create-secret", "v")
    first = rappor(*options)
    made = file.read_bytes()
    assert first.returncode == 0
    assert len(made) == 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert str(file) in first.stderr
    assert made.hex() not in first.stderr + first.stdout
    assert len(reports(first.stdout)) == 1
    second = rappor(*options)
    assert (second.returncode, second.stderr) == (0, "")
    assert file.read_bytes() == made
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("content", [b"", b"short"])
def test_an_existing_secret_is_not_replaced_however_bad_it_is(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    done = rappor("encode", "--preset", "windows", "--secret-file", file, "--create-secret", "v")
    assert file.read_bytes() == content
    assert done.returncode == (0 if content else 3)
    assert str(file) in done.stderr
    assert "short" not in done.stderr


CLOSED_PIPE = b"its reader closed the pipe; what was left is not written\n"


def test_a_reader_that_closes_the_pipe_is_told_so_in_one_sentence(secret: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "encode", "--preset", "windows", "--secret-file", secret],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"value\n" * 3000)
    process.stdin.flush()
    assert process.stdout.readline().rstrip() == b"cohort,rappor"
    process.stdout.close()  # what `| head -1` does
    try:
        process.stdin.write(b"value\n" * 3000)
        process.stdin.close()
    except BrokenPipeError:
        pass
    said = process.stderr.read()
    process.stderr.close()
    assert said == b"rappor encode: standard output: " + CLOSED_PIPE
    assert process.wait(300) == 1


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "decode --help",
        "privacy --preset windows",
        "explain example.com",
        "collection new theme",
        "reproduce --list",
        "completion bash",
    ],
)
def test_a_pipe_without_a_reader_ends_every_verb_alike(line: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        command = [*COMMAND, *line.split()]
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, env=environment())
    verb = "" if "--help" in line else f" {line.split()[0]}"
    assert done.stderr == f"rappor{verb}: standard output: ".encode() + CLOSED_PIPE
    assert done.returncode == 1


@pytest.mark.parametrize(
    "line",
    [
        "simulate --preset exponential --reports 1e3 --population zipf",
        "reproduce life-of-a-report",
    ],
)
def test_no_folder_is_named_like_standard_output(line: str, tmp_path: Path) -> None:
    done = rappor(*line.split(), "--output", "-", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.endswith("-: files are not written to standard output; name a folder\n")
    assert list(tmp_path.glob("-")) == []


# explain, demo, completion


def test_explain_shows_the_life_of_a_report(secret: Path) -> None:
    facts = document("explain", "example.com", "--secret-file", secret, "--collection", "home")
    params = Params.preset("life-of-a-report")
    encoder = Encoder(params, secret=secret.read_bytes(), collection="home")
    trace = encoder.trace("example.com")
    assert facts["value"] == "example.com"
    assert facts["cohort"] == encoder.cohort
    assert from_text(facts["signal"], 256) == trace.signal
    assert trace.signal == filter_bits(bloom_positions("example.com", encoder.cohort, params))
    assert from_text(facts["permanent"], 256) == trace.permanent
    assert len(facts["report"]) == 256
    assert facts["epsilon_one"] == privacy.epsilon_one(params)
    assert facts["epsilon_infinity"] == privacy.epsilon_infinity(params)
    assert facts["expected_ones"] == 144.5


def test_explain_draws_the_bits_from_bit_0_on(secret: Path) -> None:
    options = ("explain", "c", *CATEGORY, "--secret-file", secret)
    done = rappor(*options)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.strip() for line in done.stdout.splitlines() if set(line.strip()) <= set("█·")]
    drawn = [row for row in rows if row]
    assert drawn[0] == "··█·"
    facts = document(*options)
    assert drawn[1] == facts["permanent"][::-1].translate(str.maketrans("01", "·█"))
    assert len(drawn) == 3


def test_explain_uses_a_secret_of_its_own_unless_given_one() -> None:
    permanent = {document("explain", "example.com")["permanent"] for _ in range(2)}
    assert len(permanent) == 2


def test_explain_without_a_permanent_step_says_infinity(secret: Path) -> None:
    numbers = six(8, 1, 1, "0", ".5", ".75")
    assert document("explain", "x", *numbers)["epsilon_infinity"] == "inf"


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rappor pri", ["privacy"]),
        ("rappor e", ["explain", "encode", "export"]),
        ("rappor --v", ["--version"]),
        ("rappor privacy --pre", ["--preset"]),
        ("rappor privacy --preset w", ["windows"]),
        ("rappor explain --kind b", ["boolean", "bits"]),
        ("rappor encode --dialect google", ["google", "google-java"]),
        ("rappor encode --s", ["--secret-file"]),
        ("rappor completion f", ["fish"]),
        ("rappor compa", ["compare"]),
        ("rappor compare --wi", ["--with"]),
        ("rappor decode --overlap n", ["none"]),
        ("rappor decode --smooth st", ["strong"]),
        ("rappor privacy --nonsense", []),
    ],
)
def test_bash_completes(line: str, expected: list[str]) -> None:
    script = rappor("completion", "bash")
    assert (script.returncode, script.stderr) == (0, "")
    words = line.split()
    ask = (
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
        "complete -p rappor >&2; _rappor\n"
        'for word in "${COMPREPLY[@]}"; do echo "$word"; done\n'
    )
    assert BASH is not None
    done = subprocess.run(
        [BASH, "--norc", "--noprofile", "-u"],
        input=script.stdout + ask,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.split() == expected
    assert "-F _rappor rappor" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb_and_preset(shell: str) -> None:
    script = rappor("completion", shell).stdout
    for word in ("privacy", "explain", "encode", "demo", "completion", "life-of-a-report"):
        assert word in script


# The whole command.


def test_version() -> None:
    done = rappor("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"rappor {__version__}\n", "")


@pytest.mark.parametrize("verb", [(), ("privacy",), ("explain",), ("encode",), ("demo",)])
def test_help_goes_to_standard_output(verb: tuple[str, ...]) -> None:
    done = rappor(*verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {' '.join(('rappor', *verb))}")
    assert max(map(len, done.stdout.splitlines())) <= 80


HELP = """
import sys
from rappor.cli.main import main
try:
    main(["--help"])
except SystemExit as done:
    assert done.code == 0
assert sys.argv[1] not in sys.modules, f"--help loads {sys.argv[1]}"
"""


# Of rappor.decoding, --help loads the options module only, which needs no other module.
@pytest.mark.parametrize(
    "module",
    [
        *("numpy", "scipy", "asyncio", "ssl", "sqlite3", "statistics"),
        *("rappor.decoding.decode", "rappor.decoding.result", "rappor.aggregate", "rappor.charts"),
    ],
)
def test_help_loads_no_heavy_module(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", HELP, module], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("privacy", "--help"),
        ("privacy", "--preset", "normal", "--reports", "1e6", "--candidates", "9"),
        ("explain", "naïve ☃"),
        ("completion", "fish"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_without_unicode_get_plain_letters(
    arguments: tuple[str, ...], encoding: str
) -> None:
    env = environment({"PYTHONIOENCODING": encoding})
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, env=env, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    done.stdout.decode(encoding)
    assert b"\\u" not in done.stderr


def test_the_secret_note_is_readable_without_unicode(tmp_path: Path) -> None:
    options = ("--preset", "windows", "--secret-file", tmp_path / "s", "--create-secret", "v")
    done = rappor("encode", *options, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "\\u" not in done.stderr


def on_a_terminal(env: dict[str, str]) -> bytes:
    """What `rappor explain` prints on a terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "explain", "b", *CATEGORY], stdout=theirs, stdin=theirs, env=environment(env)
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # Linux says so where others return nothing: the other end is closed
            pass
        os.close(ours)
    assert process.returncode == 0
    return shown


def test_colour_is_for_terminals_that_want_it() -> None:
    assert b"\x1b[" in on_a_terminal({"TERM": "xterm"})
    assert b"\x1b[" not in on_a_terminal({"TERM": "xterm", "NO_COLOR": "1"})
    assert b"\x1b[" not in on_a_terminal({"TERM": "dumb"})
    assert "\x1b[" not in rappor("explain", "b", *CATEGORY, env={"TERM": "xterm"}).stdout


# Bad input: one clear message, an exit code that says whose fault it is, no traceback.

USAGE = [
    ("nonsense",),
    ("--nonsense",),
    ("privacy", "--nonsense"),
    ("privacy", "surplus", "--preset", "windows"),
    ("privacy", "--pre", "windows"),
    ("privacy", "--preset"),
    ("privacy", "--preset", "windows", "--kind", "nonsense"),
    ("privacy", "--preset", "windows", "--reports", "0", "--candidates", "9"),
    ("privacy", "--preset", "windows", "--reports", "-5", "--candidates", "9"),
    ("privacy", "--preset", "windows", "--reports", "1.5", "--candidates", "9"),
    ("privacy", "--preset", "windows", "--reports", "nan", "--candidates", "9"),
    ("privacy", "--preset", "windows", "--reports", "inf", "--candidates", "9"),
    ("privacy", "--preset", "windows", "--reports", "1e19", "--candidates", "9"),
    ("privacy", "--preset", "windows", "--reports", "1e999999999", "--candidates", "9"),
    ("privacy", "--preset", "windows", "--reports", "many", "--candidates", "9"),
    ("explain",),
    ("explain", "a", "b"),
    ("encode", "--preset", "windows", "value"),
    ("demo", "--reports", "999"),
    ("demo", "--reports", "1e9"),
    ("demo", "--seed", "0"),
    ("demo", "--port", "65536"),
    ("completion",),
    ("completion", "tcsh"),
    ("privacy", "--presets", "windows"),
    ("privacy",),
    ("privacy", "--preset", "windows", "--k", "3"),
    ("privacy", "--preset", "windows", "--params", "params.csv"),
    ("privacy", "--k", "3"),
    ("privacy", "--preset", "windows", "--reports", "1e6"),
    ("privacy", "--preset", "windows", "--candidates", "9"),
    ("privacy", "--preset", "windows", "--n", "1,x"),
    ("privacy", "--preset", "windows", "--n", ""),
    ("privacy", "--preset", "windows", "--n", "0"),
    ("encode", "--secret-file", "binary", "v"),
]

INVALID = [
    ("demo", "--keep", "."),
    ("privacy", "--preset", "nonsense"),
    ("privacy", "--preset", ""),
    ("privacy", *SIX[:-1], "0.5"),
    ("privacy", *SIX[:-1], "nan"),
    ("privacy", *SIX[:-1], "1e999"),
    ("privacy", *SIX[:-1], "١"),
    ("privacy", *SIX[:-1], "three quarters"),
    ("privacy", "--k", "1e2", *SIX[2:]),
    ("privacy", "--k", "1000000000", *SIX[2:]),
    ("privacy", "--k", "9" * 5000, *SIX[2:]),
    ("privacy", "--k", "0", *SIX[2:]),
    ("privacy", "--params", "absent.csv"),
    ("privacy", "--params", "."),
    ("privacy", "--params", "binary"),
    ("privacy", "--params", "~no-such-user-at-all/params.csv"),
    ("explain", "x", "--params", ""),
    ("explain", "x", "--cohort", "1"),
    ("explain", "x", "--cohort", "-1"),
    ("explain", "x", "--cohort", "one"),
    ("explain", "x", "--cohort", "9" * 5000),
    ("explain", "x", "--dialect", "nonsense"),
    ("explain", "x", "--dialect", b"\xff"),
    ("explain", "x", "--collection", ""),
    ("explain", "x", "--collection", b"\xff"),
    ("explain", "x", "--categories", "a,b"),
    ("explain", "x", "--edges", "1,2"),
    ("explain", "x", "--kind", "boolean"),
    ("explain", "x", *SIX, "--kind", "category"),
    ("explain", "x", *CATEGORY),
    ("explain", "a", *SIX, "--kind", "category", "--categories", "a,a"),
    ("explain", "a", *SIX, "--kind", "category", "--categories", "a,b,c,d,e"),
    ("explain", "a", *SIX, "--kind", "category", "--categories", b"a,\xff"),
    ("explain", "1", *SIX, "--kind", "ordinal"),
    ("explain", "x", *SIX, "--kind", "ordinal", "--edges", "1,2"),
    ("explain", "nan", *SIX, "--kind", "ordinal", "--edges", "1,2"),
    ("explain", "1", *SIX, "--kind", "ordinal", "--edges", "2,1"),
    ("explain", "1", *SIX, "--kind", "ordinal", "--edges", "1,x"),
    ("explain", "1", *SIX, "--kind", "ordinal", "--edges", "inf"),
    ("explain", "011", *SIX, "--kind", "bits"),
    ("explain", "01x1", *SIX, "--kind", "bits"),
    ("explain", b"\xff"),
    ("explain", "x", "--secret-file", "absent"),
    ("explain", "x", "--secret-file", "empty"),
    ("encode", "--preset", "windows", "--secret-file", "absent", "v"),
    ("encode", "--preset", "windows", "--secret-file", "empty", "v"),
    ("encode", "--preset", "windows", "--secret-file", "absent/secret", "--create-secret", "v"),
    ("encode", "--preset", "windows", "--secret-file", "~no-such-user-at-all/s", "v"),
    ("encode", "--preset", "normal", "--secret-file", "binary", "v"),
]


def label(arguments: tuple[str | bytes, ...]) -> str:
    shown = " ".join(part if isinstance(part, str) else repr(part) for part in arguments)
    return shown.replace(" ".join(SIX), "SIX")[:60] or "(nothing)"


def check_refusal(arguments: tuple[str | bytes, ...], code: int, folder: Path) -> None:
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "empty").write_bytes(b"")
    done = rappor(*arguments, cwd=folder)
    message = done.stderr
    assert "Traceback" not in message, message.splitlines()[-1]
    assert (done.returncode, done.stdout) == (code, "")
    assert message.startswith("rappor")
    assert message.endswith("\n")
    assert 1 <= message.count("\n") <= 2
    assert len(message) < 400


def test_without_a_verb_the_help_is_shown_as_an_error(tmp_path):
    done = subprocess.run(
        COMMAND, cwd=tmp_path, capture_output=True, env=environment(), check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"explain" in done.stderr


def test_a_misspelt_option_is_answered_with_the_likely_one(tmp_path):
    done = subprocess.run(
        [*COMMAND, "privacy", "--presets", "windows"],
        cwd=tmp_path,
        capture_output=True,
        env=environment(),
        check=False,
        timeout=300,
    )
    assert b"did you mean --preset?" in done.stderr


@pytest.mark.parametrize("arguments", USAGE, ids=label)
def test_wrong_usage_exits_2_with_one_message(
    arguments: tuple[str | bytes, ...], tmp_path: Path
) -> None:
    check_refusal(arguments, 2, tmp_path)


@pytest.mark.parametrize("arguments", INVALID, ids=label)
def test_invalid_input_exits_3_with_one_message(
    arguments: tuple[str | bytes, ...], tmp_path: Path
) -> None:
    check_refusal(arguments, 3, tmp_path)


def test_encode_names_the_line_that_is_wrong_and_not_the_value(secret: Path) -> None:
    options = (*CATEGORY, "--secret-file", secret)
    done = rappor("encode", *options, stdin="a\nb\nhunter2-marker\nc\n")
    assert done.returncode == 3
    assert len(reports(done.stdout)) == 2
    assert done.stderr.startswith("rappor encode: value 3: ")
    assert "hunter2" not in done.stderr


def test_encode_refuses_bytes_that_are_not_utf_8(secret: Path) -> None:
    done = rappor("encode", "--preset", "windows", "--secret-file", secret, stdin=b"a\nb\xff\n")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback() -> None:
    done = rappor("privacy", "--preset", "nonsense", "--debug")
    assert done.returncode not in (0, 2)
    assert "Traceback" in done.stderr
    assert "ParamsError" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_a_failure_and_no_traceback(unbuffered: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "privacy", "--preset", "windows"],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**environment(), "PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    assert done.returncode == 1
    assert b"standard output: no room on the disk" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(BASH is None, reason="there is no shell that can close a stream")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_streams_leave_no_traceback(secret: Path, closed: str) -> None:
    assert BASH is not None
    command = (*COMMAND, "encode", "--preset", "windows", "--secret-file", secret)
    done = subprocess.run(
        [BASH, "-c", f'"$@" {closed}', "bash", *command],
        input=b"value\n",
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1, 3)


@pytest.mark.parametrize(("told", "expected"), [(None, "1"), ("3", "3")])
def test_linear_algebra_has_one_thread_unless_told_otherwise(
    told: str | None, expected: str
) -> None:
    """In `rappor plan` two threads on two cores take half as long again as one."""
    code = (
        "import os, sys, rappor.cli.main; assert 'numpy' not in sys.modules; "
        "rappor.cli.main.main(['privacy', '--preset', 'chrome']); "
        "print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    env = environment()
    env.pop("OPENBLAS_NUM_THREADS", None)
    if told is not None:
        env["OPENBLAS_NUM_THREADS"] = told
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == expected, done.stderr


@pytest.mark.skipif(BASH is None, reason="there is no shell that can close a stream")
@pytest.mark.parametrize("words", [("privacy", "--preset", "windows"), ("plan", "--help"), ()])
def test_a_result_that_cannot_be_printed_is_a_failure(words: tuple[str, ...]) -> None:
    assert BASH is not None
    done = subprocess.run(
        [BASH, "-c", '"$@" >&-', "bash", *COMMAND, *(words or ("--version",))],
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith(
        b"standard output: it is closed; redirect it to a file, or to /dev/null\n"
    )


def test_explain_recommends_no_option_that_it_does_not_have() -> None:
    done = rappor("explain", "v", "--secret-file", "no-such-file")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "rappor explain: no-such-file: no such file or folder; check the path\n"
    made = rappor("encode", "v", "--preset", "windows", "--secret-file", "no-such-file")
    assert made.returncode == 3
    assert made.stderr.endswith("no such secret file; --create-secret makes it\n")


def test_explain_draws_free_bits_in_the_order_of_the_value() -> None:
    done = rappor("explain", "0011", *SIX, "--kind", "bits")
    rows = [line.strip() for line in done.stdout.splitlines() if set(line.strip()) <= set("█·")]
    assert next(row for row in rows if row) == "··██"
    assert "(from the left: bit 3 to bit 0, as in VALUE)" in done.stdout
