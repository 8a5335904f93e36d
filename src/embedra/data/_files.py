"""From what a user names to the files there are, local or remote."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.fs
import tensorflow as tf

from ._errors import DataError


# A path, several, or a `tf.data.Dataset` of them.
Names = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Any

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WILD = re.compile(r"[*?\[]")
# Options of a file system, as in `s3://bucket/folder?region=eu-west-1`.
_QUERY = re.compile(r"\?\w+=[^?*\[]*$")
# What a URL says before its host: a name and a password, or keys.
_SECRET = re.compile(r"(?<=://)[^/@]+@")


@dataclass(frozen=True)
class SourceFile:
    """One file.

    Attributes:
        filesystem: Where it is.
        path: Its path there.
        label: What messages call it.
        partitions: Columns that its folders stand for, as in `day=7/`; None
            is a missing value.
    """

    filesystem: pa.fs.FileSystem
    path: str
    label: str
    partitions: Mapping[str, str | None] = field(default_factory=dict)

    def open(self) -> pa.NativeFile:
        """Opens the file for reading at any place.

        Raises:
            OSError: If it cannot be.
        """
        return self.filesystem.open_input_file(self.path)


def find_files(
    names: Names, filesystem: Any = None, suffixes: Sequence[str] = ()
) -> list[SourceFile]:
    """Finds all files that names stand for, in a reproducible order.

    Args:
        names: A path, folder, pattern (`*`, `?`, `[..]`, `**`) or URL such as
            `s3://bucket/folder?region=eu-west-1`, a list of these, or a
            dataset of them, of which the names are sorted: `list_files`
            shuffles them, on each rank in its own way. In folders, hidden
            files and those that begin with `_` are left out.
        filesystem: A `pyarrow.fs` or fsspec file system that the names are
            paths of. Default: the one of each URL, or the local one.
        suffixes: Where a folder is named: endings of the files to take. Empty
            for all.

    Returns:
        The files: those of each name in order of their paths.

    Raises:
        DataError: If a name matches nothing, or cannot be looked up.
    """
    found: list[SourceFile] = []
    for name in _each(names):
        target, path = _resolve(name, filesystem)
        try:
            files = _of_path(target, path, name, tuple(suffixes))
        except (OSError, pa.ArrowException) as error:
            msg = f"{_shown(name)}: cannot be looked up: {error}"
            raise DataError(msg) from error
        if not files:
            msg = (
                f"{_shown(name)}: no file matches. Expected a file, a folder "
                "with files, or a pattern that matches some."
            )
            raise DataError(msg)
        found += files
    if not found:
        msg = "No file is named. Expected a path, or a list of one or more."
        raise DataError(msg)
    return found


def _each(names: Names) -> Iterable[str]:
    symbolic = tf.is_tensor(names) and not hasattr(names, "numpy")
    if symbolic or (
        isinstance(names, tf.data.Dataset) and not tf.executing_eagerly()
    ):
        msg = (
            "Names of files must be known when the dataset is made. Received: "
            f"{names}, in a graph. Give the names, or a pattern of them, "
            "instead of calling a reader in interleave, map or a TF1 graph on "
            "tensors."
        )
        raise DataError(msg)
    if isinstance(names, tf.data.Dataset):
        names = sorted(names.as_numpy_iterator())
    elif tf.is_tensor(names):
        names = np.asarray(names)
    if isinstance(names, np.ndarray):
        names = names.ravel().tolist()
    if isinstance(names, str | bytes | os.PathLike):
        names = [names]
    found = [os.fsdecode(name) for name in names]
    if "" in found:
        msg = "The name of a file is empty. Expected a path."
        raise DataError(msg)
    return found


def _resolve(name: str, filesystem: Any) -> tuple[pa.fs.FileSystem, str]:
    if filesystem is not None:
        if not isinstance(filesystem, pa.fs.FileSystem):
            handler = pa.fs.FSSpecHandler(filesystem)
            filesystem = pa.fs.PyFileSystem(handler)
        return filesystem, name
    if "://" not in name:
        return pa.fs.LocalFileSystem(), os.path.abspath(name)
    query = _QUERY.search(name)
    options = query[0] if query else ""
    base, wild = _split(name.removesuffix(options))
    url = base + options
    try:
        target, path = pa.fs.FileSystem.from_uri(url)
    except pa.ArrowNotImplementedError:
        target, path = _fsspec(name, url)
    except pa.ArrowInvalid as error:
        if "Unrecognized filesystem" not in str(error):
            msg = f"{_shown(name)}: cannot be looked up: {error}"
            raise DataError(msg) from error
        target, path = _fsspec(name, url)
    except OSError as error:
        msg = f"{_shown(name)}: cannot be looked up: {error}"
        raise DataError(msg) from error
    return target, f"{path.rstrip('/')}/{wild}" if wild else path


def _fsspec(name: str, url: str) -> tuple[pa.fs.FileSystem, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        scheme = name.split("://", 1)[0]
        msg = (
            f"{_shown(name)}: Arrow has no file system for {scheme}://. "
            "Install fsspec and its package for it: pip install fsspec."
        )
        raise DataError(msg) from error
    try:
        inner, path = url_to_fs(url)
    except (ValueError, ImportError, OSError) as error:
        msg = f"{_shown(name)}: cannot be looked up: {error}"
        raise DataError(msg) from error
    return pa.fs.PyFileSystem(pa.fs.FSSpecHandler(inner)), path


def _split(path: str) -> tuple[str, str]:
    """The folder above the first wildcard of a pattern, and the rest."""
    match = _WILD.search(path)
    if match is None:
        return path, ""
    cut = path.rfind("/", 0, match.start())
    return path[:cut], path[cut + 1 :]


def _of_path(
    target: pa.fs.FileSystem, path: str, name: str, suffixes: tuple[str, ...]
) -> list[SourceFile]:
    # A file may have a bracket in its name.
    info = target.get_file_info(path)
    if info.type == pa.fs.FileType.File:
        return [SourceFile(target, path, _shown(name), _partitions(path))]
    base, wild = _split(path)
    if info.type == pa.fs.FileType.Directory:
        base, wild = path, ""
    selector = pa.fs.FileSelector(
        base or "/",
        allow_not_found=True,
        # Folders that no name can match may be many, or not ours to read.
        recursive=not wild or "/" in wild or "**" in wild,
    )
    matches = re.compile(_expression(wild)).fullmatch if wild else None
    files = []
    for one in target.get_file_info(selector):
        inside = one.path[len(base) :].strip("/")
        if one.type != pa.fs.FileType.File or _is_hidden(inside):
            continue
        if matches(inside) if matches else inside.endswith(suffixes or ""):
            label = one.path if "://" not in name else _url(name, one.path)
            files.append(
                SourceFile(target, one.path, label, _partitions(one.path))
            )
    if isinstance(target, pa.fs.LocalFileSystem):
        loops = _loops({os.path.dirname(file.path) for file in files}, base)
        files = [f for f in files if os.path.dirname(f.path) not in loops]
    return sorted(files, key=lambda file: file.path)


def _loops(folders: Iterable[str], base: str) -> set[str]:
    """Folders that are reached by a link to one of those above them."""
    found = set()
    for folder in folders:
        above = [base]
        for part in folder[len(base) :].strip("/").split("/"):
            above.append(os.path.join(above[-1], part))
        real = [os.path.realpath(one) for one in above if one != base]
        real.append(os.path.realpath(base))
        if folder != base and len(set(real)) < len(real):
            found.add(folder)
    return found


def _shown(name: str) -> str:
    """A name as messages show it: without the keys that a URL may hold."""
    return _SECRET.sub("", name)


def _url(name: str, path: str) -> str:
    scheme = name.split("://", 1)[0]
    return f"{scheme}://{path if scheme == 'file' else path.lstrip('/')}"


def _is_hidden(inside: str) -> bool:
    return any(
        part[:1] in ("_", ".") and "=" not in part for part in inside.split("/")
    )


def _expression(wild: str) -> str:
    """A regular expression for a pattern of paths."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", wild)
    rules = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        rules.get(part)
        or (part.replace("[!", "[^") if part[:1] == "[" else re.escape(part))
        for part in parts
    )


def _partitions(path: str) -> dict[str, str | None]:
    """Columns that folders stand for, as Hive writes them."""
    found: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        key, mark, value = part.partition("=")
        if mark and key:
            found[key] = None if value == _NO_VALUE else unquote(value)
    return found
