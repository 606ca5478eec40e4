"""The candidates of a tuple's string fields, from one list."""

from __future__ import annotations

from collections.abc import Iterable

from rappor.checks import show
from rappor.errors import DecodeError
from rappor.mechanism.views import Views


def field_lists(views: Views, lines: Iterable[str]) -> dict[str, list[str]]:
    """The candidates of each string field.

    The list of a tuple with one string field holds its strings. With several, each line says
    whose it is: FIELD=STRING.

    Raises:
        DecodeError: a line does not say whose string it is.

    >>> from rappor.mechanism import Field
    >>> two = Views((Field("page", "string"), Field("search", "string")))
    >>> field_lists(two, ["page=a.example", "search=b=c"])
    {'page': ['a.example'], 'search': ['b=c']}
    """
    names = [field.name for field in views.fields if field.kind == "string"]
    if len(names) == 1:
        return {names[0]: list(lines)}
    found: dict[str, list[str]] = {name: [] for name in names}
    for line in lines:
        name, _, string = line.partition("=")
        if name not in found:
            raise DecodeError(
                f"{show(line)} does not say of which field it is a candidate: write each line as "
                f"FIELD=STRING, with one of {', '.join(names) or 'no string fields'}"
            )
        found[name].append(string)
    return found
