"""Configuration: settings of every service and of clients, connections to other systems, permissions of tokens.

A setting is an environment variable `BETTONG_<NAME>`, read and checked once at start. It is defined only in this
package; a test checks `docs/settings.md`. Reads the environment and files of settings, and opens no connection.
"""
