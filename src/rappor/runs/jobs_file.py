"""jobs.toml: which collections, periods and candidates a run decodes, and where results go.

Every key is checked; an error names its path, such as `jobs[2].alpha`. Paths are relative to the
file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import unquote, urlsplit

from rappor.checks import did_you_mean, show, whole
from rappor.decoding.options import CORRECTIONS, Correction, Method
from rappor.errors import ParamsError
from rappor.stored_view import ALL, days_in

Format = Literal["csv", "json", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
LATEST = "latest"
_LAST = re.compile(r"last ([1-9][0-9]{0,5})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_PROCESSES = 256
_TOP = ("data", "output", "formats", "all_rows", "processes", "dashboard", "jobs")
_JOB = (
    *("name", "collection", "collections", "version", "periods", "together", "by", "dimensions"),
    *("candidates", "correction", "alpha", "method"),
)
_SOURCE = ("file", "data", "collection", "version", "run", "job")


@dataclass(frozen=True, slots=True)
class CandidateSource:
    """Where the candidates of a job come from: exactly one of three places.

    Attributes:
        file: a list of strings, as `rappor decode --candidates` reads it.
        data: a data folder, whose saved list is taken.
        collection: of `data`, the collection of the list; None: the one that is decoded.
        version: of `data`, the version of the list; None: the newest.
        run: the output folder of a run; the strings that it detected are taken.
        job: of `run`, the name of the job.
    """

    file: Path | None = None
    data: Path | None = None
    collection: str | None = None
    version: int | None = None
    run: Path | None = None
    job: str | None = None


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job: some collections, decoded in one way.

    Attributes:
        name: its name in reports and in the folders of its results.
        collections: the names; None: all collections of the data folder.
        version: of the collection; None: the newest that has reports.
        periods: "latest", "all", "last N", a period, or "FROM..TO".
        together: add the periods up, instead of decoding each by itself.
        by: a dimension whose values are decoded each by itself.
        dimensions: only reports with these values, as sorted pairs.
        candidates: None: the newest list that the data folder has for the collection.
        correction: see `rappor.decode`.
        alpha: see `rappor.decode`.
        method: see `rappor.decode`.
    """

    name: str
    collections: tuple[str, ...] | None
    version: int | None = None
    periods: str = LATEST
    together: bool = False
    by: str | None = None
    dimensions: tuple[tuple[str, str], ...] = ()
    candidates: CandidateSource | None = None
    correction: Correction = "fdr"
    alpha: float = 0.05
    method: Method = "auto"

    @property
    def last(self) -> int | None:
        """N of "last N", or None."""
        found = _LAST.fullmatch(self.periods)
        return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class JobsFile:
    """A file of jobs.

    Attributes:
        data: the data folder.
        output: the folder of results.
        formats: the files of each result.
        all_rows: write candidates that were not detected too.
        processes: how many decodes run at once; None: one for each core.
        dashboard: whether to publish results to the dashboard of the data folder.
        jobs: the jobs, in the order of the file.
    """

    data: Path
    output: Path
    formats: tuple[Format, ...]
    all_rows: bool
    processes: int | None
    dashboard: bool
    jobs: tuple[JobSpec, ...]


def read_jobs(path: Path) -> JobsFile:
    """Read a file of jobs, or ParamsError, which names the file and the key."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        error.filename = str(path)
        raise
    except UnicodeDecodeError:
        raise ParamsError(f"{path}: not UTF-8 text; check that it is the right file") from None
    try:
        return parse_jobs(text, path.parent)
    except ParamsError as error:
        raise ParamsError(f"{path}: {error}") from None


def parse_jobs(text: str, folder: Path) -> JobsFile:
    r"""Read the text of a file of jobs; its paths are relative to `folder`.

    >>> text = 'data = "d"\noutput = "o"\n[[jobs]]\ncollection = "theme"\nperiods = "last 7"'
    >>> parse_jobs(text, Path("/srv")).jobs[0].last
    7
    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParamsError(f"not valid TOML: {error}") from None
    _only("", table, _TOP)
    jobs = table.get("jobs")
    if not isinstance(jobs, list) or not jobs:
        raise ParamsError("jobs is missing: describe at least one job under [[jobs]]")
    read = tuple(_job(f"jobs[{number}]", job, folder) for number, job in enumerate(jobs))
    names = [job.name for job in read]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ParamsError(f"jobs[{number}].name: {show(name)} is taken: name one of them else")
    formats = _strings("formats", table.get("formats", list(FORMATS[:1])))
    for name in formats:
        if name not in FORMATS:
            raise ParamsError(f"formats must be among {', '.join(FORMATS)}; got {show(name)}")
    processes = table.get("processes")
    if processes is not None:
        processes = whole("processes", processes, 1, _MAX_PROCESSES)
    return JobsFile(
        data=_place("data", table, folder),
        output=_place("output", table, folder),
        formats=cast("tuple[Format, ...]", tuple(dict.fromkeys(formats))),
        all_rows=_flag("all_rows", table),
        processes=processes,
        dashboard=_flag("dashboard", table),
        jobs=read,
    )


