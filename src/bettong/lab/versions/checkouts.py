"""The two versions of a measurement: this tree, and a commit or another checkout, each with the Python that it runs on.

    a commit ──> `git worktree add`, prepared; removed at the end ──┐
    a folder, checked out and prepared by the user ─────────────────┴─> Checkout

A checkout with its own environment, `.venv`, runs on that. Any other runs on the Python of this process, whose paths
into this tree (editable installs, PYTHONPATH) then lead into the checkout.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import bettong
from bettong.config import toml_files
from bettong.errors import LabError
from bettong.lab.versions import git
from bettong.listing import first_named
from bettong.local.processes import Command, Process

_PATHS = "PYTHONPATH"
_WAIT_S = 3600.0  # repeated until the command ends
# Imports what a run needs of Bettong, which fails in a tree whose protos are not compiled.
_START = "import bettong.lab.run; print(bettong.__file__)"
_FILES_SHOWN = 3
_OWN_ENVIRONMENT = (
    "prepare it (`--prepare COMMAND`), or name a checkout that has an environment, .venv, of its own"
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A version. `name`: as the user gave it. `folder`: what corresponds to the working directory in it.

    `environment`: in addition to that of this process.
    """

    name: str
    root: Path
    folder: Path
    python: str
    environment: Mapping[str, str]

    @property
    def commit(self) -> str | None:
        """The commit as results record it; None without git."""
        return git.described(self.folder)

    @property
    def facts(self) -> dict[str, str]:
        """The commit and its time, for results: an older lab does not record the time. Empty without git."""
        return git.commit_facts(self.folder)

    @property
    def content(self) -> str:
        """A text that changes when a tracked file does."""
        return git.content(self.folder)

    def __str__(self) -> str:
        changed = git.changed_files(self.folder)
        text = f"{self.name}, commit {self.commit or 'unknown'}"
        if changed:
            text += f", with uncommitted changes ({first_named(changed, _FILES_SHOWN)})"
        return text + ("" if self.python == sys.executable else f", on {self.python}")


def this_tree() -> Checkout:
    """The tree of the working directory, as it is."""
    folder = Path.cwd().resolve()
    return Checkout("this tree", git.toplevel(folder) or folder, folder, sys.executable, {})


@contextmanager
def other(asked: str, here: Checkout, prepare: str | None) -> Iterator[Checkout]:
    """The version of a commit, or in a folder. A worktree made for it is removed when the context exits.

    `prepare`: a command to run in the worktree of a commit. Raises LabError if there is no such version, or Bettong
    does not start in it.
    """
    with ExitStack() as opened:
        scratch = Path(opened.enter_context(TemporaryDirectory(prefix="bettong-lab-")))
        commit = git.commit_of(here.folder, asked)
        if commit is not None:
            root = scratch.resolve() / "tree"
            opened.enter_context(git.worktree(here.root, commit, root))
        elif Path(asked).is_dir():
            if prepare is not None:
                raise LabError(f"{asked} is a folder: --prepare is for the worktree of a commit")
            root = git.toplevel(Path(asked)) or Path(asked).resolve()
            if root == here.root:
                raise LabError(f"{asked} lies in this tree: name another checkout, or a commit")
        else:
            raise LabError(f"{asked} is no commit, branch or tag of {here.root}, and no folder")
        folder = root / here.folder.relative_to(here.root)
        if not folder.is_dir():
            missing = here.folder.relative_to(here.root)
            raise LabError(f"{asked} has no folder {missing}, which is the working directory here")
        if prepare is not None:
            _prepare(asked, prepare, folder, scratch)
        python = _own_python(root, folder)
        found = Checkout(asked, root, folder, python, _environment(asked, here.root, root, python))
        _check_start(found, here, scratch)
        yield found


