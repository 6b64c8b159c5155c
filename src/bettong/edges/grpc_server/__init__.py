"""What every gRPC server here begins with: certificates, and who may call what. Knows no service.

| module         | holds                                                                |
| -------------- | -------------------------------------------------------------------- |
| `reloaded`     | files that are read again when they change                           |
| `certificates` | a server's own certificate, and whose clients it takes               |
| `guard`        | the interceptor that asks `bettong.config.access` before a call runs |
| `parsing`      | the interceptor that refuses what is no request                      |
| `wrapper`      | what the two interceptors share                                      |
| `security`     | all of it, out of settings                                           |
| `callers`      | whose call it is                                                     |
| `connections`  | what the system knows of connections, and their end                  |
"""

from bettong.edges.grpc_server.callers import caller
from bettong.edges.grpc_server.connections import hang_up, received_bytes
from bettong.edges.grpc_server.guard import Permissions
from bettong.edges.grpc_server.security import ServerSecurity

__all__ = ["Permissions", "ServerSecurity", "caller", "hang_up", "received_bytes"]
