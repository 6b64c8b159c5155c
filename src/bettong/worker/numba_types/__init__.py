"""What Numba is taught about applications, by its extension API: users' functions are compiled as they stand.

| module        | the user writes                             | compiled code has                                |
| ------------- | ------------------------------------------- | ------------------------------------------------ |
| `texts`       | text of a message, compared with a str      | its UTF-8 in place                               |
| `text_as_str` | `order.symbol.upper()`                      | a str made of it, as Numba has it                |
| `messages`    | `Rejected(symbol=..., price=...)`           | a struct of its fields                           |
| `states`      | `state.total += 1`                          | a record of a numpy array, changed in place      |
| `reached`     | a function of the user's; a dataclass       | that function compiled; what makes the struct    |

Nothing of the user's is copied, rewritten or changed. What Numba is taught holds for the whole process: `reached` says
how little of this others who use Numba notice.
"""

from bettong.worker.numba_types import text_as_str  # noqa: F401 - Numba is taught by the import
