"""Names and what is drawn of them: words that the tree no longer uses, parameters, classes, trees of errors."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

import pytest

from tests.tidy.source import Finding, Source, sources

# What the project once called things that have names, and their names. Decisions and the changelog tell of their time.
WORDS = {
    "attendance": "membership",
    "beat": "heartbeat",
    "deal": "assign",
    "dealer": "assignor",
    "dealt": "assigned",
    "debt": "pending, in an outbox",
    "entrance": "StageInput, or ServerSecurity",
    "figure": "metric, or measurement",
    "foreign": "external",
    "giant": "oversized row",
    "lane": "SinkTask",
    "loghole": "LogTruncated",
    "misfit": "schema violation",
    "outlet": "SinkConnector",
    "owe": "pending",
    "owed": "pending",
    "slicer": "Batcher",
    "waive": "skip",
    "wish": "permission",
}
# The same for names that the product gives; in prose they are English, and file.tell() is Python's.
NAMES = {
    "cut": "batch boundary, snapshot, or truncated",
    "gives": "returns",
    "holding": "ActivePartition",
    "letter": "dead letter, or character",
    "look": "poll, check, or attempt",
    "looked": "polled, or checked",
    "looking": "polling, or checking",
    "lot": "batch",
    "place": "row, index, partition id, or position",
    "settled": "complete",
    "tell": "report",
    "telling": "reporting",
    "told": "reported",
    "way": "ExecutionMode, or channel",
}
# Those that tests do not need either: the others are users' fields there, or ordinary words.
TEST_NAMES = {word: NAMES[word] for word in ("gives", "holding", "looked", "tell", "telling", "told")}
# What others call so (pydantic its digits), and what two words mean together: a chaos run cuts connections.
NO_WORDS = re.compile(r"decisions/\d{4}[\w-]+|foreign_pre_chain|matplotlib\.\w+ import .*|FigureCanvasSVG")
NO_NAMES = re.compile(r"in_?place|dead[_-]?letters?|decimal_places|look(ed)?_?up", re.IGNORECASE)
CUTS = "src/bettong/chaos/"
HISTORY = re.compile(
    r"docs/decisions/|CHANGELOG\.md$|tests/test_tidy_names\.py$|tests/fuzz/corpus/|.*/vendor/|.*\.(lock|csv)$"
)
# The words of a name: of `SinkTask`, `sink_task` and `SINK_TASK`.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# A text that names something, of one word or several joined ones; a field of a message.
LABEL = re.compile(r"[\w.-]+")
FIELD = re.compile(r"\s+(repeated |optional )?[\w.<>, ]+ (?P<name>\w+) = \d+;")
PRODUCT = re.compile(r"(src|services)/")
# A distribution that needs nothing of Bettong, and has an error tree of its own.
APART = "services/node-tuner/"
REASONED = re.compile(r"# noqa: ARG00\d - \S.{8,}")
# A branch of a drawn tree: what leads to it, the name, then what it means.
BRANCH = re.compile(r"^(?P<lead>[\s│]*)[├└]── (?P<name>\w+)")


def words_are_the_fields(source: Source) -> Iterator[Finding]:
    if HISTORY.match(str(source.path)):
        return
    for number, line in enumerate(source.lines, 1):
        for word in WORD.findall(NO_WORDS.sub("", line)):
            if (found := _singular(word.lower())) is not None:
                yield number, f"`{word}` is nobody else's word: {WORDS[found]}"


def names_are_the_fields(source: Source) -> Iterator[Finding]:
    """Of classes, functions, parameters, attributes, variables, keys and labels of the product, and of protos.

    Of tests, classes, functions and variables; but a test is named as a sentence.
    """
    among = NAMES
    if source.path.suffix == ".proto":
        names = [
            (number, field["name"])
            for number, line in enumerate(source.lines, 1)
            if (field := FIELD.match(line))
        ]
    elif PRODUCT.match(str(source.path)):
        names = [(getattr(node, "lineno", 1), _defined(node)) for node in source.nodes]
    elif source.is_python and source.path.parts[0] == "tests":
        among = TEST_NAMES
        found_names = ((node, _defined(node)) for node in source.nodes if not isinstance(node, ast.Constant))
        names = [(getattr(node, "lineno", 1), name) for node, name in found_names if name[:5] != "test_"]
    else:
        return
    for number, name in names:
        for word in WORD.findall(NO_NAMES.sub("", name)):
            found = _singular(word.lower(), among)
            if found is not None and not (found == "cut" and str(source.path).startswith(CUTS)):
                yield number, f"`{name}` is nobody else's name: {NAMES[found]}"


def _defined(node: ast.AST) -> str:
    """The name that a node defines, or the text that is one: a key, a label; empty where it is none."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.arg(arg=name):
            return name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.Constant(value=str(text)) if LABEL.fullmatch(text):
            return text
    return ""


