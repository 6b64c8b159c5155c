"""The performance lab: what distorts a measurement here, and whether two measurements differ.

    facts of a machine ──> conditions ──> findings, each with what it does to metrics and the remedy
    results of two runs ──> comparison ──> by how much each metric changed, and whether that is more than noise

`conditions` and `comparison` are pure; `machine_state` looks, `results` reads files.
"""
