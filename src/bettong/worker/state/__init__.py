"""The states of one partition's keys: as Python objects, or as records of an array; how they are saved and read."""
