"""What the page has of others: named with version and licence, and to the byte what the package holds."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from bettong_console.pages import FOLDER, page_files

VENDOR = FOLDER / "vendor"
LISTED = json.loads((VENDOR / "vendored.json").read_text())
FREE = {"MIT", "OFL-1.1"}


def test_every_file_of_others_is_listed_with_its_hash() -> None:
    expected = {name: digest for package in LISTED for name, (_, digest) in package["files"].items()}
    found = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "vendored.json"
    }
    assert found == expected


def test_every_package_says_version_licence_and_hash_and_brings_its_licence() -> None:
    for package in LISTED:
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
        assert package["licence"] in FREE
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", package["integrity"])
        assert any(Path(name).name == "LICENSE" for name in package["files"])


def test_the_page_names_no_place_elsewhere() -> None:
    own = {
        name: file.content.decode() for name, file in page_files().items() if not name.startswith("vendor/")
    }
    assert len(own) > 15
    for name, text in own.items():
        assert set(re.findall(r"\w+://[^\s\"'`)]+", text)) <= {"http://www.w3.org/2000/svg"}, name
        assert not re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|\bon\w+=", text
        ), name


def test_every_module_that_is_imported_is_there() -> None:
    files = page_files()
    for name, file in files.items():
        if name.endswith(".js"):
            for wanted in re.findall(r'from "(\.[^"]+)"', file.content.decode()):
                path = (FOLDER / name).parent / wanted
                assert str(path.resolve().relative_to(FOLDER.resolve())) in files, f"{name}: {wanted}"
