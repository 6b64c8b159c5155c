"""What every gRPC server here begins with: certificates, and who may call what. Knows no service.

| module          | holds                                                                |
| --------------- | -------------------------------------------------------------------- |
| `reloaded`      | files that are read again when they change                           |
| `certificates`  | a server's own certificate, and whose clients it takes               |
| `guard`         | the interceptor that asks `bettong.config.access` before a call runs |
| `reading`       | the interceptors that read the one request of a call, within bounds  |
| `pending`       | how many such requests may be under way                              |
| `receiving`     | bytes of what has come in part                                       |
| `watching`      | the connections that hold too much of it are closed                  |
| `wrapper`       | what the interceptors share                                          |
| `security`      | all of it, out of settings                                           |
| `callers`       | whose call it is                                                     |
| `client_shares` | how many long calls each client may have                             |
| `connections`   | what the system knows of connections, and their end                  |
"""

from bettong.edges.grpc_server.callers import caller
from bettong.edges.grpc_server.client_shares import ClientShares
from bettong.edges.grpc_server.connections import hang_up
from bettong.edges.grpc_server.guard import Permissions
from bettong.edges.grpc_server.pending import OTHER_CALLS_MAX
from bettong.edges.grpc_server.receiving import Bound, Receiving
from bettong.edges.grpc_server.security import ServerSecurity

__all__ = [
    "OTHER_CALLS_MAX",
    "Bound",
    "ClientShares",
    "Permissions",
    "Receiving",
    "ServerSecurity",
    "caller",
    "hang_up",
]
