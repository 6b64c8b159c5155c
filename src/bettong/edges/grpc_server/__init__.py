"""Shared parts of all gRPC servers: TLS, authorization, and bounds on requests. Depends on no service.

| module          | holds                                                                |
| --------------- | -------------------------------------------------------------------- |
| `reloaded`      | files that are read again when they change                           |
| `certificates`  | a server's certificate, and the authorities for client certificates  |
| `guard`         | the interceptor that authorizes calls with `bettong.config.access`   |
| `reading`       | interceptors that read the request of a unary call, within bounds    |
| `pending`       | bounds the number of incomplete requests                             |
| `receiving`     | estimates the memory held for partly received messages               |
| `watching`      | closes connections that hold too much of it                          |
| `wrapper`       | base of the interceptors                                             |
| `security`      | builds all of it from settings                                       |
| `callers`       | identifies the client of a call                                      |
| `client_shares` | bounds the long calls per client                                     |
| `connections`   | inspects and closes connections at the operating system's level      |
"""

from bettong.edges.grpc_server.callers import caller
from bettong.edges.grpc_server.client_shares import ClientShares
from bettong.edges.grpc_server.connections import close_connection
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
    "close_connection",
]
