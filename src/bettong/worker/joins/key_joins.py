"""The join of a computation, by its kind."""

from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import AsOf, InWindow, Within
from bettong.worker.joins.as_of import AsOfJoin
from bettong.worker.joins.in_window import WindowJoin
from bettong.worker.joins.key_join import KeyJoin
from bettong.worker.joins.latest import LatestJoin
from bettong.worker.joins.within import WithinJoin


def key_join(node: Joined) -> KeyJoin:
    """The join of all keys of one partition, which keeps no messages yet."""
    kind, how = node.kind, node.how
    if isinstance(kind, Within):
        return WithinJoin(kind, how)
    if isinstance(kind, AsOf):
        return AsOfJoin(kind, how)
    if isinstance(kind, InWindow):
        return WindowJoin(kind, how)
    return LatestJoin(kind, how)
