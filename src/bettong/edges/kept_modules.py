"""Runs modules of an application's folder from stored sources, because the files may have changed meanwhile.

Tracebacks name the files as usual. Modules of other folders are imported as usual, and not stored.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, NamespaceLoader, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class KeptModule:
    """A module's file, and its stored source."""

    path: str
    source: bytes
    is_package: bool = False

    def spec(self, name: str) -> ModuleSpec:
        """The import specification that loads the stored source."""
        folders = [str(Path(self.path).parent)] if self.is_package else None
        found = spec_from_file_location(
            name, self.path, loader=_Loader(name, self), submodule_search_locations=folders
        )
        assert found is not None  # noqa: S101 - it has a loader
        return found


class _Loader(SourceFileLoader):
    """Runs the stored source. Ignores byte code on disk, which may be of another source of the same second."""

    def __init__(self, name: str, module: KeptModule) -> None:
        super().__init__(name, module.path)
        self._source = module.source

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - importlib's
        """See InspectLoader."""
        return self.source_to_code(self._source, self.path)


class _Finder(MetaPathFinder):
    """Finds stored modules; with `on_disk` also those in the folder, which it stores."""

    def __init__(self, folder: Path, kept: dict[str, KeptModule], *, on_disk: bool) -> None:
        self._folder = folder
        self._kept = kept
        self._on_disk = on_disk

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002 - importlib's
    ) -> ModuleSpec | None:
        """See MetaPathFinder."""
        if fullname not in self._kept and self._on_disk:
            self._keep(fullname, path)
        module = self._kept.get(fullname)
        return module.spec(fullname) if module is not None else None

    def _keep(self, name: str, path: Sequence[str] | None) -> None:
        if path is not None and name.partition(".")[0] not in self._kept:
            return  # its package is in another folder, or in an environment within the folder
        spec = PathFinder.find_spec(name, [str(self._folder)] if path is None else path)
        if spec is None:
            return
        if isinstance(spec.loader, SourceFileLoader) and spec.origin is not None:
            is_package = spec.submodule_search_locations is not None
            self._kept[name] = KeptModule(spec.origin, Path(spec.origin).read_bytes(), is_package)
        elif isinstance(spec.loader, NamespaceLoader | None) and spec.submodule_search_locations:
            # A folder without `__init__.py` is a package, as if it had an empty one.
            (first, *_) = spec.submodule_search_locations
            self._kept[name] = KeptModule(str(Path(first) / "__init__.py"), b"", is_package=True)


@contextmanager
def importing(
    folder: Path, kept: dict[str, KeptModule], *, on_disk: bool, instead_of: Mapping[str, KeptModule]
) -> Iterator[None]:
    """Inside the block, imports find `kept` modules first; the modules that these replace (`instead_of`) are unloaded.

    An exception restores the loaded modules. `on_disk`: other modules are read from `folder`, and added to `kept`.
    """
    finder = _Finder(folder, kept, on_disk=on_disk)
    before = {
        name: module
        for name, known in {**instead_of, **kept}.items()
        if (module := sys.modules.get(name)) is not None and getattr(module, "__file__", None) == known.path
    }
    for name in before:
        del sys.modules[name]
    sys.meta_path.insert(sys.meta_path.index(PathFinder), finder)
    try:
        yield
    except BaseException:
        for name in kept:
            sys.modules.pop(name, None)
        sys.modules.update(before)
        raise
    finally:
        sys.meta_path.remove(finder)
