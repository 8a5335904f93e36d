"""Resident memory of this process, from /proc (Linux)."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path


__all__ = ["peak_bytes", "reset_peak", "settled_bytes"]


def settled_bytes() -> int:
    """Resident bytes after garbage and free heap pages are given back."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return _status_bytes("VmRSS")


def reset_peak() -> None:
    """Makes `peak_bytes` start again from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes() -> int:
    """The most bytes that were resident since the last `reset_peak`."""
    return _status_bytes("VmHWM")


def _status_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    msg = f"/proc/self/status has no field {field!r}."
    raise RuntimeError(msg)