def _singular(word: str, among: Mapping[str, str] = WORDS) -> str | None:
    """The entry of a word, or of its plural or past."""
    return next(
        (each for each in (word, word.removesuffix("s"), word.removesuffix("es")) if each in among), None
    )


def parameters_are_used(source: Source) -> Iterator[Finding]:
    """But those that somebody else prescribes: of a method that says `See Protocol.`, or named with an underscore."""
    if not PRODUCT.match(str(source.path)):
        return
    for node in source.nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("__"):
            continue
        text = ast.get_docstring(node) or ""
        body = node.body[1:] if text else node.body
        if text.startswith("See ") or all(_does_nothing(each) for each in body):
            continue
        read = {each.id for part in body for each in ast.walk(part) if isinstance(each, ast.Name)}
        for parameter in _parameters(node.args):
            lines = source.lines[node.lineno - 1], source.lines[parameter.lineno - 1]
            unused = parameter.arg not in {"self", "cls", *read} and not parameter.arg.startswith("_")
            if unused and not any(map(REASONED.search, lines)):
                yield parameter.lineno, f"{node.name} does not use {parameter.arg}: leave it out"


def _does_nothing(statement: ast.stmt) -> bool:
    """What stands for a body: `...`, `pass`, `raise NotImplementedError`."""
    empty = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return empty or isinstance(statement, ast.Pass | ast.Raise)


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    found = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    return [each for each in found if each is not None]


