"""What is configured: settings of every service and of clients, connections to other systems, what tokens allow.

A setting is an environment variable `BETTONG_<NAME>`, read and checked once at start. It stands in this package and
nowhere else; a test checks `docs/settings.md`. Reads the environment and files of settings, and opens no connection.
"""
