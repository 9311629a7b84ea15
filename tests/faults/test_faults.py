"""The matrix of faults: a few rows with every run of the tests, and all of them where they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from zlib import crc32

import pytest

import tests.faults.rows  # noqa: F401 - fills the matrix
from tests.faults.row import ROWS, VERDICT, NotHere
from tests.faults.scene import Scene
from tests.faults.servers import Servers

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(900)]

SHORT = (
    "worker-killed",
    "poison",
    "http-errors",
    "disk-full-log",
    "power-loss",
)
"""Those that take few processes, and are not shown elsewhere in the tests."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHORT else pytest.mark.faults) for name in ROWS]
)
def test_a_row_of_the_matrix_ends_with_the_right_answer(name: str, servers: Servers) -> None:
    scene = Scene(crc32(name.encode()), servers)
    try:
        proof = ROWS[name].play(scene)
    except NotHere as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    finally:
        scene.close()
    assert str(proof).endswith(VERDICT)