def classes_of_one_name(files: tuple[Source, ...]) -> dict[str, list[str]]:
    """Public classes of the product that share a name, and where they are."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in files:
        if source.is_python and PRODUCT.match(str(source.path)) and not str(source.path).startswith(APART):
            for node in source.tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(f"{source.path}:{node.lineno}")
    return {name: where for name, where in found.items() if len(where) > 1}


def drawn_errors(text: str) -> dict[str, str | None]:
    """The classes of drawn trees, each with the one above it; None for a root, the line before the first branch."""
    found: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    before = ""
    for line in text.splitlines():
        branch = BRANCH.match(line)
        if branch is None:
            before = line
            above.clear()
            continue
        depth, name = len(branch["lead"]), branch["name"]
        if not above:
            above.append((-1, before.strip()))
            found[before.strip()] = None
        while above[-1][0] >= depth:
            above.pop()
        found[name] = above[-1][1]
        above.append((depth, name))
    return found


def bases_of(files: Iterable[Source]) -> dict[str, str]:
    """The classes of these files, each with what it derives from first."""
    return {
        node.name: ast.unparse(node.bases[0])
        for source in files
        if source.is_python
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and node.bases
    }


def is_public_error(name: str, bases: Mapping[str, str]) -> bool:
    """Whether a class is an exception that other modules may name."""
    if name.startswith("_"):
        return False
    while name in bases:
        name = bases[name].rpartition(".")[2]
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


@pytest.mark.parametrize(
    "rule", [words_are_the_fields, names_are_the_fields, parameters_are_used], ids=lambda rule: rule.__name__
)
def test_every_file_keeps_the_rule(rule: object) -> None:
    assert callable(rule)
    found = [f"{source.path}:{line}: {what}" for source in sources() for line, what in rule(source)]
    assert not found, "\n".join(found)


def test_a_public_class_has_its_name_alone() -> None:
    found = classes_of_one_name(sources())
    assert not found, "\n".join(f"{name}: {', '.join(where)}" for name, where in sorted(found.items()))


@pytest.mark.parametrize("path", [str(each.path) for each in sources() if each.path.name == "errors.py"])
def test_the_drawn_tree_of_errors_is_that_of_the_classes(path: str) -> None:
    product = [each for each in sources() if PRODUCT.match(str(each.path))]
    (source,) = (each for each in product if str(each.path) == path)
    drawn = drawn_errors(ast.get_docstring(source.tree) or "")
    # A class may lie with what raises it; and the errors of a distribution are its own.
    bases = bases_of(each for each in product if each.path.parts[:2] == source.path.parts[:2])
    library = bases_of(each for each in product if each.path.parts[0] == "src")
    assert {name for name in bases if is_public_error(name, library | bases)} <= set(drawn), "not drawn"
    edges = {name: above for name, above in drawn.items() if above is not None}
    assert {name: bases.get(name) for name in edges} == edges


def test_a_rule_finds_what_it_is_for() -> None:
    python = PurePosixPath("src/bettong/a.py")
    bad = "def lane_of(x): ...\n\nclass SlicerTask: ...\n\n# he dealt them\n"
    assert [line for line, _ in words_are_the_fields(Source(python, bad))] == [1, 3, 5]
    good = "def planes(heartbeat): ...\n"
    assert not list(words_are_the_fields(Source(python, good)))
    assert not list(words_are_the_fields(Source(PurePosixPath("docs/decisions/0010-a.md"), "a lane")))
    link = Source(PurePosixPath("docs/a.md"), "[13](decisions/0013-rows-are-owed.md)\nwhat is owed\n")
    assert [line for line, _ in words_are_the_fields(link)] == [2]
    names = "told_s = f()\n\ndef tell(x): ...\n\ndef f(ways): ...\n\nself.is_told = file.tell()\n"
    assert sorted(line for line, _ in names_are_the_fields(Source(python, names))) == [1, 3, 5, 7]
    tests = names + "\ndef test_who_is_told() -> None: ...\n"
    found = names_are_the_fields(Source(PurePosixPath("tests/unit/a.py"), tests))
    assert sorted(line for line, _ in found) == [1, 3, 7]
    looks = "look_up = 1\n\n_LOOK_S = 1\n\nnode.gives = looked\n"
    assert [line for line, _ in names_are_the_fields(Source(python, looks))] == [3, 5]
    assert not list(names_are_the_fields(Source(python, "configured(file.tell(), 'tell it')\n")))
    labels = "f(in_place=1)\n\nx = {'bettong_place': 1}\n\ny = f'{a}.cuts.{b}'\n\ndead_letters = ['dead-letters']\n"
    assert [line for line, _ in names_are_the_fields(Source(python, labels))] == [3, 5]
    assert not list(names_are_the_fields(Source(PurePosixPath(f"{CUTS}proxy.py"), "def cut(self): ...\n")))
    proto = Source(PurePosixPath("protos/a.proto"), "message A {\n  // The way.\n  bool cut = 3;\n}\n")
    assert [line for line, _ in names_are_the_fields(proto)] == [3]
    unused = "def f(a, b, _c):\n    return a\n\ndef g(d):  # noqa: ARG001\n    return 1\n"
    assert [what.split(":")[0] for _, what in parameters_are_used(Source(python, unused))] == [
        "f does not use b",
        "g does not use d",
    ]
    used = (
        'def f(a):\n    """See Protocol."""\n    return 1\n\n'
        "def g(d):  # noqa: ARG001 - Numba compares names\n    return 1\n\n"
        "def h(e): ...\n"
    )
    assert not list(parameters_are_used(Source(python, used)))


def test_two_classes_of_one_name_are_found() -> None:
    one, other = (Source(PurePosixPath(f"src/{name}.py"), "class Form: ...\n") for name in "ab")
    own = Source(PurePosixPath("src/c.py"), "class _Form: ...\n")
    apart = Source(PurePosixPath(f"{APART}d.py"), "class Form: ...\n")
    assert classes_of_one_name((one, other, own, apart)) == {"Form": ["src/a.py:1", "src/b.py:1"]}
    assert classes_of_one_name((one, own, apart)) == {}


def test_a_drawn_tree_is_read_by_its_branches() -> None:
    text = "Errors.\n\n    Root\n    ├── One      first\n    │   └── Deep    second\n    └── Two    third\n"
    root = {"Root": None, "One": "Root", "Deep": "One", "Two": "Root"}
    assert drawn_errors(text) == root
    assert drawn_errors(f"{text}\n    Other\n    └── Three\n") == root | {"Other": None, "Three": "Other"}
    bases = {"One": "errors.Root", "Root": "Exception", "Form": "Value"}
    assert [each for each in (*bases, "_Root", "Protocol") if is_public_error(each, bases)] == ["One", "Root"]
