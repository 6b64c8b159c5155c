"""What is wanted of a node: environment variables `BETTONG_NODE_TUNER_<NAME>`, read and checked once at start.

A setting stands here and nowhere else: docs/settings.md and the schema of the chart's values are rendered from here
(`json_schema_extra`: what the schema says of a value that is checked by code here). What two settings ask of each
other, `tuning.checks` of the chart repeats.
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
# Not settings but acts, or set by another setting here, or such that the old value cannot be written back.
_NO_SYSCTL = {
    "vm.dirty_bytes": "the kernel does not take its old value 0 back; give vm.dirty_ratio",
    "vm.dirty_background_bytes": "the kernel does not take its old value 0 back; give vm.dirty_background_ratio",
    "vm.drop_caches": "it is an act, not a setting",
    "vm.compact_memory": "it is an act, not a setting",
    "vm.nr_hugepages": "give hugepages_2m or hugepages_1g",
    "vm.nr_hugepages_mempolicy": "give hugepages_2m or hugepages_1g",
    "kernel.modules_disabled": "it cannot be set back",
    "kernel.kexec_load_disabled": "it cannot be set back",
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
# Beyond it, a tuned thread would stand above the kernel's own threads that serve interrupts (50).
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
    faults = [f"{name} is no sysctl of vm, net or kernel" for name in wanted if not _SYSCTL.fullmatch(name)]
    faults += [f"{name}: {_NO_SYSCTL[name]}" for name in wanted if name in _NO_SYSCTL]
    if faults:
        raise ValueError("; ".join(faults))
    return {name: " ".join(value.split()) for name, value in wanted.items()}


class TunerSettings(BaseSettings):
    """The settings of a tuner. A toggle that is not given leaves its files alone."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        coerce_numbers_to_str=True,  # {"vm.swappiness": 1} is as good as "1"
    )

    mode: Mode = Field(
        default=Mode.DRY_RUN,
        description="off: writes nothing and looks at nothing. dry-run: reports what it would do. apply: sets, keeps"
        " and sets back at the end. revert: sets back what the journal holds.",
    )
    root: Path = Field(default=Path("/"), description="Folder under which the node's sys, proc and dev lie.")
    journal: Path = Field(
        default=Path("/var/lib/bettong-node-tuner"),
        description="Folder of the journal of old values. It must outlive the process.",
    )
    node: str = Field(
        default="", description="The Kubernetes node's name; without it, no annotation and no taint."
    )
    interval_s: Annotated[int, Ge(1), Le(3600)] = Field(
        default=30, description="How often files are looked at again, in seconds."
    )
    metrics_listen: Annotated[str, AfterValidator(_listening)] = Field(
        default="127.0.0.1:7400", description="Where metrics for Prometheus are served, host:port."
    )
    beside_others: bool = Field(
        default=False, description="Write even where TuneD or irqbalance runs, which write the same files."
    )
    housekeeping_cpus: Annotated[str, AfterValidator(_cpus)] = Field(
        default="",
        description="CPUs for the system's own work, 0-1,8: for irq_affinity, rps and workqueues. Those that the"
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
    """The settings from the environment, `overrides` (flags) first. Raises SettingsError that lists every fault."""
    try:
        return TunerSettings(**{key: value for key, value in overrides.items() if value is not None})
    except ValidationError as error:
        faults = []
        for each in error.errors():
            text = each["msg"].removeprefix("Value error, ")
            name = f"{PREFIX}{str(each['loc'][0]).upper()}: " if each["loc"] else ""
            faults.append(f"{name}{text}")
    except UnreadableError as error:
        # Its text names the field, and the variable's text is no JSON.
        faults = [f"{error}: expected JSON"]
    raise SettingsError(f"{len(faults)} setting(s) wrong: {'; '.join(faults)}")
