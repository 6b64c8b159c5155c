"""Source text of dataclasses for example data: the narrowest types that hold every row seen.

A comment behind a field marks a guess. Values that no field can hold, or whose names are not valid in Python, are left
out, with a comment: readers of JSON or CSV for a source ignore fields that its schema does not have.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from dataclasses import dataclass, field

from bettong.errors import SchemaError
from bettong.schema.form import shown
from bettong.schema.observed import FIELDS_MAX, TEXT_KINDS, Observed

_I64, _U64 = 2**63, 2**64
_JSON = "bettong.Json"
_IMPORTS = {
    "datetime": "from datetime import datetime",
    "date": "from datetime import date",
    "UUID": "from uuid import UUID",
    "bettong": "import bettong",
}
# How much of a name a field's comment shows.
_NAME_SHOWN = 60


@dataclass(frozen=True, slots=True)
class _Type:
    """`annotation`: None where no field can hold the values. `note`: what was guessed, empty for nothing."""

    annotation: str | None
    note: str = ""


@dataclass
class _Classes:
    """The classes so far, the innermost first. `unknown`: the type of fields that are always null."""

    unknown: _Type
    texts: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def named(self, wanted: str) -> str:
        """A name that neither another class nor an imported type has."""
        name, count = wanted, 1
        while name in self.names or name in _IMPORTS:
            count += 1
            name = f"{wanted}{count}"
        self.names.add(name)
        return name


def source_of(rows: Observed, name: str, note: str, *, of_text: bool = False) -> str:
    """Source text of the dataclass `name` for the rows, and of the classes that it needs.

    `rows`: the observed rows, each an object. `note`: the first line, a comment. `of_text`: rows are cells of text, so
    a field that is always empty is text. Raises SchemaError when there is no field that a class could have.
    """
    if rows.values is not None:
        raise SchemaError(f"more than {FIELDS_MAX} different fields; a message has the same ones each time")
    classes = _Classes(_Type("str", "always empty") if of_text else _Type(_JSON, "always null, so any JSON"))
    # Named before the classes of its fields, so that it gets the requested name.
    own = classes.named(name)
    if _class_of(rows, own, classes) is None:
        raise SchemaError("no row has a field that a class could have")
    body = "\n\n\n".join(classes.texts)
    used = [line for word, line in _IMPORTS.items() if re.search(rf"(: |\[|, ){word}\b", body)]
    plain = sorted(
        {"from dataclasses import dataclass", *(line for line in used if line != _IMPORTS["bettong"])}
    )
    times = [line for line in plain if line.startswith("from datetime")]
    if len(times) > 1:
        plain = [line for line in plain if line not in times]
        plain.insert(1, "from datetime import date, datetime")
    own_import = ["", "import bettong"] if _IMPORTS["bettong"] in used else []
    return "\n".join([f"# {note}", *plain, *own_import, "", "", body, ""])


def class_name(text: str) -> str:
    """A class name from that of a file or a field: in the singular, if it looks like a plural."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text))
    found = "".join(word[0].upper() + word[1:] for word in words)
    if re.search(r"[^suiSUI]s$", found):
        found = found[:-1]
    if not found.isidentifier() or keyword.iskeyword(found):
        found = f"Row{found}" if f"Row{found}".isidentifier() else "Row"
    return unicodedata.normalize("NFKC", found)


def _class_of(seen: Observed, name: str, classes: _Classes) -> str | None:
    """Adds a class for objects, after those of its fields; None if it would have no field."""
    lines: dict[str, str] = {}
    last: dict[str, str] = {}
    left_out: list[str] = []
    for key, values in seen.members.items():
        if not _is_name(key):
            left_out.append(
                f"    # {_shown(key)} is left out: it is no name in Python; rename it in the data"
            )
            continue
        found = _type_of(values, key, classes)
        if found.annotation is None:
            left_out.append(f"    # {_shown(key)} is left out: {found.note}")
            continue
        missing = seen.objects - values.seen
        annotation, note = found.annotation, [found.note] if found.note else []
        default = ""
        if missing or values.nulls:
            note.insert(0, _missing_note(missing, values.nulls, seen.objects))
            if annotation == _JSON:
                default = " = None"  # it holds null itself, and may be missing
            else:
                annotation += " | None"
        comment = f"  # {'; '.join(note)}" if note else ""
        (last if default else lines)[key] = f"    {key}: {annotation}{default}{comment}"
    if not lines and not last:
        return None
    # A field named like the module hides it from the fields after it, once it has a default.
    hidden = [last.pop("bettong")] if "bettong" in last else []
    body = "\n".join([*lines.values(), *last.values(), *hidden, *left_out])
    classes.texts.append(f"@dataclass\nclass {name}:\n{body}")
    return name


