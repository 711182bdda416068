"""The layers of the package are what pyproject.toml says."""

import subprocess
import sys
from pathlib import Path


def test_imports_go_downward_only():
    command = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([str(command)], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
