"""The console: a page that shows what an application does now, where it is slow, and why. It changes nothing.

What it knows comes from `bettong.inspection`, which commands show, too. One thread looks at the deployment once a
second, the event loop serves pages. What folds the log with users' code (a key's history) runs in processes of their
own, which end after a bounded time.
"""
