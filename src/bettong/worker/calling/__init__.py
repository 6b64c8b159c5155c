"""Calls users' functions: message by message, compiled by Numba, or over whole columns."""
