"""Extends Numba by its extension API, so that users' functions are compiled as they stand.

| module        | the user writes                             | compiled code has                                |
| ------------- | ------------------------------------------- | ------------------------------------------------ |
| `texts`       | text of a message, compared with a str      | its UTF-8 in place                               |
| `text_as_str` | `order.symbol.upper()`                      | a str made of it, as Numba has it                |
| `messages`    | `Rejected(symbol=..., price=...)`           | a struct of its fields                           |
| `fixed_bytes` | `len(order.code)`, compared with a constant | its bytes in place, NULs at their end too         |
| `unsigned`    | `order.number`, a `bettong.u64`             | it, which becomes an int64 or raises             |
| `states`      | `state.total += 1`                          | a record of a numpy array, changed in place      |
| `callables`   | a function of the user's; a dataclass       | that function compiled; the struct's constructor |

Nothing of the user's is copied, rewritten or changed. Numba's registries belong to the whole process: `callables`
says how little of this others who use Numba notice.
"""

from bettong.worker.numba_types import text_as_str  # noqa: F401 - the import registers everything
