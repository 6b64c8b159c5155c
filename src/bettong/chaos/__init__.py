"""Faults as data: an application runs on this machine while parts of it are killed, stopped and disconnected, and its
output must equal that of an undisturbed run.

    spec       the configuration of a run: workload, invariants, nemeses, a seed; read from TOML
    timetable  spec -> every fault with its time: pure, so that a run can be repeated
    feeding    the inputs, in frames, at their pace
    watching   a subscriber of each sink: what arrived, and when
    victims    the processes behind a name
    nemeses    carries out faults and ends them
    proxy      a TCP proxy that cuts and delays
    disk       a small file system that can be filled
    clock      a process's clock that can be set wrong
    crowds     clients that behave badly, and very many
    memory     the memory of the processes
    outputs    compares golden and found output: pure
    recovery   how long until newer results arrived: pure
    report     the report of a run
    run        the whole run

It uses `bettong.local` and clients as any user could, and knows no internals of services.
"""
