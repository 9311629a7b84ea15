from __future__ import annotations

import pytest

from potok.sinks.guarantee import Guarantee, UnknownGuarantee


@pytest.mark.parametrize("given", ["at_least_once", "at-least-once", Guarantee.AT_LEAST_ONCE])
def test_a_guarantee_is_found_by_its_name(given: str) -> None:
    assert Guarantee.of(given) is Guarantee.AT_LEAST_ONCE


@pytest.mark.parametrize("given", ["twice", "", None])
def test_one_that_does_not_exist_names_those_that_do(given: str) -> None:
    with pytest.raises(UnknownGuarantee, match="at_most_once"):
        Guarantee.of(given)


def test_only_the_default_is_omitted() -> None:
    assert [guarantee.note for guarantee in Guarantee] == ["at_most_once", "at_least_once", ""]
    assert [guarantee.before_commit for guarantee in Guarantee] == [False, True, True]
