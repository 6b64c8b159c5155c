"""Old values, and those that we may have written: the record from which everything is restored. Pure.

An entry is in the journal before the first write of its key, with every value that we may have written since:
whenever a crash happens, a value is known to be the old one, ours, or somebody else's.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bettong_node_tuner.errors import JournalError
from bettong_node_tuner.formats import Form
from bettong_node_tuner.snapshot import Key
from bettong_node_tuner.targets import Setting

VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One key: its old value, and ours.

    `ours`: values that we may have written, the newest last; more than one only while it is unknown which is current.
    `got`: the value that the kernel made of the newest, where that differs (fewer huge pages, a rounded number).
    `open`: a write was intended, and its outcome is unknown yet.
    """

    setting: Setting
    form: Form
    old: str
    ours: tuple[str, ...]
    got: str | None = None
    open: bool = True

    def is_ours(self, value: str) -> bool:
        """Whether a value is one that we wrote, or that the kernel may have made of it."""
        if value in self.ours or value == self.got:
            return True
        return self.open and self.form is Form.COUNT and self._is_between(value)

    def holds(self, value: str) -> bool:
        """Whether a value is the newest of ours, as the kernel holds it."""
        return value == (self.ours[-1] if self.got is None else self.got)

    def _is_between(self, value: str) -> bool:
        # A count that was granted in part before a crash prevented reading it back.
        if not (value.isdecimal() and self.old.isdecimal()):
            return False
        ends = [int(self.old), *(int(each) for each in self.ours if each.isdecimal())]
        return min(ends) <= int(value) <= max(ends)


@dataclass(frozen=True, slots=True)
class Journal:
    """All entries of one boot, in the order in which they were made."""

    boot: str
    entries: Mapping[Key, Entry] = field(default_factory=dict)

    def intending(self, key: Key, setting: Setting, form: Form, old: str, wanted: str) -> "Journal":
        """With the intent to write `wanted`: must be on disk before the write."""
        entry = self.entries.get(key)
        if entry is None:
            entry = Entry(setting, form, old, (wanted,))
        else:
            got = () if entry.got is None else (entry.got,)
            earlier = tuple(each for each in (*entry.ours, *got) if each != wanted)
            entry = replace(entry, ours=(*earlier, wanted), got=None, open=True)
        return self._with({key: entry})

    def completed(self, key: Key, now: str) -> "Journal":
        """After our write: the key was read again and holds `now`.

        A value that somebody else wrote between our write and the reading, some microseconds, counts as ours.
        """
        entry = self.entries[key]
        if now == entry.old or now == entry.ours[-1]:
            return self.observed(key, now)
        if now in entry.ours:
            return self
        return self._with({key: replace(entry, ours=entry.ours[-1:], got=now, open=False)})

    def observed(self, key: Key, now: str) -> "Journal":
        """Updated after the key was seen to hold `now`, whoever wrote it."""
        entry = self.entries[key]
        if now == entry.old:
            return self.without([key])
        if now == entry.ours[-1]:
            return self._with({key: replace(entry, ours=(now,), got=None, open=False)})
        return self

    def without(self, keys: Iterable[Key]) -> "Journal":
        """Without the entries of keys that hold their old values, or no longer exist."""
        gone = set(keys)
        return replace(self, entries={key: each for key, each in self.entries.items() if key not in gone})

    def as_in(self, earlier: "Journal", key: Key) -> "Journal":
        """With the earlier entry of a key: the intended write was not begun."""
        entry = earlier.entries.get(key)
        return self.without([key]) if entry is None else self._with({key: entry})

    def _with(self, changed: Mapping[Key, Entry]) -> "Journal":
        return replace(self, entries={**self.entries, **changed})


def to_text(journal: Journal) -> str:
    """The journal as JSON, readable for people too."""
    entries = {
        key: {name: getattr(each, name) for name in ("setting", "form", "old", "ours", "got", "open")}
        for key, each in journal.entries.items()
    }
    return json.dumps({"version": VERSION, "boot": journal.boot, "entries": entries}, indent=1) + "\n"


def from_text(text: str) -> Journal:
    """The journal from a text of `to_text`. Raises JournalError for an invalid one."""
    try:
        found = json.loads(text)
        if found["version"] != VERSION:
            raise JournalError(f"the journal is of version {found['version']}, this tuner reads {VERSION}")
        entries = {Key(key): _entry(each) for key, each in found["entries"].items()}
        return Journal(str(found["boot"]), entries)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JournalError(f"the journal is damaged: {error!r}") from error


def _entry(found: Mapping[str, Any]) -> Entry:
    got = found["got"]
    ours = tuple(str(each) for each in found["ours"])
    if not ours:
        raise ValueError("an entry without a value of ours")
    return Entry(
        Setting(found["setting"]),
        Form(found["form"]),
        str(found["old"]),
        ours,
        None if got is None else str(got),
        bool(found["open"]),
    )
