"""Models from Python files that users wrote: a file with ``model`` or ``build_model()``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from osilp_pyomo.errors import ModelError, OsilpError

#: How the module of a file is called whose own name cannot be one; other processes cannot import it.
UNNAMED = "osilp_model_"


def load_module(path: str) -> ModuleType:
    """Run a user's file as a module, so that what it defines can be sent to other processes."""
    file = Path(path).resolve()
    if not file.is_file():
        raise ModelError(f"There is no file '{path}'.")
    name = file.stem if file.stem not in sys.modules and file.stem.isidentifier() else f"{UNNAMED}{abs(hash(file))}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ModelError(f"'{path}' is no Python file; its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except OsilpError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(f"'{path}'{_line_in(file, error)}: {type(error).__name__}: {error}") from error
    return module


def model_of(module: ModuleType, path: str) -> Any:
    """The model of a file: its ``model``, or what its ``build_model()`` gives."""
    if hasattr(module, "model"):
        return module.model
    if not callable(getattr(module, "build_model", None)):
        raise ModelError(f"'{path}' has neither a 'model' nor a function 'build_model()'; it needs one of them.")
    try:
        return module.build_model()
    except OsilpError:
        raise
    except Exception as error:
        where = _line_in(Path(path).resolve(), error)
        raise ModelError(f"'{path}'{where}: build_model() failed: {type(error).__name__}: {error}") from error


def _line_in(file: Path, error: BaseException) -> str:
    """Where in a user's file something failed."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f", line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f", line {lines[-1]}" if lines else ""
