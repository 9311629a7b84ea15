"""What belongs to libraries, and what to the program of the user."""

from __future__ import annotations

import sys
import sysconfig
from types import ModuleType
from typing import Any

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def of_library(named: Any) -> bool:
    name = named.__name__ if isinstance(named, ModuleType) else getattr(named, "__module__", None) or ""
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names or package == __name__.partition(".")[0]:
        return package != "__main__"
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and file.startswith(_LIBRARIES)
