"""A release of the chart on a Kubernetes cluster: seen, scaled, restarted, read. What `bettong k8s` does.

`api` alone speaks with an API server, and gives its objects as the JSON that they are. Everything else decides on
such objects and is pure, but for `acting`, which does to a cluster what was decided, and `trial`, which runs helm.
"""
