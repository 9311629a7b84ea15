"""Overload policies, and the options that they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from potok.errors import PotokError, TopologyError
from potok.sources import Overload, TcpLines, Udp


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"when_full": "panic"}, "there is no when_full 'panic'"),
        ({"max_records": 0}, "max_records = 0 is not a positive whole number"),
        ({"max_bytes": True}, "max_bytes = True is not a positive whole number"),
        ({"max_age": "0 s"}, "max_age must be longer than 0"),
        ({"max_age": "soon"}, '"soon" is not a duration'),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PotokError, match=message):
        Overload(**options)


@pytest.mark.parametrize("policy", ["block", "reject"])
def test_udp_refuses_policies_that_need_an_answer(policy: Any) -> None:
    spec = Udp(name="m", topic="t", listen="127.0.0.1:0", overload=Overload(when_full=policy))
    with pytest.raises(TopologyError, match="UDP has no flow control") as caught:
        spec.check()
    assert "drop_newest or drop_oldest" in caught.value.hint


def test_lines_cannot_be_rejected() -> None:
    spec = TcpLines(name="m", topic="t", listen="127.0.0.1:0", overload=Overload(when_full="reject"))
    with pytest.raises(TopologyError, match="a line cannot be rejected"):
        spec.check()
