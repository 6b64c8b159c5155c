"""`bettong SERVICE`, for each of `bettong.services`: runs one service in this process, as containers do.

A service is an entry point of the group `bettong.services`: a function that takes settings (those given as flags)
and runs until SIGTERM or SIGINT. Flags are made from `bettong.config`: one for each setting, documented there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.ending import QuickExit, end_well
from bettong.errors import SettingsError
from bettong.garbage import CollectionPaused
from bettong.loaded_modules import hidden
from bettong.services import SERVICES

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

GROUP = "bettong.services"
# The stub passes all arguments, --help included, to the command that is built on demand.
STUB = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


def run_service(context: typer.Context) -> None:
    """Makes the command of the service that the stub is named after, and runs it."""
    end = QuickExit()
    name = str(context.info_name)
    app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    with CollectionPaused():  # see `command` below
        made = service_command(name)
    app.command(name, help=SERVICES[name].summary)(made)
    end.status = end_well(app, context.args, name=f"bettong {name}")
    raise typer.Exit(end.status)


def service_command(name: str) -> Callable[..., None]:
    """A function with one keyword per setting, which runs the service with those that are given."""
    from bettong.config.reading import settings_class

    def command(**flags: object) -> None:
        from bettong.config.endpoints import without_password

        try:
            without_password(str(flags.get("redis") or ""))
        except ValueError as error:
            raise SettingsError(f"--redis: {error}") from None
        # Loaded modules stay alive: collecting garbage meanwhile took a twentieth of a start's CPU time.
        with CollectionPaused():
            # Rich, which structlog imports for tracebacks that we do not use, took another twentieth.
            with hidden("rich"):
                import structlog  # noqa: F401
            main = found(name).load()
        main({key: value for key, value in flags.items() if value is not None})

    parameters = [
        _parameter(key, field) for key, field in settings_class(SERVICES[name]).model_fields.items()
    ]
    vars(command)["__signature__"] = inspect.Signature(parameters)
    return command


def found(name: str) -> EntryPoint:
    """The entry point of a service. Raises SettingsError when it is not installed here."""
    for entry in entry_points(group=GROUP, name=name):
        return entry
    raise SettingsError(
        f"the {name} is not installed in this environment: install the package bettong-{name}"
    )


def _parameter(key: str, field: FieldInfo) -> inspect.Parameter:
    """The flag of a setting: text that the settings class validates, or on/off for a switch."""
    from pydantic_core import PydanticUndefined

    from bettong.config.service import PREFIX

    dashed = key.replace("_", "-")
    switch = field.annotation is bool
    names = (f"--{dashed}/--no-{dashed}",) if switch else (f"--{dashed}",)
    if field.default_factory is not None:
        default = "SERVICE-HOST"
    elif field.default is PydanticUndefined:
        default = "none, required"
    else:
        default = str(getattr(field.default, "value", field.default))
    help_text = f"{field.description} [dim](default: {default}; env: {PREFIX}{key.upper()})[/dim]"
    option = typer.Option(*names, help=help_text, show_default=False, metavar=None if switch else "VALUE")
    kind = bool if switch else str
    return inspect.Parameter(
        key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )
