"""`bettong k8s`: a release of the chart on a cluster."""
