"""Makes the peers' virtual environments, each from its lock, with the uv that `make setup` has installed."""

import os
import sys
from collections.abc import Iterable

from benchmarks.peers.roster import ROOT, Peer
from deploy.bootstrap import Setup, look, told
from deploy.setup_plan import Tree, digest, uv_settings


def make(peers: Iterable[Peer]) -> None:
    """Makes those that are missing or whose lock has changed. Raises SetupError with the end of uv's log."""
    setup = Setup(Tree(ROOT), look())
    for peer in peers:
        if not peer.own_environment:
            continue
        stamp = peer.environment / "lock.stamp"
        wish = digest((sys.version, peer.lock.read_text()))
        if stamp.exists() and stamp.read_text() == wish:
            continue
        uv, log, settings = str(setup.tree.uv), f"peer-{peer.folder}", uv_settings(os.environ)
        python = str(peer.environment / "bin" / "python")
        with told(f"packages of {peer.name} in {peer.environment.relative_to(ROOT)}"):
            setup.run(
                log, [uv, "venv", "--clear", "--python", sys.executable, str(peer.environment)], settings
            )
            install = ["pip", "install", "--require-hashes", "--compile-bytecode", "--python", python]
            setup.run(log, [uv, *install, "-r", str(peer.lock)], settings)
        stamp.write_text(wish)
