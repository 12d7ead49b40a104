"""Options of file formats, shared by every connector that reads or writes files.

An option that means nothing for its format is refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

FORMATS = ("csv", "json", "parquet", "tsv")
"""Formats of this version, in ordinal order."""

READ_PROPERTIES: Mapping[str, Any] = {
    "path": {"type": "string", "minLength": 1},
    "format": {"type": "string"},
    "delimiter": {"type": "string"},
    "layout": {"type": "string"},
    "compression": {"type": "string"},
    "encoding": {"type": "string"},
    "hive_partitioning": {"type": "boolean"},
    "on_empty": {"type": "string"},
    "ragged": {"type": "string"},
    "columns": {"type": "object", "additionalProperties": {"type": "string"}},
}
"""JSON Schema properties of the read options."""

WRITE_PROPERTIES: Mapping[str, Any] = {
    "path": {"type": "string", "minLength": 1},
    "format": {"type": "string"},
    "delimiter": {"type": "string"},
    "layout": {"type": "string"},
    "compression": {"type": "string"},
    "partition_by": {
        "oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
    },
}
"""JSON Schema properties of the write options."""

_FORMAT_OF_OPTION = {
    "delimiter": ("csv",),
    "layout": ("json",),
    "encoding": ("csv", "tsv"),
    "ragged": ("csv", "tsv"),
}
_CHOICES = {
    "layout": ("ndjson", "array"),
    "encoding": ("utf-8", "utf-16", "latin-1"),
    "on_empty": ("fail", "zero_rows"),
    "ragged": ("fail", "pad", "reject"),
}
_TEXT_READ_COMPRESSIONS = ("auto", "none", "gzip", "zstd")
_TEXT_WRITE_COMPRESSIONS = ("none", "gzip", "zstd")
_PARQUET_COMPRESSIONS = ("snappy", "zstd", "gzip", "none")
_SUFFIXES = {"gzip": ".gz", "zstd": ".zst"}


class OptionProblem(Struct, frozen=True):
    """Why an option is refused."""

    code: str
    message: str
    hint: str | None = None


class FileReadOptions(Struct, frozen=True):
    """Read options with defaults filled in."""

    format: str
    path: str | None
    delimiter: str
    layout: str
    compression: str
    encoding: str
    hive_partitioning: bool | None
    """None: on when a folder is spelled `key=value`."""

    allows_no_files: bool
    ragged: str

    @classmethod
    def of(cls, options: Mapping[str, Any], *, default_format: str) -> FileReadOptions:
        """Take the options of a read; they have passed `read_problems`."""
        name = str(options.get("format", default_format))
        return cls(
            format=name,
            path=options.get("path"),
            delimiter="\t" if name == "tsv" else str(options.get("delimiter", ",")),
            layout=str(options.get("layout", "ndjson")),
            compression=str(options.get("compression", "auto")),
            encoding=str(options.get("encoding", "utf-8")),
            hive_partitioning=options.get("hive_partitioning"),
            allows_no_files=options.get("on_empty") == "zero_rows",
            ragged=str(options.get("ragged", "fail")),
        )

    @property
    def is_delimited(self) -> bool:
        """Tell whether the format is csv or tsv."""
        return self.format in {"csv", "tsv"}


class FileWriteOptions(Struct, frozen=True):
    """Write options with defaults filled in."""

    format: str
    path: str | None
    delimiter: str
    layout: str
    compression: str
    partition_by: tuple[str, ...]

    @classmethod
    def of(cls, options: Mapping[str, Any], *, default_format: str | None) -> FileWriteOptions:
        """Take the options of a write; they have passed `write_problems`."""
        name = str(options.get("format", default_format))
        columns = options.get("partition_by", ())
        return cls(
            format=name,
            path=options.get("path"),
            delimiter="\t" if name == "tsv" else str(options.get("delimiter", ",")),
            layout=str(options.get("layout", "ndjson")),
            compression=str(options.get("compression", "snappy" if name == "parquet" else "none")),
            partition_by=(columns,) if isinstance(columns, str) else tuple(columns),
        )

    @property
    def suffix(self) -> str:
        """Return what follows the object's name, compression included."""
        compressed = "" if self.format == "parquet" else _SUFFIXES.get(self.compression, "")
        return f".{self.format}{compressed}"


def read_problems(options: Mapping[str, Any], *, default_format: str | None) -> list[OptionProblem]:
    """Return what is wrong with the format options of a read."""
    problems = _shared_problems(options, default_format)
    name = options.get("format", default_format)
    if name not in FORMATS:
        return problems
    if "compression" in options:
        if name == "parquet":
            problems.append(OptionProblem("PZ0362", "'compression' is not an option of reading parquet", "remove it"))
        else:
            problems.extend(_choice(options, "compression", _TEXT_READ_COMPRESSIONS))
    if options.get("on_empty") == "zero_rows" and not options.get("columns"):
        problems.append(
            OptionProblem(
                "PZ0362", "'on_empty: zero_rows' needs 'columns', or nobody knows what is empty", "add columns:"
            )
        )
    if name != "parquet":
        blobs = [column for column, kind in (options.get("columns") or {}).items() if kind == "blob"]
        problems.extend(
            OptionProblem("PZ0362", f"column '{column}' cannot be a blob in {name}, which is text", "declare varchar")
            for column in blobs
        )
    return problems


def write_problems(options: Mapping[str, Any], *, default_format: str | None) -> list[OptionProblem]:
    """Return what is wrong with the format options of a write."""
    problems = _shared_problems(options, default_format)
    name = options.get("format", default_format)
    if name in FORMATS and "compression" in options:
        allowed = _PARQUET_COMPRESSIONS if name == "parquet" else _TEXT_WRITE_COMPRESSIONS
        problems.extend(_choice(options, "compression", allowed))
    return problems


def _shared_problems(options: Mapping[str, Any], default_format: str | None) -> list[OptionProblem]:
    name = options.get("format", default_format)
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        said = "no format is given" if name is None else f"format '{name}' is not supported"
        return [OptionProblem("PZ0361", f"{said}; formats: {known}", "set format to one of them")]
    problems: list[OptionProblem] = []
    for option, formats in _FORMAT_OF_OPTION.items():
        if option not in options:
            continue
        if name not in formats:
            belongs = " and ".join(formats)
            problems.append(
                OptionProblem("PZ0362", f"'{option}' is an option of {belongs}, not of {name}", f"remove '{option}'")
            )
        elif option == "delimiter":
            problems.extend(_delimiter_problem(str(options[option])))
        else:
            problems.extend(_choice(options, option, _CHOICES[option]))
    if "on_empty" in options:
        problems.extend(_choice(options, "on_empty", _CHOICES["on_empty"]))
    return problems


def _choice(options: Mapping[str, Any], option: str, allowed: tuple[str, ...]) -> list[OptionProblem]:
    if options[option] in allowed:
        return []
    return [OptionProblem("PZ0362", f"'{option}' must be one of {', '.join(allowed)}", f"set {option}: {allowed[0]}")]


def _delimiter_problem(delimiter: str) -> list[OptionProblem]:
    if len(delimiter) == 1 and delimiter.isascii() and delimiter not in '"\r\n':
        return []
    return [
        OptionProblem(
            "PZ0362", "'delimiter' must be one ASCII character and no quote or line end", "set delimiter: ';'"
        )
    ]
