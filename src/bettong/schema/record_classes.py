"""Classes whose objects are messages, or parts of one: dataclasses, TypedDicts, pydantic models.

Objects are made from their fields' values alone, again at each stage, without running code of the class: a dataclass
with a `__post_init__` is refused, and no validator of a pydantic model runs (`model_construct`). Pydantic is not
imported here: a program with a model has imported it.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Annotated, Any, NotRequired, Required, TypeAlias, get_args, get_origin, get_type_hints

from bettong.errors import SchemaError

Getter: TypeAlias = Callable[..., Callable[[Any], Any]]

# Factories with a constant result. Others may read a clock or a random number, so their results are no default.
_CONSTANT_FACTORIES = (list, dict, tuple, str, bytes, int, float, bool)


@dataclass(frozen=True, slots=True)
class RecordClass:
    """How objects of a class are made and read.

    `hints`: the annotation of each field, in order. `make` takes their values in that order. `getter`: of `operator`,
    for fields by name. `unreadable`: what a getter raises for an object of another class. `is_frozen`: its fields
    cannot be set again. `defaults`: of the fields whose default is the same for all objects.
    """

    name: str
    hints: Mapping[str, Any]
    make: Callable[..., Any]
    made_class: type[Any]
    getter: Getter = attrgetter
    unreadable: tuple[type[Exception], ...] = (AttributeError,)
    is_frozen: bool = False
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def is_record_class(message: object) -> bool:
    """Whether `record_class_of` supports a class."""
    return isinstance(message, type) and (
        dataclasses.is_dataclass(message) or _is_typed_dict(message) or _is_model(message)
    )


def is_frozen(message: Any) -> bool:
    """Whether fields of its objects cannot be set again: a frozen dataclass, or a frozen pydantic model."""
    if dataclasses.is_dataclass(message):
        params: Any = message.__dataclass_params__  # type: ignore[union-attr]
        return bool(params.frozen)
    return not _is_typed_dict(message) and bool(message.model_config.get("frozen"))


def record_class_of(message: Any) -> RecordClass:
    """How a class's objects are made and read. Raises SchemaError, naming it, if they cannot be messages."""
    return _record_class_of(message)


@lru_cache(maxsize=1024)
def _record_class_of(message: Any) -> RecordClass:
    name = message.__name__
    try:
        if dataclasses.is_dataclass(message):
            record = _of_dataclass(message)  # type: ignore[arg-type]
        elif _is_typed_dict(message):
            record = _of_typed_dict(message)
        else:
            record = _of_model(message)
    except NameError as error:
        raise SchemaError(f"{name}: an annotation cannot be resolved: {error}") from None
    if not record.hints:
        raise SchemaError(f"{name} is no schema: it has no fields")
    return record


def dict_class(names: tuple[str, ...]) -> RecordClass:
    """The class of dicts with these keys, where the user's class is not known."""
    return RecordClass(
        "object", dict.fromkeys(names), _dict_maker(names), dict, itemgetter, (KeyError, TypeError)
    )


def _of_dataclass(message: type[Any]) -> RecordClass:
    hints = get_type_hints(message, include_extras=True)
    names = [field.name for field in dataclasses.fields(message)]
    if names:
        _check_constructor(message, names)
    held = {name: hints[name] for name in names}
    defaults: dict[str, Any] = {
        field.name: field.default_factory() if field.default_factory in _CONSTANT_FACTORIES else field.default
        for field in dataclasses.fields(message)
    }
    return RecordClass(
        message.__name__,
        held,
        message,
        message,
        is_frozen=is_frozen(message),
        defaults={name: value for name, value in defaults.items() if value is not dataclasses.MISSING},
    )


def _of_typed_dict(message: Any) -> RecordClass:
    hints = get_type_hints(message, include_extras=True)
    # If annotations are text, the class itself does not know which keys are optional.
    required = {name for name, hint in hints.items() if get_origin(hint) is Required}
    optional = {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
    if optional := optional | (message.__optional_keys__ - required):
        raise SchemaError(
            f"{message.__name__}: key {min(optional)!r} may be missing (NotRequired, or total=False); a message has all"
            " its fields: make it required, with a type of `... | None`"
        )
    hints |= {name: get_args(hints[name])[0] for name in required}
    return RecordClass(
        message.__name__, hints, _dict_maker(tuple(hints)), dict, itemgetter, (KeyError, TypeError)
    )


def _of_model(model: Any) -> RecordClass:
    if not hasattr(model, "model_construct"):
        raise SchemaError(f"{model.__name__} is a model of pydantic 1; expected one of pydantic 2 or newer")
    if model.__pydantic_post_init__ is not None:
        raise SchemaError(
            f"{model.__name__} has a model_post_init, or private attributes, which would run again at every stage;"
            " check and change values where messages are first made"
        )
    fields: Mapping[str, Any] = model.model_fields
    hints = {
        name: Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        for name, field in fields.items()
    }
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in fields.items()
        if not field.is_required() and field.default_factory in (None, *_CONSTANT_FACTORIES)
    }
    names, construct = tuple(hints), model.model_construct
    return RecordClass(
        model.__name__,
        hints,
        lambda *values: construct(**dict(zip(names, values, strict=True))),
        model,
        is_frozen=is_frozen(model),
        defaults=defaults,
    )


def _dict_maker(names: tuple[str, ...]) -> Callable[..., dict[str, Any]]:
    return lambda *values: dict(zip(names, values, strict=True))


def _is_typed_dict(message: type[Any]) -> bool:
    return issubclass(message, dict) and hasattr(message, "__optional_keys__")


def _is_model(message: type[Any]) -> bool:
    # By name: pydantic may not be installed.
    return any(
        each.__name__ == "BaseModel" and each.__module__.partition(".")[0] == "pydantic"
        for each in message.__mro__
    )


def _check_constructor(message: type[Any], names: list[str]) -> None:
    """Refuses classes that do more than hold values, because messages are made again from columns many times."""
    if hasattr(message, "__post_init__"):
        raise SchemaError(
            f"{message.__name__} has a __post_init__, which would run again at every stage;"
            " check and change values where messages are first made"
        )
    parameters = inspect.signature(message).parameters.values()
    if [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD] != names:
        raise SchemaError(
            f"{message.__name__}: expected to be made as {message.__name__}({', '.join(names)});"
            " kw_only, init=False, InitVar and an __init__ of your own are not supported"
        )
