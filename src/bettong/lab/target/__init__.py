"""Where a run takes place, this machine or a cluster: starts a suite or a release, and samples what it uses."""
