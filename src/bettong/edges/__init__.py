"""The edges: adapters to Kafka, Redis, object stores, gRPC and the file system.

Each client library is imported by one package, which maps its errors. Nothing here decides about stream semantics.
"""
