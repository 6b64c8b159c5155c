"""The application in a file, as inspection needs it."""

from __future__ import annotations

from bettong.application.application import Application
from bettong.application.plan import Plan, plan
from bettong.edges.application_file import load


def loaded_application(application: str) -> Application:
    """`application`: a file, or `FILE:NAME` of several. Raises ApplicationError for mistakes in it."""
    return load(application)


def loaded_plan(application: str) -> Plan:
    """Its stages. Raises as `loaded_application` does."""
    return plan(load(application))
