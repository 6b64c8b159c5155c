"""Where a run takes place, this machine or a cluster: how it is started and reached, and what it uses."""
