"""Every kind of field with a form, by a name for its tests."""

from collections.abc import Mapping

from tests.samples.kind_cases import KindCase
from tests.samples.nested_kinds import NESTED_KINDS
from tests.samples.scalar_kinds import SCALAR_KINDS

KINDS: Mapping[str, KindCase] = SCALAR_KINDS | NESTED_KINDS
