"""The machine of a measurement: conditions that distort measurements, and the facts that results record."""
