"""The edges: where the library meets Kafka, Redis, object stores and health checks.

Each client library is imported by one package and its errors end there; nothing here decides anything about streams.
"""
