"""The machine that is measured on: what distorts measurements there, and the facts that results record."""
