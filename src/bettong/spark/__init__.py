"""Results and states of an application as Spark DataFrames. Read-only; a running application is not disturbed.

| function         | returns                                                            | reads           |
| ---------------- | ------------------------------------------------------------------ | --------------- |
| `state`          | the state of every key of a computation                            | snapshots       |
| `batch`          | the results of each sink, replayed from the log                    | stage topics    |
| `stream`         | a sink's results as they arrive, as a streaming DataFrame          | the sink's topic |
| `connector_jars` | for `.config("spark.jars", ...)`, which `stream` needs             |                 |

They take `app`, the application's file (`FILE:NAME` if it defines several), and find Kafka, Redis and snapshots as the
command line does: from keyword arguments, else from the suite that `bettong up` runs in `directory`, else from
`BETTONG_...` in the environment. docs/spark.md says what is guaranteed.

Only this package of the library may import pyspark, which `pip install 'bettong[spark]'` installs.
"""

from bettong.spark.batches import batch
from bettong.spark.located import WhereOptions
from bettong.spark.states import state
from bettong.spark.streams import connector_jars, stream

__all__ = ["WhereOptions", "batch", "connector_jars", "state", "stream"]
