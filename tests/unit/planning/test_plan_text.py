"""What print(plans) says: the words of `rappor plan`, and a short repr."""

import contextlib
import io

import rappor
from rappor.cli.main import main


def test_print_gives_what_the_command_prints() -> None:
    found = rappor.plan(1.0743, 4.3944, reports=10**6, candidates=200, check=0)
    options = "--epsilon-one 1.0743 --epsilon-infinity 4.3944 --reports 1e6 --candidates 200"
    with contextlib.redirect_stdout(io.StringIO()) as command:
        assert main(["plan", *options.split(), "--check", "0"]) == 0
    with contextlib.redirect_stdout(io.StringIO()) as python:
        print(found)
    assert python.getvalue() == command.getvalue()
    assert repr(found) == f"<Plans {len(found)}, the best: {found.best.params}>"
