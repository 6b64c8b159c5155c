"""Two versions of what is measured, in turns: another commit or checkout, and this tree.

`git` makes worktrees; `checkouts` says what runs in each version; `turns` runs it, and joins what each repeat left.
"""
