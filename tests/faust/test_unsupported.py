"""Names of Faust that Potok does not have."""

from __future__ import annotations

import pytest

from potok.faust import Service
from potok.faust.unsupported import Refused


class Waiting:
    """A class that defines two names which a service does not have."""

    state = "idle"

    def wait(self) -> str:
        return "waited"


class Worker(Service, Waiting):
    """A service with such a mixin."""


def test_an_unsupported_name_raises_on_the_class_as_on_its_instances() -> None:
    for holder in (Service, Service()):
        with pytest.raises(Refused, match=r"Faust's Service\.supervisor is not supported"):
            _ = holder.supervisor  # type: ignore[attr-defined]


def test_a_mixin_may_define_an_unsupported_name() -> None:
    assert (Worker().wait(), Worker.state) == ("waited", "idle")


def test_an_instance_may_define_an_unsupported_name() -> None:
    service = Service()
    service.loop = "mine"  # type: ignore[attr-defined]
    assert service.loop == "mine"  # type: ignore[attr-defined]


def test_a_name_that_faust_does_not_have_either_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'") as caught:
        _ = Service().no_such_name  # type: ignore[attr-defined]
    assert not isinstance(caught.value, Refused)
