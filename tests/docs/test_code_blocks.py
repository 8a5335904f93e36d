"""Every Python block of the README and the documentation runs."""

import pathlib
import re
import subprocess
import sys

import pytest


ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _documents_with_code():
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in documents if FENCE.search(path.read_text())]


@pytest.mark.parametrize(
    "path", _documents_with_code(), ids=lambda path: path.name
)
def test_python_blocks_run_in_order(path, tmp_path):
    # Blocks of one document share a namespace, as a reader would type them.
    script = tmp_path / "blocks.py"
    script.write_text("\n".join(FENCE.findall(path.read_text())))
    result = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]


def test_readme_has_code_that_runs():
    assert ROOT / "README.md" in _documents_with_code()
