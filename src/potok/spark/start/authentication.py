"""Authentication between driver and executors: a process that could join them could run code in both.

Spark generates a secret itself in local mode, on YARN and on Kubernetes. A standalone cluster has the secret that its
master and workers were started with, which has to be passed to Potok.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from potok.errors import SetupError
from potok.redact import remember

if TYPE_CHECKING:
    from pyspark import SparkConf

VARIABLE = "POTOK_SPARK_SECRET"

_ON, _SECRET = "spark.authenticate", "spark.authenticate.secret"

_MAKES_ITS_OWN = re.compile(r"local|local\[.*\]|yarn|k8s://.*")
_IN_THIS_PROCESS = re.compile(r"local-cluster\[.*\]")


class NoSparkSecret(SetupError):
    """A standalone cluster whose secret is not set."""

    def __init__(self, master: str) -> None:
        super().__init__(
            f'the Spark at "{master}" needs a secret, so that no other process can join as an executor',
            hint=f"start its master and workers with spark.authenticate=true and a {_SECRET}, and put the same one "
            f'into {VARIABLE}; or, in a network that you trust, write authenticate = "false" in [spark] of potok.toml',
        )


def authentication(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the options to add to `given`. A secret must not be on a command line, which all users can read."""
    if given.get(_ON, "true").lower() != "true":
        return {}
    if _MAKES_ITS_OWN.fullmatch(master):
        return {_ON: "true"}
    secret = given.get(_SECRET) or os.environ.get(VARIABLE, "")
    if not secret and _IN_THIS_PROCESS.fullmatch(master):
        secret = secrets.token_hex(32)
    if not secret:
        raise NoSparkSecret(master)
    remember(secret)
    return {_ON: "true", _SECRET: secret}


def as_submitted(master: str, conf: SparkConf) -> dict[str, str]:
    """Return the options of `spark-submit`. A cluster that was started without a secret cannot be given one here."""
    submitted = {name: value for name in (_ON, _SECRET) if (value := conf.get(name)) is not None}
    return submitted if _ON in submitted or _MAKES_ITS_OWN.fullmatch(master) else {_ON: "false", **submitted}
