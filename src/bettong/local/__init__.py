"""Bettong on one machine: a real broker, a real Redis and the services as processes that never outlive their owner.

It starts the services as `python -m bettong <service>`, as a container does, and must not import them. A deployment on
Kubernetes does not use this package.
"""
