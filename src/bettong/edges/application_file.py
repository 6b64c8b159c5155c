"""Finds the application in a Python file: `path/to/app.py`, or `path/to/app.py:name` when there are several."""

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path

from bettong.application.application import Application
from bettong.errors import ApplicationError

# Before the name of the file: so that no application hides a module of that name.
MODULE_PREFIX = "bettong_application_"


@lru_cache(maxsize=16)
def load(reference: str) -> Application:
    """Runs the file once a process and returns its application.

    Raises ApplicationError, naming the file and the line, when it cannot be run or holds none.
    """
    path_text, _, name = reference.partition(":")
    path = Path(path_text).resolve()
    if not path.is_file():
        raise ApplicationError(f"application {path_text!r}: there is no such file")
    module_name = f"{MODULE_PREFIX}{path.stem}"
    specification = importlib.util.spec_from_file_location(module_name, path)
    if specification is None or specification.loader is None:
        raise ApplicationError(f"application {path_text!r}: expected a Python file (.py)")
    module = importlib.util.module_from_spec(specification)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.parent))
    try:
        specification.loader.exec_module(module)
    except ApplicationError as error:
        del sys.modules[module_name]
        raise ApplicationError(f"{path_text}{_line(error, path)}: {error}") from error
    except Exception as error:
        del sys.modules[module_name]
        raise ApplicationError(f"{path_text}{_line(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    found = {key: value for key, value in vars(module).items() if isinstance(value, Application)}
    if name and name in found:
        return found[name]
    if name or len(found) != 1:
        names = ", ".join(sorted(found)) or "none"
        raise ApplicationError(
            f"application {reference!r}: expected one Application in the file, found {names};"
            f" write {path_text}:NAME to choose"
        )
    return next(iter(found.values()))


def _line(error: BaseException, path: Path) -> str:
    """`:line` of the last frame of the traceback that lies in the user's file."""
    line, trace = "", error.__traceback__
    if isinstance(error, SyntaxError) and error.lineno:
        return f":{error.lineno}"
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line
