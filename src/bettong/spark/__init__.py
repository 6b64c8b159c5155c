"""Results and states of an application as Spark DataFrames, read beside whatever runs. Writes nothing anywhere.

| function         | gives                                                              | reads           |
| ---------------- | ------------------------------------------------------------------ | --------------- |
| `state`          | the state of every key of a computation                            | snapshots       |
| `batch`          | the results of each sink, folded from the recorded log again       | stage topics    |
| `stream`         | a sink's results as they come, a streaming DataFrame               | the sink's topic |
| `connector_jars` | for `.config("spark.jars", ...)`, which `stream` needs             |                 |

They take `app`, the application's file (`FILE:NAME` of several), and find Kafka, Redis and snapshots as the command
line does: what is given by name, else the suite that `bettong up` runs in `directory`, else `BETTONG_...` in the
environment. docs/spark.md says what is guaranteed.

The one package of the library that loads pyspark, which `pip install 'bettong[spark]'` brings; no other module here
may import it.
"""

from bettong.spark.batches import batch
from bettong.spark.located import WhereOptions
from bettong.spark.states import state
from bettong.spark.streams import connector_jars, stream

__all__ = ["WhereOptions", "batch", "connector_jars", "state", "stream"]
