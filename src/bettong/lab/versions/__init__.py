"""Two versions that are measured in turns: another commit or checkout, and this tree.

`git` makes worktrees; `checkouts` finds what runs in each version; `turns` runs them, and joins the repeats of each.
"""
