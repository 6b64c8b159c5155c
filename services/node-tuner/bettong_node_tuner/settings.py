"""The settings of a tuner: environment variables `BETTONG_NODE_TUNER_<NAME>`, read and checked once at start.

Settings are defined only here: docs/settings.md and the schema of the chart's values are rendered from here
(`json_schema_extra`: the schema of a value that code here checks). `tuning.checks` of the chart repeats the rules
between two settings.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableError

from bettong_node_tuner.errors import SettingsError
from bettong_node_tuner.formats import cpus_of_list, list_of

PREFIX = "BETTONG_NODE_TUNER_"

_SYSCTL = re.compile(r"(vm|net|kernel)(\.[A-Za-z0-9_-]+)+")
_CPU = r"(0|[1-9][0-9]{0,3})"
_CPUS = rf"{_CPU}(-{_CPU})?"
# Actions rather than settings, or set by another setting here, or with an old value that cannot be restored.
_NO_SYSCTL = {
    "vm.dirty_bytes": "the kernel does not accept its old value 0; give vm.dirty_ratio",
    "vm.dirty_background_bytes": "the kernel does not accept its old value 0; give vm.dirty_background_ratio",
    "vm.drop_caches": "it is an action, not a setting",
    "vm.compact_memory": "it is an action, not a setting",
    "vm.nr_hugepages": "give hugepages_2m or hugepages_1g",
    "vm.nr_hugepages_mempolicy": "give hugepages_2m or hugepages_1g",
    "kernel.modules_disabled": "it cannot be restored",
    "kernel.kexec_load_disabled": "it cannot be restored",
    **dict.fromkeys(
        ("kernel.sem", *(f"kernel.msg{each}" for each in ("max", "mnb", "mni"))),
        "each pod has its own, in its IPC namespace",
    ),
    **dict.fromkeys(
        ("kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced"),
        "each pod has its own, in its IPC namespace",
    ),
    "kernel.hostname": "it is the node's name",
    "kernel.domainname": "it is the node's name",
}
# Beyond it, a tuned thread would have precedence over the kernel's own interrupt threads (50).
_FIFO_PRIORITY_MAX = 40


class Mode(StrEnum):
    """What a tuner does."""

    OFF = "off"
    DRY_RUN = "dry-run"
    APPLY = "apply"
    REVERT = "revert"


def _cpus(text: str) -> str:
    return list_of(cpus_of_list(text))


def _listening(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 <= int(port) <= 65_535):
        raise ValueError("expected host:port")
    return text


def _sysctls(wanted: dict[str, str]) -> dict[str, str]:
    faults = [
        f"{name} is not a sysctl of vm, net or kernel" for name in wanted if not _SYSCTL.fullmatch(name)
    ]
    faults += [f"{name}: {_NO_SYSCTL[name]}" for name in wanted if name in _NO_SYSCTL]
    if faults:
        raise ValueError("; ".join(faults))
    return {name: " ".join(value.split()) for name, value in wanted.items()}


class TunerSettings(BaseSettings):
    """The settings of a tuner. A setting that is not given leaves its files alone."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        coerce_numbers_to_str=True,  # {"vm.swappiness": 1} is as good as "1"
    )

    mode: Mode = Field(
        default=Mode.DRY_RUN,
        description="off: reads and writes nothing. dry-run: reports what it would do. apply: sets values, keeps them,"
        " and restores the old ones at the end. revert: restores the old values from the journal.",
    )
    root: Path = Field(default=Path("/"), description="Folder that contains the node's sys, proc and dev.")
    journal: Path = Field(
        default=Path("/var/lib/bettong-node-tuner"),
        description="Folder of the journal of old values. It must outlive the process.",
    )
    node: str = Field(
        default="", description="The Kubernetes node's name; without it, no annotation and no taint."
    )
    interval_s: Annotated[int, Ge(1), Le(3600)] = Field(
        default=30, description="How often files are checked again, in seconds."
    )
    metrics_listen: Annotated[str, AfterValidator(_listening)] = Field(
        default="127.0.0.1:7400", description="Address of metrics for Prometheus, host:port."
    )
    beside_others: bool = Field(
        default=False, description="Write even if TuneD or irqbalance runs, which write the same files."
    )
    housekeeping_cpus: Annotated[str, AfterValidator(_cpus)] = Field(
        default="",
        description="CPUs for the system's own work, 0-1,8: for irq_affinity, rps and workqueues. Use those that the"
        " kubelet reserves (reservedSystemCPUs).",
        json_schema_extra={"pattern": f"^({_CPUS}(,{_CPUS})*)?$"},
    )

    cpu_governor: Annotated[str, Field(pattern="^[a-z]+$")] | None = Field(
        default=None, description="CPU frequency governor of all CPUs: performance."
    )
    cpu_latency_us: Annotated[int, Ge(0), Le(10_000)] | None = Field(
        default=None,
        description="Longest time to wake from an idle state, in microseconds: deeper C-states are not entered while"
        " the tuner runs. 0 keeps all CPUs from idling.",
    )
    turbo: bool | None = Field(default=None, description="Whether CPUs may exceed their nominal frequency.")
    thp: Annotated[str, Field(pattern="^(always|madvise|never)$")] | None = Field(
        default=None, description="Transparent huge pages: always, madvise or never."
    )
    thp_defrag: Annotated[str, Field(pattern="^(always|defer|defer[+]madvise|madvise|never)$")] | None = (
        Field(
            default=None,
            description="When memory is compacted for transparent huge pages: always, defer,"
            " defer+madvise, madvise or never.",
        )
    )
    swap_off: bool = Field(default=False, description="Stop swapping: every swap area is switched off.")
    hugepages_2m: Annotated[int, Ge(0), Le(1_000_000)] | None = Field(
        default=None, description="Pages of 2 MiB set aside for programs that ask for them."
    )
    hugepages_1g: Annotated[int, Ge(0), Le(4096)] | None = Field(
        default=None, description="Pages of 1 GiB set aside for programs that ask for them."
    )
    irq_affinity: bool = Field(default=False, description="Interrupts go to housekeeping_cpus.")
    rps: bool = Field(
        default=False, description="The receive work of network devices goes to housekeeping_cpus."
    )
    workqueues: bool = Field(
        default=False, description="The kernel's unbound workqueues go to housekeeping_cpus."
    )
    sysctls: Annotated[dict[str, str], AfterValidator(_sysctls)] = Field(
        default={},
        description='Sysctls of vm, net and kernel with their values, as JSON: {"vm.swappiness": "1"}.',
        json_schema_extra={
            "propertyNames": {"pattern": f"^{_SYSCTL.pattern}$", "not": {"enum": [*sorted(_NO_SYSCTL)]}}
        },
    )
    fifo_priority: Annotated[int, Ge(1), Le(_FIFO_PRIORITY_MAX)] | None = Field(
        default=None, description="SCHED_FIFO with this priority for the threads that fifo_threads names."
    )
    fifo_threads: list[Annotated[str, Field(pattern=r"^[^/]*[^/*?][^/]*$", max_length=64)]] = Field(
        default=[],
        description='Names of threads in pods, with * and ?, as JSON: ["bettong-*"]. Needs fifo_priority.',
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults = [
            f"{PREFIX}{name.upper()} needs {PREFIX}HOUSEKEEPING_CPUS"
            for name in ("irq_affinity", "rps", "workqueues")
            if getattr(self, name) and not self.housekeeping_cpus
        ]
        if (self.fifo_priority is None) is not (not self.fifo_threads):
            faults.append(f"{PREFIX}FIFO_PRIORITY and {PREFIX}FIFO_THREADS: give both, or none")
        if faults:
            raise ValueError("; ".join(faults))
        return self


def read(overrides: Mapping[str, Any]) -> TunerSettings:
    """The settings from the environment; `overrides` (flags) take precedence. Raises SettingsError with every fault."""
    try:
        return TunerSettings(**{key: value for key, value in overrides.items() if value is not None})
    except ValidationError as error:
        faults = []
        for each in error.errors():
            text = each["msg"].removeprefix("Value error, ")
            name = f"{PREFIX}{str(each['loc'][0]).upper()}: " if each["loc"] else ""
            faults.append(f"{name}{text}")
    except UnreadableError as error:
        # Its text names the field; the variable's text is not JSON.
        faults = [f"{error}: expected JSON"]
    raise SettingsError(f"{len(faults)} setting(s) wrong: {'; '.join(faults)}")
