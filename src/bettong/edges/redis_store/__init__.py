"""The store, that is Redis: the only package that imports redis-py.

| key                                          | type   | holds                                                      |
| -------------------------------------------- | ------ | ---------------------------------------------------------- |
| `bettong:{application}:snapshots`             | set    | names of the next row's keys                               |
| `bettong:{application}:snapshot:{stage}/{p}`  | hash   | increment's name -> its bytes (`bettong.snapshots.chain`)  |
| `bettong:{application}:reference:{series}`    | hash   | versions of a reference table, and where logs name them    |
| `bettong:{application}:live`                  | set    | instances that have written metrics                        |
| `bettong:{application}:live:{instance}`       | hash   | metric -> value (`bettong.metrics`); goes by itself        |
| `bettong:{application}:partitions`            | set    | `{stage}/{p}` that have metrics                            |
| `bettong:{application}:partition:{stage}/{p}` | hash   | metric -> value                                            |
| `bettong:{application}:positions:{sink}`      | hash   | partition -> how far its results are delivered             |
| `bettong:{application}:results:{sink}`        | list   | the newest results of a sink, oldest first                 |
| `bettong:{application}:stream:{source}/{s}`   | hash   | what is known of a client's stream; goes by itself         |
| `bettong:{application}:lease:{source}/{s}`    | string | who feeds it (`leases`); goes by itself                    |
| `bettong:{application}:epoch`                 | hash   | which run of Redis this is, and since when                 |
| `bettong:{application}:deaths`                | zset   | frames that senders died over (`deaths`); goes by itself   |
| `bettong:{application}:history:{span}`        | hash   | rings of a console's history (`rings`); goes by itself     |
| `bettong:{application}:lead`                  | string | which processor is at work (`lead`); goes by itself        |

| name             | what it is for                                             |
| ---------------- | ---------------------------------------------------------- |
| `RedisStore`     | the connection of one application; the others are made from it |
| `RedisSnapshots` | a `SnapshotStore`                                          |
| `RedisVersions`  | versions of reference tables                               |
| `RedisLeases`    | who feeds a stream: one session at a time                  |
| `RedisDeaths`    | what senders share of frames that kill           |
| `RedisLead`      | which of several processors is at work                     |
| `LiveMetrics`    | what services say of themselves, for people to see         |
| `RedisRings`     | the history of consoles, beyond their processes            |
| `RedisSink`      | results and the position they reach, in one transaction    |
| `RedisFaults`    | a server disturbed on purpose                              |

Redis' own errors stay inside: whatever goes wrong is a `StoreError`. Every wait is bounded.
"""

from bettong.edges.redis_store.connection import VALUE_BYTES_MAX, RedisStore
from bettong.edges.redis_store.deaths import RedisDeaths
from bettong.edges.redis_store.faults import RedisFaults
from bettong.edges.redis_store.lead import RedisLead
from bettong.edges.redis_store.leases import Answer, Claim, Granted, Held, RedisLeases, Settling
from bettong.edges.redis_store.live import LiveMetrics, ttl_of
from bettong.edges.redis_store.rings import RedisRings, RingChange
from bettong.edges.redis_store.sink import RedisSink
from bettong.edges.redis_store.snapshots import RedisSnapshots
from bettong.edges.redis_store.versions import RedisVersions

__all__ = [
    "VALUE_BYTES_MAX",
    "Answer",
    "Claim",
    "Granted",
    "Held",
    "LiveMetrics",
    "RedisDeaths",
    "RedisFaults",
    "RedisLead",
    "RedisLeases",
    "RedisRings",
    "RedisSink",
    "RedisSnapshots",
    "RedisStore",
    "RedisVersions",
    "RingChange",
    "Settling",
    "ttl_of",
]