def _type_of(seen: Observed, key: str, classes: _Classes) -> _Type:
    """The type of values other than None."""
    if seen.is_unreadable:
        return _Type(None, "no field can hold all of its values, nested too deeply or no Unicode")
    sorts = seen.sorts
    if seen.whole + seen.floats and sorts == ["numbers", "texts"] and not seen.texts:
        sorts = ["numbers"]  # "NaN" among numbers
    if seen.deep or len(sorts) > 1:
        return _json_type(seen, "nested deeply" if seen.deep else f"sometimes {', sometimes '.join(sorts)}")
    if not sorts:
        return classes.unknown
    if sorts == ["true or false"]:
        return _Type("bool")
    if sorts == ["numbers"]:
        return _number_type(seen)
    if sorts == ["texts"]:
        return _text_type(seen)
    return _list_type(seen, key, classes) if sorts == ["lists"] else _object_type(seen, key, classes)


def _json_type(seen: Observed, why: str) -> _Type:
    if seen.is_odd:
        return _Type(None, f"{why}, with NaN or an infinity, which JSON has no number for")
    return _Type(_JSON, why)


def _number_type(seen: Observed) -> _Type:
    least, most = seen.span or (0, 0)
    if not seen.floats and not seen.words:
        if least >= -_I64 and most < _I64:
            return _Type("int")
        if least >= 0 and most < _U64:
            return _Type("bettong.u64")
    try:
        float(least), float(most)
    except OverflowError:
        return _json_type(seen, "whole numbers too large for a float")
    if max(-least, most) > 2**53:
        return _Type("float", "whole numbers beyond 2**53 lose digits")
    return _Type("float", "also whole numbers" if seen.whole else "")


def _text_type(seen: Observed) -> _Type:
    if seen.words == 0:
        for form in seen.forms:
            return _Type(TEXT_KINDS[form.name], "by the looks of all texts" if form.name != "uuid" else "")
    if seen.zoneless and seen.zoneless == seen.texts + seen.words:
        return _Type("str", "times without a zone; a datetime needs one, such as Z at the end")
    return _Type("str")


def _list_type(seen: Observed, key: str, classes: _Classes) -> _Type:
    items = seen.items
    if items is None or not items.seen:
        return _Type(f"list[{_JSON}]", "always empty, so items of any JSON")
    found = _type_of(items, key, classes)
    if found.annotation is None:
        return found
    held = found.annotation
    if items.nulls and held != _JSON:
        held += " | None"
    return _Type(f"list[{held}]", found.note and f"items: {found.note.removeprefix('items: ')}")


def _object_type(seen: Observed, key: str, classes: _Classes) -> _Type:
    if not seen.members and seen.values is None:
        return _Type(f"dict[str, {_JSON}]", "always empty, so values of any JSON")
    if seen.values is not None or not all(map(_is_name, seen.members)):
        return _dict_type(seen, key, classes)
    # Named before its fields' classes, but written after them.
    name = classes.named(class_name(key))
    if _class_of(seen, name, classes) is None:
        return _json_type(seen, "no field can hold what is in it")
    return _Type(name)


def _dict_type(seen: Observed, key: str, classes: _Classes) -> _Type:
    """The type of objects whose keys are not valid names, or too many."""
    why = f"more than {FIELDS_MAX} keys" if seen.values is not None else "its keys are no names in Python"
    together = Observed()
    for each in seen.held:
        together = together.merged(each)
    found = _type_of(together, key, classes)
    if found.annotation is None:
        return found
    held = found.annotation
    if together.nulls and held != _JSON:
        held += " | None"
    return _Type(f"dict[str, {held}]", why + (f"; values: {found.note}" if found.note else ""))


def _missing_note(missing: int, nulls: int, rows: int) -> str:
    words = [f"missing in {missing:,}"] * bool(missing) + [f"null in {nulls:,}"] * bool(nulls)
    return f"{', '.join(words)} of {rows:,}"


def _is_name(key: str) -> bool:
    """Whether a dataclass can have a field of that name. Python mangles names with two leading underscores."""
    return (
        key.isidentifier()
        and not keyword.iskeyword(key)
        and not key.startswith("__")
        and unicodedata.normalize("NFKC", key) == key
    )


def _shown(key: str) -> str:
    return shown(key if len(key) <= _NAME_SHOWN else f"{key[:_NAME_SHOWN]}...")
