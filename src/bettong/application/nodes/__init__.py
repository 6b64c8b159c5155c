"""Nodes: the immutable data that describe an application. `Stream` adds them, and `plan` reads them.

Each module holds one kind of node, and the function that makes it from the arguments of a method of `Stream`: it checks
them, and raises ApplicationError, which names the node. Nothing here knows `Stream`, or processes a message.
"""
