"""The performance lab: benchmark runs that record everything, and comparisons that tell a change from noise.

    run file + load ──> run (suite, clients, readers, samples) ──> a folder ──> an HTML page
    facts of a machine ──> conditions ──> findings, each with its effect on metrics and the remedy
    results of two runs ──> comparison ──> by how much each metric changed, and whether that is more than noise
    another commit, this tree ──> runs in turns, each with its own code (`versions`) ──> a folder each, to compare

`load`, `generators`, `computed_load`: what users write loads with; `spec`, `load_table`: the run file
`target`: a suite on this machine, or a release on a cluster; `clients` feed it, `reading` reads its results, `run` does
one repeat; `answers`: the expected results; `machine`: its facts; `statistics`: analysis; `page`: the HTML report
"""
