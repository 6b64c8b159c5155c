"""A machine and a tree that `make setup` could work on."""

from pathlib import Path

from deploy.setup_plan import Machine, Tree

GOOD = Machine(
    python=(3, 11),
    java_banner='openjdk version "17.0.15" 2025-04-15',
    tools=frozenset({"java", "mvn", "git"}),
    is_root=False,
    has_apt=True,
)


def a_tree(folder: Path) -> Tree:
    """The smallest tree with all inputs."""
    for name in ("pyproject.toml", "services/sender/pyproject.toml", "protos/a.proto", "requirements.lock"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return Tree(folder)
