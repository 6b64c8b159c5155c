"""Loads the application in a file, for inspection."""

from __future__ import annotations

import builtins
import os

from bettong.application.application import Application
from bettong.application.plan import Plan, plan
from bettong.edges.application_file import load, loaded_module
from bettong.inspection.unknown_names import unknown_names


def loaded_application(application: str) -> Application:
    """`application`: a file, or `FILE:NAME` if it defines several. Raises ApplicationError for mistakes in it."""
    return load(application)


def loaded_plan(application: str) -> Plan:
    """Its stages. Raises as `loaded_application` does."""
    return plan(load(application))


def unknown_names_of(application: str) -> list[str]:
    """See `unknown_names`: of the file of a loaded application."""
    path, module = loaded_module(application)
    return unknown_names(path.read_bytes(), os.path.relpath(path), {*vars(module), *dir(builtins)})
