"""What a CSV file of google/rappor is, by its header: named when it is given where it does not fit.

Its association analysis has files of its own: reports of several variables at once, a list of
the variables, and a table of pairs. `rappor associate` reads the first two.
"""

from __future__ import annotations

from collections.abc import Sequence

_BITS = ("irr", "rappor", "bits", "bloom", "prr")
VARIABLES = ("metric", "var", "var_type", "params")


def file_kind(header: Sequence[str]) -> str | None:
    """What a file with this header is, and the way out, as the rest of a sentence.

    None for a header that is not known. Names of variables are not repeated.

    >>> file_kind(["client", "cohort", "irr"]).partition(":")[0]
    'holds reports'
    >>> file_kind(["client", "cohort", "domain", "https"]).partition(",")[0]
    "holds google/rappor's association reports"
    """
    names = [name.strip() for name in header]
    if names[:2] == ["client", "cohort"] and any(name in _BITS for name in names):
        return "holds reports: count them first, rappor aggregate FILE --output counts.csv"
    if names[:2] == ["client", "cohort"] and len(names) > 3:
        return (
            f"holds google/rappor's association reports, {len(names) - 2} variables in each: give "
            "it to rappor associate. To decode one string variable by itself, keep the columns "
            "client and cohort and its own, and call it rappor: client,cohort,rappor"
        )
    if tuple(names) == VARIABLES:
        return (
            "lists the variables of google/rappor's association analysis: give it to rappor "
            "associate as --schema. The parameters of a variable are in the params.csv that its "
            "last column names"
        )
    if len(names) == 3 and names[2] == "proportion":
        return (
            "holds the results of google/rappor's association analysis, shares of pairs: there is "
            "nothing to decode in it. Give the counts or reports that it was made from"
        )
    if names[:2] == ["string", "estimate"]:
        return "holds results: there is nothing to decode in it. Give the counts or reports"
    return None
