"""Inspects, scales and restarts a release of the chart on a Kubernetes cluster, and reads its logs: `bettong k8s`.

Only `api` calls an API server; it returns objects as JSON. The other modules are pure functions of such objects, except
`acting` and `following`, which make the calls, and `helm`, `own_release` and `trial`, which install releases.
"""