def _job(where: str, table: Any, folder: Path) -> JobSpec:
    if not isinstance(table, dict):
        raise ParamsError(f"{where} must be a table: write [[jobs]] before it")
    _only(where, table, _JOB)
    collections = _collections(where, table)
    single = collections[0] if collections is not None and len(collections) == 1 else None
    name = _text(f"{where}.name", table.get("name", single if single is not None else ALL))
    if not _NAME.fullmatch(name):
        raise ParamsError(
            f"{where}.name must be letters, digits, dots, - and _, as it names a folder; got "
            f"{show(name)}"
        )
    version = table.get("version")
    if version is not None:
        if single is None:
            raise ParamsError(f"{where}.version goes with one collection")
        version = whole(f"{where}.version", version, 1)
    by = table.get("by")
    spec = JobSpec(
        name=name,
        collections=collections,
        version=version,
        periods=_periods(f"{where}.periods", table.get("periods", LATEST)),
        together=_flag("together", table, where),
        by=None if by is None else _text(f"{where}.by", by),
        dimensions=_dimensions(f"{where}.dimensions", table.get("dimensions", {})),
        candidates=_source(f"{where}.candidates", table.get("candidates"), folder),
        correction=cast(
            Correction, _choice(f"{where}.correction", table.get("correction", "fdr"), CORRECTIONS)
        ),
        alpha=_alpha(f"{where}.alpha", table.get("alpha", 0.05)),
        method=cast(
            Method, _choice(f"{where}.method", table.get("method", "auto"), get_args(Method))
        ),
    )
    if spec.by is not None and spec.by in dict(spec.dimensions):
        raise ParamsError(f"{where}.by: dimensions choose one {spec.by} already; leave one out")
    return spec


def _collections(where: str, table: Mapping[str, Any]) -> tuple[str, ...] | None:
    if ("collection" in table) == ("collections" in table):
        raise ParamsError(f'{where} needs collection = "NAME", or collections')
    if "collection" in table:
        return (_text(f"{where}.collection", table["collection"]),)
    if table["collections"] == ALL:
        return None
    return tuple(dict.fromkeys(_strings(f"{where}.collections", table["collections"])))


def _periods(where: str, given: Any) -> str:
    text = _text(where, given)
    if text in (LATEST, ALL) or _LAST.fullmatch(text):
        return text
    try:
        days_in(text)
    except ParamsError:
        raise ParamsError(
            f'{where} must be "latest", "all", "last N", a period such as 2026-11-16 or 2026-W47, '
            f"or FROM..TO; got {show(text)}"
        ) from None
    return text


def _source(where: str, given: Any, folder: Path) -> CandidateSource | None:
    """A file's name, or a table with file, data or run."""
    if given is None:
        return None
    if isinstance(given, str):
        given = {"file": given}
    if not isinstance(given, dict):
        raise ParamsError(f"{where} must be the name of a file, or a table with file, data or run")
    _only(where, given, _SOURCE)
    ways = [name for name in ("file", "data", "run") if name in given]
    if len(ways) != 1:
        raise ParamsError(f"{where} needs exactly one of file, data and run")
    allowed = {"file": (), "data": ("collection", "version"), "run": ("job",)}[ways[0]]
    for name in given:
        if name != ways[0] and name not in allowed:
            raise ParamsError(f"{where}.{name} does not go with {ways[0]}; leave it out")
    place = _place(ways[0], given, folder, where)
    if ways[0] == "file":
        return CandidateSource(file=place)
    if ways[0] == "run":
        if "job" not in given:
            raise ParamsError(f"{where}.job is missing: name the job of that run")
        return CandidateSource(run=place, job=_text(f"{where}.job", given["job"]))
    named = given.get("collection")
    version = given.get("version")
    return CandidateSource(
        data=place,
        collection=None if named is None else _text(f"{where}.collection", named),
        version=None if version is None else whole(f"{where}.version", version, 1),
    )


def _dimensions(where: str, given: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, dict):
        raise ParamsError(f'{where} must be a table such as {{country = "NZ"}}')
    return tuple(sorted((key, _text(f"{where}.{key}", value)) for key, value in given.items()))


def _alpha(where: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < 1:
        raise ParamsError(f"{where} must be a number above 0 and below 1, got {show(given)}")
    return float(given)


def _choice(where: str, given: Any, allowed: Any) -> str:
    text = _text(where, given)
    if text not in allowed:
        raise ParamsError(f"{where} must be one of {', '.join(allowed)}; got {show(text)}")
    return text


def _place(name: str, table: Mapping[str, Any], folder: Path, where: str = "") -> Path:
    """A path relative to the file of jobs; also written as a file:// URL."""
    said = f"{where}.{name}" if where else name
    if name not in table:
        raise ParamsError(f"{said} is missing: give the path of a folder")
    text = _text(said, table[name])
    if "://" in text:
        parts = urlsplit(text)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise ParamsError(f"{said} must be a path or a file:// URL, got {show(text)}")
        text = unquote(parts.path)
    try:
        return folder / Path(text).expanduser()
    except RuntimeError:
        raise ParamsError(f"{said}: {text}: no such home directory; check the path") from None


def _flag(name: str, table: Mapping[str, Any], where: str = "") -> bool:
    given = table.get(name, False)
    if not isinstance(given, bool):
        said = f"{where}.{name}" if where else name
        raise ParamsError(f"{said} must be true or false, got {show(given)}")
    return given


def _strings(where: str, given: Any) -> list[str]:
    if not isinstance(given, list) or not given:
        raise ParamsError(f"{where} must be a list of names, got {show(given)}")
    return [_text(where, item) for item in given]


def _text(where: str, given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ParamsError(f"{where} must be a text, got {show(given)}")
    return given


def _only(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            path = f"{where}.{key}" if where else key
            raise ParamsError(
                f"{path} is not a key of a file of jobs{did_you_mean(key, known)}; rename or "
                "remove it"
            )
