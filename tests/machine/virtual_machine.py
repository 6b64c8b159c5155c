"""A virtual machine with two cores of two threads each, emulated (TCG): a kernel that may be tuned as one likes.

Its disks: the root, of which nothing written stays; one that stays through a loss of power, for code and journal; one
to swap to. Its network ends at the emulator, which lets nothing out.
"""

import contextlib
import shutil
import subprocess
from pathlib import Path

from bettong.local.processes import Command
from bettong.local.server import Server
from tests.machine.building import ROOT, Disk
from tests.machine.guest_agent import GuestAgent

CPUS = 4
NODE = "/var/lib/node"
_MEMORY_MB = 1024
_DISK_MB = 64
_SWAP_MB = 32
_START_S_MAX = 600.0  # 12 s on a machine of its own
_ENTRY = "#!/usr/bin/python3\nfrom bettong_node_tuner.main import main\n\nmain()\n"


class VirtualMachine(Server):
    """A context manager; all that it writes lies in `folder`. `agent` runs commands in it."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self.agent: GuestAgent
        self._folder = folder
        self._make_disks()
        words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        # A CPU of Intel's: one of AMD's needs more than threads to show them. Without MONITOR: emulated, a CPU that is
        # offline would spin in MWAIT.
        words += ["-accel", "tcg,thread=multi", "-m", str(_MEMORY_MB)]
        words += ["-cpu", "max,vendor=GenuineIntel,monitor=off"]
        words += ["-smp", f"{CPUS},sockets=1,cores=2,threads=2"]
        words += ["-kernel", str(disk.kernel), "-initrd", str(disk.initrd)]
        reported = "console=ttyS0 root=/dev/vda ro init=/sbin/first_process.sh net.ifnames=0 panic=-1 mitigations=off"
        words += ["-append", reported]
        words += ["-drive", f"file={disk.root},if=virtio,format=raw,snapshot=on"]
        for name in ("node", "swap"):
            words += ["-drive", f"file={name}.img,if=virtio,format=raw"]
        words += ["-netdev", "user,id=net,restrict=on", "-device", "virtio-net-pci,netdev=net,romfile="]
        words += ["-serial", "file:console.log", "-serial", "chardev:agent"]
        words += ["-chardev", "socket,id=agent,path=agent.sock,server=on,wait=off"]
        command = Command("qemu", tuple(words), folder / "qemu.log", directory=folder)
        super().__init__(command, answers=self._is_up, start_s_max=_START_S_MAX)

    def prepare(self) -> None:
        """Nothing of an earlier start must be taken for this one's."""
        (self._folder / "agent.sock").unlink(missing_ok=True)

    def kill(self) -> None:
        """As if power were lost: what the guest has not brought to a disk is gone."""
        if hasattr(self, "agent"):
            self.agent.close()
        super().kill()

    def stop(self) -> None:
        """As `kill`: the guest has nothing to bring in order."""
        self.kill()

    def describe_end(self) -> str:
        """What the kernel said last."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self._folder / "console.log").read_text(errors="replace").splitlines()
            return f"{super().describe_end()}; its console: {' | '.join(lines[-15:])}"
        return super().describe_end()

    def _is_up(self) -> bool:
        try:
            agent = GuestAgent(self._folder / "agent.sock")
        except OSError:
            return False
        if not agent.greets():
            agent.close()
            return False
        self.agent = agent
        return True

    def _make_disks(self) -> None:
        node = self._folder / "node"
        package = "bettong_node_tuner"
        source = ROOT / "services" / "node-tuner" / package
        shutil.copytree(source, node / "code" / package, ignore=shutil.ignore_patterns("__pycache__"))
        program = node / "bin" / "bettong-node-tuner"
        program.parent.mkdir()
        program.write_text(_ENTRY)
        program.chmod(0o755)
        words = ["mkfs.ext4", "-q", "-d", str(node), str(self._folder / "node.img"), f"{_DISK_MB}M"]
        subprocess.run(words, check=True, capture_output=True, timeout=60)
        with (self._folder / "swap.img").open("wb") as swap:
            swap.truncate(_SWAP_MB << 20)
