"""How a user's function is called: message by message, compiled by Numba, or over whole columns."""
