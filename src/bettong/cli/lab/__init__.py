"""`bettong lab`: measurements that can be trusted."""
