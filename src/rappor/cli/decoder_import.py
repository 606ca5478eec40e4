"""`rappor decode --decoder MODULE:NAME`: import a decoder of one's own.

Only this option imports code that is named on the command line, and only the command has it: the
dashboard takes no decoder.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from rappor.checks import did_you_mean, show
from rappor.cli.arguments import UsageError
from rappor.errors import DecodeError

if TYPE_CHECKING:
    from rappor.decoding.own_decoder import Decoder


def own_decoder(args: argparse.Namespace) -> Decoder | None:
    """The decoder that --decoder names; None without the option."""
    return None if args.decoder is None else import_decoder(args.decoder)


def import_decoder(path: str) -> Decoder:
    """The decoder at a path such as `mine:decoder`; a class is called without arguments.

    Raises:
        UsageError: the path has not this form.
        DecodeError: there is no such module or name, it fails to import, or it is no decoder.
    """
    from rappor.decoding.own_decoder import check_decoder

    module_name, colon, name = path.partition(":")
    dotted = module_name.replace(".", "_")
    if not (colon and dotted.isidentifier() and name.isidentifier()):
        raise UsageError(
            f"--decoder takes MODULE:NAME, such as mine:decoder for `decoder` in mine.py; got "
            f"{show(path)}"
        )
    module = _module(module_name)
    try:
        found = getattr(module, name)
    except AttributeError:
        hint = did_you_mean(name, [known for known in vars(module) if known[0] != "_"])
        raise DecodeError(
            f"{module_name} has nothing called {name}{hint}; define it there, or name another"
        ) from None
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            raise DecodeError(
                f"{path} is a class that could not be called without arguments "
                f"({type(error).__name__}: {error}): make an object in {module_name}, "
                f"`decoder = {name}(...)`, and name that"
            ) from error
    try:
        return check_decoder(found)
    except DecodeError as error:
        raise DecodeError(f"{path}: {error}") from None


def _module(name: str) -> ModuleType:
    """The module, from the current folder or an installed package."""
    folder = os.getcwd()
    if folder not in sys.path:  # `python -m rappor` has it, the command `rappor` has not
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise DecodeError(
                f"{name} imports {error.name}, which is not installed: install it into this "
                "environment"
            ) from error
        raise DecodeError(
            f"there is no module {name}, neither in this folder nor installed: run the command "
            f"where {name.partition('.')[0]}.py is, or install it"
        ) from None
    except Exception as error:  # whatever the module does when it is imported
        raise DecodeError(
            f"{name} failed to import with {type(error).__name__}: {error}; mend it (--debug shows "
            "where)"
        ) from error
