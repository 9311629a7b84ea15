"""Driver and executors prove to each other who they are: whoever could join them could run code in both.

Spark itself makes a secret for one process, for YARN and for Kubernetes. A cluster of Spark's own has one that its
master and workers were started with, and Potok has to be told it.
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
    """A cluster whose secret nobody has said."""

    def __init__(self, master: str) -> None:
        super().__init__(
            f'the Spark at "{master}" needs a secret, so that nobody else can join as an executor',
            hint=f"start its master and workers with spark.authenticate=true and a {_SECRET}, and put the same one "
            f'into {VARIABLE}; or, in a network that you trust, write authenticate = "false" in [spark] of potok.toml',
        )


def authentication(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """What Spark is told, beside what is `given`. A secret must not stand on a command line: all users can read it."""
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
    """What `spark-submit` was told about it. A cluster that was started without a secret cannot be given one here."""
    told = {name: value for name in (_ON, _SECRET) if (value := conf.get(name)) is not None}
    return told if _ON in told or _MAKES_ITS_OWN.fullmatch(master) else {_ON: "false", **told}
