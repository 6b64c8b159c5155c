"""Descriptors above 1,023, as a process has that serves many connections: `select.select` takes none of them."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_SELECT_DESCRIPTORS = 1024


@contextmanager
def low_descriptors_taken() -> Iterator[None]:
    """Takes all descriptors that `select.select` accepts, so that what is opened meanwhile has a higher one."""
    bounds = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * _SELECT_DESCRIPTORS
    if bounds[1] != resource.RLIM_INFINITY and bounds[1] < needed:
        pytest.skip(f"`ulimit -Hn` is {bounds[1]}, {needed} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(bounds[0], needed), bounds[1]))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while taken[-1] < _SELECT_DESCRIPTORS - 1:
            taken.append(os.dup(taken[0]))
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, bounds)
