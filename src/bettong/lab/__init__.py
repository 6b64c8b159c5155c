"""The performance lab: runs that record everything, and comparisons that can be trusted.

    run file + load ──> run (suite, clients, readings, samples) ──> a folder ──> a page
    facts of a machine ──> conditions ──> findings, each with what it does to metrics and the remedy
    results of two runs ──> comparison ──> by how much each metric changed, and whether that is more than noise
    another commit, this tree ──> runs in turns, each of its own code (`versions`) ──> a folder each, to compare

`comparison`, `conditions`, `objective` and `search` are pure; `run`, `clients` and `topics` start processes,
`machine_state` looks, `folder` and `results` write and read files.
"""
