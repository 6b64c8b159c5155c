"""How an application is described: streams, and the plan that divides them into stages.

Pure data. Nothing here runs a message, reads a clock or knows of Kafka, Redis, gRPC or Spark.
"""
