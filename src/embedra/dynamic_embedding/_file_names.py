"""Names of the files of variables."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embedra import _env


_FILE = re.compile(r"_mht_(\d+)of(\d+)_rank(\d+)_size(\d+)-keys$")


def file_names(variable: Any, proc_size: int, proc_rank: int) -> list[str]:
    """Returns the beginnings of the names of a process's files.

    Args:
        variable: The variable.
        proc_size: Number of processes.
        proc_rank: Number of this one.

    Returns:
        One for each device.
    """
    base, count = _base(variable), len(variable.tables)
    return [
        f"{base}_mht_{i + 1}of{count}_rank{proc_rank}_size{proc_size}"
        for i in range(count)
    ]


def prefixes_in(
    folder: Path, variable: Any, names: Sequence[str] | None
) -> list[Path]:
    """Finds all files of a variable in a folder, whoever wrote them.

    Args:
        folder: The folder.
        variable: The variable.
        names: Beginnings of file names, or None for those of the variable.

    Returns:
        Beginnings of paths, sorted.

    Raises:
        FileNotFoundError: If there are none.
    """
    bases = [re.sub(r"_mht_.*", "", n) for n in names or [_base(variable)]]
    found = sorted(
        path
        for path in (folder.iterdir() if folder.is_dir() else ())
        if any(
            path.name.startswith(f"{base}_mht_") or path.name == f"{base}-keys"
            for base in bases
        )
        and path.name.endswith("-keys")
    )
    if not found:
        msg = (
            f"There are no files {bases[0]}_mht_*-keys in {folder}. Nothing "
            "was loaded."
        )
        raise FileNotFoundError(msg)
    return [path.with_name(path.name.removesuffix("-keys")) for path in found]


def check_one_whole_save(prefixes: Sequence[Path]) -> None:
    """Raises unless files are those of all processes and devices of one save.

    Args:
        prefixes: Beginnings of their paths.

    Raises:
        ValueError: If there are several saves.
        FileNotFoundError: If the save is not whole.
    """
    parts = [_FILE.search(f"{prefix}-keys") for prefix in prefixes]
    numbers = [tuple(map(int, part.groups())) for part in parts if part]
    if not numbers and len(prefixes) == 1:
        return
    saves = {(devices, size) for _, devices, _, size in numbers}
    if len(saves) != 1 or len(numbers) != len(prefixes):
        msg = (
            f"The files {prefixes[0]}* and others are those of several saves "
            f"(devices, processes: {sorted(saves)}). Nothing was loaded: "
            "remove those that are out of date."
        )
        raise ValueError(msg)
    devices, size = saves.pop()
    expected = {(i + 1, r) for i in range(devices) for r in range(size)}
    missing = sorted(expected - {(i, r) for i, _, r, _ in numbers})
    if missing:
        i, rank = missing[0]
        msg = (
            f"{prefixes[0].parent} lacks the file of device {i} of {devices}, "
            f"process {rank} of {size} (_mht_{i}of{devices}_rank{rank}_size"
            f"{size}-keys). Nothing was loaded."
        )
        raise FileNotFoundError(msg)


def folder_of(dirpath: str | None, dirpath_env: str) -> Path:
    """Returns the folder to use; the environment comes first, as in TFRA.

    Args:
        dirpath: The folder that is asked for.
        dirpath_env: Name of an environment variable that overrules it.
    """
    found = _env.setting(dirpath_env) or dirpath
    return Path(checked_folder(found))


def checked_folder(dirpath: str | None) -> str:
    """Returns a folder that is given, or raises ValueError."""
    if not dirpath:
        msg = (
            "`dirpath` is needed: there is no de.FileSystemSaver with a "
            "`save_path` to take it from."
        )
        raise ValueError(msg)
    return str(dirpath)


def _base(variable: Any) -> str:
    name = str(variable.name)
    if variable.short_file_name:
        name = name.rsplit("/", maxsplit=1)[-1]
    return name.replace("/", "_")
