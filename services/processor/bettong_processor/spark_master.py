"""The kinds of `spark.master`. Pure."""


def is_on_one_machine(master: str) -> bool:
    """Whether Spark runs on this machine alone: `local`, `local[...]` and `local-cluster[...]`."""
    return master.startswith("local")


def is_one_process(master: str) -> bool:
    """Whether the driver runs all tasks itself. `local-cluster[...]` starts executors as processes of their own."""
    return master.partition("[")[0] == "local"
