"""The machine and the versions that figures belong to."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from suite.context import Context


__all__ = ["describe"]

PACKAGES = {
    "embedra": ("embedra", "tensorflow", "keras", "numpy", "tf_keras"),
    "tfra": (
        "tensorflow-recommenders-addons",
        "tensorflow",
        "tf_keras",
        "numpy",
    ),
    "torchrec": ("torchrec", "torch", "fbgemm-gpu-cpu", "numpy"),
    "hybridbackend": ("hybridbackend-tf115-cpu", "tensorflow", "numpy"),
}
# In words that Python 3.6 understands, which has no importlib.metadata.
ASK_VERSIONS = """
import json, sys
try:
    from importlib.metadata import PackageNotFoundError, version
except ImportError:
    import pkg_resources
    from pkg_resources import DistributionNotFound as PackageNotFoundError
    version = lambda name: pkg_resources.get_distribution(name).version
def found(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
print(json.dumps({name: found(name) for name in sys.argv[1:]}))
"""


def describe(context: Context) -> dict[str, str]:
    """What a reader needs to know to judge the figures.

    Args:
        context: Says where the peers' environments are.

    Returns:
        Values by name, in the order to show them.
    """
    huge = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    page = os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    total = os.sysconf("SC_PHYS_PAGES") * page
    free = os.sysconf("SC_AVPHYS_PAGES") * page
    facts = {
        "run": "quick: figures mean nothing" if context.quick else "full",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "threads used by each system": str(context.threads),
        "memory": f"{total:.1f} GiB, {free:.1f} GiB free at the start",
        "kernel": platform.release(),
        "transparent huge pages": _selected(huge),
        "load average at the start": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
    }
    for system, names in PACKAGES.items():
        python = context.python(system)
        if python is None:
            facts[f"{system} environment"] = "absent"
        else:
            facts[f"{system} environment"] = _versions(python, names)
    return facts


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = {}
    for line in cpuinfo.split("\n\n", 1)[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    words = fields.get("model name", platform.processor())
    wide = [f for f in ("avx2", "avx512f") if f in fields.get("flags", "")]
    family, model = fields.get("cpu family"), fields.get("model")
    return f"{words}, family {family} model {model}, {' '.join(wide)}"


def _selected(path: Path) -> str:
    """The word in brackets: `always [madvise] never` gives `madvise`."""
    if not path.exists():
        return "not available"
    text = path.read_text(encoding="ascii")
    return text[text.index("[") + 1 : text.index("]")]


def _versions(python: str, names: Sequence[str]) -> str:
    done = subprocess.run(
        [python, "-c", ASK_VERSIONS, *names],
        check=True,
        capture_output=True,
        text=True,
    )
    versions: dict[str, str] = json.loads(done.stdout)
    return ", ".join(f"{name} {found}" for name, found in versions.items())
