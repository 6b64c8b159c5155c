"""The store in Redis: the only package that imports redis-py.

| key                                          | type   | holds                                                      |
| -------------------------------------------- | ------ | ---------------------------------------------------------- |
| `bettong:{application}:snapshots`             | set    | names of the keys in the next row                          |
| `bettong:{application}:snapshot:{stage}/{p}`  | hash   | increment's name -> its bytes (`bettong.snapshots.chain`)  |
| `bettong:{application}:reference:{series}`    | hash   | versions of a reference table, and offsets that name them  |
| `bettong:{application}:live`                  | set    | instances that have written metrics                        |
| `bettong:{application}:live:{instance}`       | hash   | metric -> value (`bettong.metrics`); expires               |
| `bettong:{application}:partitions`            | set    | `{stage}/{p}` that have metrics                            |
| `bettong:{application}:partition:{stage}/{p}` | hash   | metric -> value                                            |
| `bettong:{application}:positions:{sink}`      | hash   | partition -> position up to which results are delivered    |
| `bettong:{application}:results:{sink}`        | list   | the newest results of a sink, oldest first                 |
| `bettong:{application}:stream:{source}/{s}`   | hash   | state of a client's stream (`leases`); expires             |
| `bettong:{application}:lease:{source}/{s}`    | string | session that feeds the stream (`leases`); expires          |
| `bettong:{application}:epoch`                 | hash   | run of the Redis server, and its start                     |
| `bettong:{application}:deaths`                | zset   | frames at which senders crashed (`deaths`); expires        |
| `bettong:{application}:history:{span}`        | hash   | rings of a console's history (`rings`); expires            |
| `bettong:{application}:lead`                  | string | processor that leads (`lead`); expires                     |
| `bettong:{application}:logs`                  | hash   | topic of a stage -> its id (`logs`)                        |

| name             | purpose                                                    |
| ---------------- | ---------------------------------------------------------- |
| `RedisStore`     | the connection of one application, which the others use    |
| `RedisSnapshots` | a `SnapshotStore`                                          |
| `RedisVersions`  | versions of reference tables                               |
| `RedisLeases`    | leases of streams: one session at a time feeds a stream    |
| `RedisDeaths`    | frames at which senders crashed, shared by all senders     |
| `RedisLead`      | leader election among processors                           |
| `RedisLogs`      | which topics the stages had at the last start              |
| `LiveMetrics`    | the metrics that services report                           |
| `RedisRings`     | the history of consoles, which outlives their processes    |
| `RedisSink`      | results and their position, in one transaction             |
| `RedisFaults`    | faults injected into a server                              |

Redis's errors stay inside: every failure is a `StoreError`. Every wait is bounded.
"""

from bettong.edges.redis_store.connection import VALUE_BYTES_MAX, RedisStore
from bettong.edges.redis_store.deaths import RedisDeaths
from bettong.edges.redis_store.faults import RedisFaults
from bettong.edges.redis_store.lead import RedisLead
from bettong.edges.redis_store.leases import Answer, Claim, Granted, Held, RedisLeases, Settling
from bettong.edges.redis_store.live import LiveMetrics, ttl_of
from bettong.edges.redis_store.logs import RedisLogs
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
    "RedisLogs",
    "RedisRings",
    "RedisSink",
    "RedisSnapshots",
    "RedisStore",
    "RedisVersions",
    "RingChange",
    "Settling",
    "ttl_of",
]
