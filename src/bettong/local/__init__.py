"""Bettong on one machine: a real broker, a real Redis and the services as processes that never outlive their owner.

Knows the services by name only and starts them as `python -m bettong <service>`, as a container would; it imports
none of them, and nothing of it is needed where Kubernetes runs Bettong.
"""
