"""Every function, by cases in a data file for each family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sql.cases import cases_in, run_case

FILES = sorted((Path(__file__).parent / "cases").glob("*.toml"))


@pytest.mark.parametrize("case", cases_in(*FILES))
def test_a_function_returns_what_its_case_says(case: dict[str, Any]) -> None:
    run_case(case)
