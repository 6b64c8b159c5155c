"""A state in compiled code: a record of a numpy array, changed in place, whose text means what a str means."""

from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import models, register_model

from bettong.schema.fields import Kind
from bettong.schema.schema import Schema
from bettong.worker.numba_types.texts import TextType


class StateType(types.Record):
    """The record of a schema's state, of that numpy type."""

    def __init__(self, schema: Schema, dtype: np.dtype[Any]) -> None:
        record = numba.from_dtype(dtype)
        self._texts = {
            field.name: TextType(record.typeof(field.name).count)
            for field in schema.fields
            if field.kind is Kind.TEXT
        }
        members: list[tuple[str, Any]] = [(name, each._asdict()) for name, each in record.fields.items()]
        super().__init__(members, record.size, record.aligned)
        self.name = f"{schema.name}({self.name}; text: {', '.join(self._texts)})"

    def typeof(self, key: str) -> Any:
        """The type of a field. Raises KeyError."""
        return self._texts.get(key) or super().typeof(key)


register_model(StateType)(models.RecordModel)
