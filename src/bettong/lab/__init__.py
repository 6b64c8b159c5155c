"""The performance lab: runs that record everything, and comparisons that can be trusted.

    run file + load ──> run (suite, clients, readings, samples) ──> a folder ──> a page
    facts of a machine ──> conditions ──> findings, each with what it does to metrics and the remedy
    results of two runs ──> comparison ──> by how much each metric changed, and whether that is more than noise
    another commit, this tree ──> runs in turns, each of its own code (`versions`) ──> a folder each, to compare

`load`, `generators`, `computed_load`: what users write loads with; `spec`, `load_table`: the run file
`target`: this machine, or a cluster; `clients` feed it, `reading` reads it, `run` is all of a repeat
`answers`: what must come out; `machine`: the facts; `statistics`: what measurements say; `page`: what people look at
"""