def run_file(file: Path, checkout: Checkout, here: Checkout) -> Path:
    """The file in a checkout that corresponds to a run file; a run file outside of this tree is used by both versions.

    Raises LabError if it, its application or its load is missing, or if both versions would use one file.
    """
    full = (here.folder / file).resolve()
    found = checkout.root / full.relative_to(here.root) if full.is_relative_to(here.root) else full
    if not found.is_file():
        raise LabError(
            f"{file} is not in {checkout.name}: commit it there, or name a file outside of {here.root}, which both run"
        )
    table = toml_files.read(found)
    for name in ("application", "load"):
        given = table.get(name)
        value = given.partition(":")[0] if isinstance(given, str) else ""
        if Path(value).is_absolute() and Path(value).resolve().is_relative_to(here.root):
            raise LabError(
                f"{file}: both versions would use {value}: name the {name} from the working directory"
            )
        if value and not (checkout.folder / value).is_file():
            raise LabError(f"{file}: its {name} {value} is not in {checkout.name}")
    return found


def run_to_end(command: Command) -> Process:
    """Runs a command and blocks until it ends, however long that takes. An interrupt ends it, as SIGTERM does."""
    process = Process(command)
    try:
        while process.wait(_WAIT_S) is None:
            pass
    finally:
        process.stop()
    return process


def _own_python(root: Path, folder: Path) -> str:
    """The Python of a checkout's environment; ours if it has none, or only a link to ours."""
    for each in (folder / ".venv", root / ".venv"):
        if (each / "bin" / "python").is_file() and each.resolve() != Path(sys.prefix).resolve():
            return str(each / "bin" / "python")
    return sys.executable


def _environment(name: str, here: Path, there: Path, python: str) -> dict[str, str]:
    """PYTHONPATH, with the paths into this tree replaced by those into the checkout."""
    given = [each for each in os.environ.get(_PATHS, "").split(os.pathsep) if each]
    ours = sys.path if python == sys.executable else given
    moved = [there / each.relative_to(here) for each in map(_resolved, ours) if _is_of(each, here)]
    others = [each for each in given if not _is_of(_resolved(each), here)]
    absent = [str(each.relative_to(there)) for each in moved if not each.exists()]
    if absent and python == sys.executable:
        raise LabError(f"{name} has no {absent[0]}, from which this Python takes modules: {_OWN_ENVIRONMENT}")
    paths = list(dict.fromkeys([*map(str, moved), *others]))
    return {_PATHS: os.pathsep.join(paths)} if paths else {}


def _resolved(path: str) -> Path:
    return Path(path).resolve()


def _is_of(path: Path, root: Path) -> bool:
    """Whether modules in a folder belong to a tree, and not to packages that are installed into it."""
    installed = path.is_relative_to(Path(sys.prefix).resolve()) or "site-packages" in path.parts
    return path.is_dir() and path.is_relative_to(root) and not installed


def _prepare(name: str, command: str, folder: Path, scratch: Path) -> None:
    """Runs the command in the worktree, with our Python first on the PATH."""
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    log = scratch / "prepare.log"
    ended = run_to_end(Command("prepare", tuple(shlex.split(command)), log, {"PATH": paths}, folder))
    if ended.ending is None or ended.ending.status:
        output = " | ".join(ended.tail()) or "it wrote nothing"
        raise LabError(f"{name}: `{command}` ended with {ended.ending}: {output}")


def _check_start(checkout: Checkout, here: Checkout, scratch: Path) -> None:
    """Raises LabError unless Bettong starts, and is the checkout's own if this tree has its own."""
    call = (checkout.python, "-c", _START)
    log = scratch / "start.log"
    ended = run_to_end(Command("start", call, log, checkout.environment, checkout.folder))
    last = "".join(ended.tail(1))
    if ended.ending is None or ended.ending.status:
        raise LabError(f"{checkout.name}: Bettong does not start there ({last}): {_OWN_ENVIRONMENT}")
    ours = Path(bettong.__file__).resolve().parent
    if _is_of(ours, here.root) and not Path(last).resolve().is_relative_to(checkout.root):
        raise LabError(f"{checkout.name} would run Bettong of {last}, not its own: {_OWN_ENVIRONMENT}")
