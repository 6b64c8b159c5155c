"""Makes the peers' virtual environments: packages from each lock by the uv of `make setup`, jars by Maven."""

import os
import shutil
import sys
from collections.abc import Iterable

from benchmarks.peers.roster import ROOT, Peer
from deploy.bootstrap import Setup, inspect_machine, jar_sums
from deploy.running import timed
from deploy.setup_plan import SetupError, Tree, digest, uv_settings, wrong_jars

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy"


def make(peers: Iterable[Peer]) -> None:
    """Makes those that are missing or whose lock has changed. Raises SetupError, with the end of a log."""
    setup = Setup(Tree(ROOT), inspect_machine())
    for peer in peers:
        if not peer.own_environment:
            continue
        stamp = peer.environment / "lock.stamp"
        fingerprint = digest((sys.version, peer.lock.read_text(), peer.jar))
        if stamp.exists() and stamp.read_text() == fingerprint:
            continue
        uv, log, settings = str(setup.tree.uv), f"peer-{peer.folder}", uv_settings(os.environ)
        python = str(peer.environment / "bin" / "python")
        with timed(f"packages of {peer.name} in {peer.environment.relative_to(ROOT)}"):
            setup.run(
                log, [uv, "venv", "--clear", "--python", sys.executable, str(peer.environment)], settings
            )
            install = ["pip", "install", "--require-hashes", "--compile-bytecode", "--python", python]
            setup.run(log, [uv, *install, "-r", str(peer.lock)], settings)
            if peer.jar:
                _fetch_jar(setup, peer)
        stamp.write_text(fingerprint)


def _fetch_jar(setup: Setup, peer: Peer) -> None:
    folder = peer.environment / "jars"
    shutil.rmtree(folder, ignore_errors=True)
    maven = ["mvn", "--batch-mode", "--strict-checksums", _COPY]
    setup.run(f"peer-{peer.folder}-jar", [*maven, f"-Dartifact={peer.jar}", f"-DoutputDirectory={folder}"])
    if wrong := wrong_jars((peer.lock.parent / "jars.sha256").read_text(), jar_sums(peer.environment)):
        raise SetupError(f"{peer.jar} is not that of jars.sha256: {wrong[0]}")
