"""Versions of reference tables in a directory survive a power failure once they are put."""

from pathlib import Path

from bettong.edges.directory_versions import DirectoryVersions


def test_a_version_and_the_names_that_lead_to_it_are_synced_before_it_counts_as_put(tmp_path: Path) -> None:
    series = tmp_path / "store" / "app" / "references" / "prices"
    synced: list[tuple[Path, list[str]]] = []

    def sync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((path, sorted(each.name for each in series.iterdir())))

    store = DirectoryVersions(tmp_path / "store" / "app", sync=sync)
    store.put("prices", "1-a", b"one")
    (file, before), *folders = synced
    assert (file.parent, before) == (series, [file.name])
    assert file.name.startswith(".saving-")
    assert [folder for folder, _ in folders] == [series, *list(series.parents)[:3]]
    assert all(names == ["1-a"] for _, names in folders)
