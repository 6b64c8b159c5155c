"""Finds the application in a Python file: `path/to/app.py`, or `path/to/app.py:name` when there are several."""

from __future__ import annotations

import difflib
import importlib.util
import json
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from bettong.application.application import Application
from bettong.edges.kept_modules import KeptModule, importing
from bettong.errors import ApplicationError

# Prefix of module names, so that an application cannot shadow a module with the name of its file.
MODULE_PREFIX = "bettong_application_"
# Suffix of files that hold an Edition.
_EDITION = ".edition"


def load(reference: str) -> Application:
    """Runs the file, once per process, and returns its application. `reference` may also come from `Edition.write`.

    Raises ApplicationError, naming the file and the line, when it cannot be run or defines no application.
    """
    return _load_once(_file_of(reference), reference)


@lru_cache(maxsize=16)
def _load_once(_: Path, reference: str) -> Application:
    """The path is part of the key: a relative reference names another file after the working directory has changed."""
    return load_anew(reference)


def load_anew(reference: str) -> Application:
    """As `load`, but runs the file each time."""
    path = _file_of(reference)
    if reference.endswith(_EDITION):
        return Edition.read(Path(reference)).load()
    if not path.is_file():
        raise _no_file(reference)
    module_name = _module_name(path)
    specification = importlib.util.spec_from_file_location(module_name, path)
    if specification is None or specification.loader is None:
        raise ApplicationError(f"application {_path_text(reference)!r}: expected a Python file (.py)")
    sys.path.insert(0, str(path.parent))
    try:
        module = _run(specification, reference)
    finally:
        sys.path.remove(str(path.parent))
    return _choose_application(module, reference)


def loaded_module(reference: str) -> tuple[Path, ModuleType]:
    """The file and the module of an application that `load` has run."""
    path = _file_of(reference)
    return path, sys.modules[_module_name(path)]


@dataclass(frozen=True, slots=True)
class Edition:
    """A copy of an application's code: its file, and the modules that it imports from its folder, by name.

    A process that loads an edition runs that code, even if the files have changed since.
    """

    reference: str
    modules: dict[str, KeptModule]

    def take(self, before: Edition | None = None) -> None:
        """Reads the file as it is now, and runs it. `before`: the edition whose modules it replaces.

        Raises ApplicationError; then `modules` holds those read so far, and those of `before` are restored.
        """
        path = _file_of(self.reference)
        try:
            source = path.read_bytes()
        except OSError:
            raise _no_file(self.reference) from None
        self.modules[_module_name(path)] = KeptModule(str(path), source)
        self._load(on_disk=True, before=before)

    def load(self) -> Application:
        """Runs the edition in this process. Raises ApplicationError."""
        return self._load(on_disk=False)

    def write(self, path: Path) -> str:
        """Writes the edition; returns a reference for `load`. Who can write the file can run code in its readers."""
        modules = {
            name: [each.path, each.source.decode("latin-1"), each.is_package]
            for name, each in self.modules.items()
        }
        written = path.with_suffix(_EDITION)
        written.write_text(json.dumps([self.reference, modules]))
        return str(written)

    @classmethod
    def read(cls, path: Path) -> Edition:
        """Reads a written edition. Raises ApplicationError if the file is missing."""
        try:
            reference, modules = json.loads(path.read_text())
        except FileNotFoundError:
            raise _no_file(str(path)) from None
        return cls(
            reference,
            {
                name: KeptModule(file, source.encode("latin-1"), is_package)
                for name, (file, source, is_package) in modules.items()
            },
        )

    def _load(self, *, on_disk: bool, before: Edition | None = None) -> Application:
        path = _file_of(self.reference)
        name = _module_name(path)
        instead_of = before.modules if before is not None else {}
        with importing(path.parent, self.modules, on_disk=on_disk, instead_of=instead_of):
            return _choose_application(_run(self.modules[name].spec(name), self.reference), self.reference)


def _path_text(reference: str) -> str:
    return reference.partition(":")[0]


def _file_of(reference: str) -> Path:
    return Path(_path_text(reference)).resolve()


def _module_name(path: Path) -> str:
    return f"{MODULE_PREFIX}{path.stem}"


def _no_file(reference: str) -> ApplicationError:
    text, path = _path_text(reference), _file_of(reference)
    if path.is_dir():
        return ApplicationError(
            f"application {text!r} is a folder: name the file in it, such as {text}/app.py"
        )
    near = difflib.get_close_matches(path.name, [each.name for each in path.parent.glob("*.py")], n=1)
    meant = f"; is {Path(text).with_name(near[0])} meant?" if near else ""
    return ApplicationError(f"application {text!r}: there is no such file{meant}")


def _run(specification: ModuleSpec, reference: str) -> ModuleType:
    """Creates and runs the module. Raises ApplicationError."""
    module, path, text = (
        importlib.util.module_from_spec(specification),
        _file_of(reference),
        _path_text(reference),
    )
    assert specification.loader is not None  # noqa: S101 - both kinds of specification have one
    sys.modules[specification.name] = module
    try:
        # What the file prints is no part of a command's output, which another program may read.
        with redirect_stdout(sys.stderr):
            specification.loader.exec_module(module)
    except ApplicationError as error:
        del sys.modules[specification.name]
        raise ApplicationError(f"{text}{_line(error, path)}: {error}") from error
    except SystemExit as error:
        del sys.modules[specification.name]
        raise ApplicationError(
            f"{text}{_line(error, path)}: it ended by sys.exit({error.code!r}); expected a file that describes an"
            " application: leave the exit out, or put it below `if __name__ == '__main__':`"
        ) from error
    except Exception as error:
        del sys.modules[specification.name]
        raise ApplicationError(f"{text}{_line(error, path)}: {type(error).__name__}: {error}") from error
    return module


def _choose_application(module: ModuleType, reference: str) -> Application:
    path_text, _, name = reference.partition(":")
    found = {key: value for key, value in vars(module).items() if isinstance(value, Application)}
    if name and name in found:
        return found[name]
    names = ", ".join(sorted(found)) or "none"
    if name:
        raise ApplicationError(f"application {reference!r}: {path_text} has none of that name, but {names}")
    if len(found) != 1:
        raise ApplicationError(
            f"application {reference!r}: expected one Application in the file, found {names};"
            f" write {path_text}:NAME to choose"
        )
    return next(iter(found.values()))


def _line(error: BaseException, path: Path) -> str:
    """`:line` of the last traceback frame in the user's file; empty if there is none."""
    line, trace = "", error.__traceback__
    if isinstance(error, SyntaxError) and error.lineno:
        return f":{error.lineno}"
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line
