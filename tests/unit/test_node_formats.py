"""The kernel's formats: every value has one text, and each text is one that the kernel takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong_node_tuner.formats import (
    Form,
    canonical,
    cpus_of_list,
    cpus_of_mask,
    list_of,
    mask_of,
)


@pytest.mark.parametrize(
    ("form", "text", "wanted"),
    [
        (Form.WORDS, "4096\t131072\t6291456\n", "4096 131072 6291456"),
        (Form.CHOICE, "always [madvise] never\n", "madvise"),
        (Form.CHOICE, "madvise", "madvise"),
        (Form.LIST, "0,1,2,8\n", "0-2,8"),
        (Form.LIST, "", ""),
        (Form.MASK, "00000000,00000003\n", "3"),
        (Form.MASK, "1,00000000", "1,00000000"),
        (Form.MASK, "no mask", "no mask"),
        (Form.COUNT, " 12\n", "12"),
    ],
)
def test_a_value_has_one_text(form: Form, text: str, wanted: str) -> None:
    assert canonical(form, text) == wanted
    assert canonical(form, wanted) == wanted


@given(st.frozensets(st.integers(0, 8191), max_size=40))
def test_lists_and_masks_name_the_same_cpus(cpus: frozenset[int]) -> None:
    assert cpus_of_list(list_of(cpus)) == cpus
    assert cpus_of_mask(mask_of(cpus)) == cpus
    assert all(len(chunk) == 8 for chunk in mask_of(cpus).split(",")[1:])


@pytest.mark.parametrize("text", ["a", "3-1", "1-", "-1", "0-8192", "1 2"])
def test_what_is_no_list_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="CPUs"):
        cpus_of_list(text)
