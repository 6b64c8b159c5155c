"""Describing an application: streams, and the plan that cuts them into stages.

Pure data. Nothing here runs a message, reads a clock or knows of Kafka, Redis, gRPC or Spark.
"""
