"""Extends Numba by its extension API, so that users' functions are compiled unchanged.

| module        | the user writes                             | compiled code has                                |
| ------------- | ------------------------------------------- | ------------------------------------------------ |
| `texts`       | text of a message, compared with a str      | its UTF-8 in place                               |
| `text_as_str` | `order.symbol.upper()`                      | a str made of it, as Numba has it                |
| `messages`    | `Rejected(symbol=..., price=...)`           | a struct of its fields                           |
| `fixed_bytes` | `len(order.code)`, compared with a constant | its bytes in place, NULs at their end too         |
| `unsigned`    | `order.number`, a `bettong.u64`             | it, which becomes an int64 or raises             |
| `states`      | `state.total += 1`                          | a record of a numpy array, changed in place      |
| `callables`   | a function of the user's; a dataclass       | that function compiled; the struct's constructor |

No user code is copied, rewritten or changed. Numba's registries are global to the process: `callables` describes how
other users of Numba are kept unaffected.
"""

from bettong.worker.numba_types import text_as_str  # noqa: F401 - the import registers everything
