"""The console: a page that shows what an application does now, where it is slow, and why. It changes nothing.

Its data comes from `bettong.inspection`, as that of commands. One thread inspects the deployment once a second, the
event loop serves pages. Work that folds the log with users' code (a key's history) runs in separate processes, which
end after a bounded time.
"""
