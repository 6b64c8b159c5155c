"""Faults as data: an application runs on this machine, parts of it are killed, stopped and cut off, and what comes out
must be what comes out of an undisturbed run.

    spec       what is asked for: workload, invariants, nemeses, a seed; read from TOML
    timetable  spec -> every fault with its time: pure, so that a run can be repeated
    feeding    the inputs, in frames, at their pace
    watching   a subscriber of each sink: what arrived, and when
    victims    the processes behind a name
    nemeses    faults, carried out and mended
    proxy      a TCP proxy that cuts and delays
    disk       a small file system that can be filled
    clock      a sender's clock
    crowds     clients that behave badly, and very many
    memory     what the processes hold
    outputs    golden and found output compared: pure
    recovery   how long until newer results arrived: pure
    report     what is reported in the end
    run        all of it together

It uses `bettong.local` and clients as anybody could, and knows no service from inside.
"""
