"""Settings. Arguments override `POTOK_*` variables, which override `potok.toml`, which overrides the defaults."""

from __future__ import annotations

import difflib
import logging
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from potok.duration import show_ms, to_ms
from potok.errors import PotokError, SetupError
from potok.machine import usable_path
from potok.redact import MASK, is_secret, redact_url

FILE_NAME = "potok.toml"
PREFIX = "POTOK_"
_TABLES = {"kafka": "POTOK_KAFKA_", "schema_registry": "POTOK_SCHEMA_REGISTRY_"}
"""Settings that are tables of options, which the environment sets one by one."""
_KUBERNETES = re.compile(
    r"POTOK_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)
"""What Kubernetes sets in every container for services called potok or potok-kafka."""

_logger = logging.getLogger(__name__)
_warned_of: set[str] = set()


class SettingError(SetupError):
    """A setting that does not exist, or an invalid value for one."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """One field for each setting; durations are whole milliseconds.

    In `potok.toml` and in the environment a duration may be text: `idle_after = "30 seconds"` sets `idle_after_ms`.
    """

    broker: str = "file:./data"
    """Location of the log: a URL or a directory."""

    state: str = ""
    """Location of the state of a new query: a directory, `redis://...`, `postgresql://...`, `cassandra://...`,
    `s3://...`, `gs://...`, `az://...` or `object+file:///...`; empty for the log's."""

    shards: int = 0
    """Number of shards of a new query; 0 for the number of cores. Recorded when the query is created."""

    master: str = "local[*,4]"
    """The Spark master. With plain `local[*]`, Spark does not retry failed tasks."""

    driver_memory: str = "2g"
    """The heap of Spark's driver, in the syntax of `-Xmx`."""

    target_batch_ms: int = 1_000
    """How long a batch should take under a backlog; the batch size adapts to it."""

    max_batch_records: int = 1_000_000
    """Largest number of records in a batch."""

    max_batch_bytes: int = 256 << 20
    """Largest number of bytes in a batch, unless a single record is larger: keys, values and headers as stored in
    the log. In memory they may take several times as much."""

    idle_after_ms: int = 30_000
    """A partition without new records for this long no longer holds back the watermark."""

    connect_timeout_ms: int = 2_000
    """How long to wait for the first response of a Kafka broker; one that has responded is retried for `retry_for`."""

    retry_for_ms: int = 300_000
    """How long a running query waits for Kafka, the state server or a sink that became unavailable before it stops;
    0 for no limit."""

    ready_lag_ms: int = 300_000
    """`/readyz` reports a query whose oldest unread record is older than this; 0 for any age."""

    stop_timeout_ms: int = 25_000
    """How long Ctrl-C or SIGTERM waits for the end of the batch; 0 for no limit. Kubernetes kills after 30 seconds."""

    stuck_after_ms: int = 600_000
    """`/livez` reports a batch loop that has not moved for this long."""

    on_lost: str = "stop"
    """What to do when records were deleted before the query read them: `stop`, `jump` over them, or read the
    `archive`."""

    reader: str = "client"
    """How Kafka is read: by the `client` in the Python workers, or by Spark's `connector` in the JVM, which supports
    login methods that only Java has."""

    spark_ui: bool = False
    """Serve Spark's web UI."""

    log_level: str = ""
    """What Potok and Spark log on the terminal, in the driver and in the workers: DEBUG, INFO, WARN, ERROR or OFF.
    Empty: warnings of Potok, errors of Spark."""

    log_format: str = ""
    """How logs are written: `json` for one object per line on stderr, with query, batch, epoch and step; empty for
    text."""

    tracing: str = ""
    """Export traces of batches over OTLP/HTTP to this address, such as `http://localhost:4318`; empty for none."""

    personal_keys: str = ""
    """Location of the keys of personal data: a directory separate from the log and from backups. Required by programs
    with personal fields."""

    cache_dir: str = ""
    """Directory for files that can be recreated, such as copies of state in object storage; empty for the user's cache
    directory."""

    spark: Mapping[str, str] = field(default_factory=dict)
    """Any other Spark setting: the `[spark]` table of `potok.toml`."""

    kafka: Mapping[str, str] = field(default_factory=dict)
    """Options of Kafka's client: the `[kafka]` table of `potok.toml`, and `POTOK_KAFKA_SECURITY_PROTOCOL` for
    `security.protocol`."""

    schema_registry: Mapping[str, str] = field(default_factory=dict)
    """The schema registry and its client: the `[schema_registry]` table of `potok.toml`, with `url` and the options of
    Confluent's clients, and `POTOK_SCHEMA_REGISTRY_URL` for `url`."""

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={text!r}' for name, text in self.printable().items())})"

    def printable(self) -> dict[str, str]:
        """Return all settings as text, by name, without secrets."""
        found: dict[str, str] = {}
        for known in fields(self):
            value = getattr(self, known.name)
            if isinstance(value, Mapping):
                found |= {f"{known.name}.{name}": _shown(name, text) for name, text in value.items()}
            else:
                found[known.name] = redact_url(value) if known.name in _URLS else str(value)
        return found

    @classmethod
    def load(
        cls,
        *,
        directory: str | Path = ".",
        environ: Mapping[str, str] | None = None,
        **explicit: object,
    ) -> Settings:
        """Return the settings in force in `directory`. An explicit argument of None counts as not given."""
        return cls.with_origins(directory=directory, environ=environ, **explicit)[0]

    @classmethod
    def with_origins(
        cls,
        *,
        directory: str | Path = ".",
        environ: Mapping[str, str] | None = None,
        **explicit: object,
    ) -> tuple[Settings, dict[str, str]]:
        """Return the settings in force, and the origin of each that is not at its default, by the names of `printable`.

        An unknown variable of the environment is logged and ignored: other programs may have set it.
        """
        environ = os.environ if environ is None else environ
        given = {name: value for name, value in explicit.items() if value is not None}
        path = settings_file(directory)
        file = {} if path is None else _from_file(path)
        is_here = path is None or path.parent == Path(directory)
        if path is not None and not is_here:
            file = _anchored(file, path.parent)
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for found, where, prefix in (
            (file, FILE_NAME if is_here else str(path), ""),
            (_from_environment(environ), "the environment", PREFIX),
            (given, "the arguments", ""),
        ):
            checked = _checked(found, where, prefix)
            # Each option of these clients has its own precedence.
            values |= checked | {name: {**values.get(name, {}), **checked.get(name, {})} for name in _TABLES}
            if "spark" in checked:
                origins = {name: origin for name, origin in origins.items() if not name.startswith("spark.")}
            for name, value in checked.items():
                names = [f"{name}.{key}" for key in value] if isinstance(value, Mapping) else [name]
                origins |= dict.fromkeys(names, where)
        return cls(**values), origins

    @property
    def cache_path(self) -> Path:
        if self.cache_dir:
            return usable_path(self.cache_dir, "cache_dir")
        return Path(os.environ.get("XDG_CACHE_HOME") or usable_path("~", "the home directory") / ".cache") / "potok"


_TYPES: dict[str, str] = {f.name: str(f.type) for f in fields(Settings)}
_OTHER_VARIABLES = (
    "POTOK_FAILPOINT",
    "POTOK_FAILPOINT_SIGNAL",
    "POTOK_EXAMPLES",
    "POTOK_SEED",
    "POTOK_SPARK_SECRET",
    "POTOK_STATE_PASSWORD",
    "POTOK_TOKEN",
    "POTOK_TOKENS",
    "POTOK_WORKER_LOG",
)
"""Variables with the prefix of settings that belong to the tests or cannot be set in a file."""

_CHOICES = {
    "on_lost": ("stop", "jump", "archive"),
    "reader": ("client", "connector"),
    "log_format": ("", "text", "json"),
    "log_level": ("", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "OFF"),
}

_URLS = ("broker", "state")
"""Settings that are URLs, which may contain a password."""

_FROM_ZERO = {"ready_lag_ms", "retry_for_ms", "stop_timeout_ms"}

_DURATIONS = {name.removesuffix("_ms"): name for name in _TYPES if name.endswith("_ms")}


def settings_file(directory: str | Path = ".") -> Path | None:
    """The `potok.toml` in force in a directory: its own, or that of the nearest parent.

    A parent's file is used only if it belongs to this user or to root: anybody may write to a directory such as /tmp.
    """
    own = Path(directory) / FILE_NAME
    if own.exists():
        return own
    for parent in Path(directory).absolute().parents:
        path = parent / FILE_NAME
        try:
            owner = path.stat().st_uid
        except OSError:
            continue
        if owner in (os.getuid(), 0):
            return path
        _warn_once(f"{path} is ignored: it belongs to another user")
    return None


def public_name(name: str, text: str) -> tuple[str, str]:
    """A setting of `Settings.printable` as a user writes it: `idle_after_ms` of 30000 is `idle_after` of "30s"."""
    if name not in _DURATIONS.values():
        return name, text
    return name.removesuffix("_ms"), show_ms(int(text)) if int(text) else "0"


def _shown(name: str, text: str) -> str:
    """Return an option of a table without its secrets."""
    if is_secret(name):
        return MASK
    return ",".join(redact_url(url) for url in text.split(",")) if name == "url" else text


def _anchored(values: dict[str, object], directory: Path) -> dict[str, object]:
    """The values of a file with relative paths read from the directory of that file."""
    anchored = dict(values)
    for name in (*_URLS, "personal_keys", "cache_dir"):
        value = values.get(name)
        if isinstance(value, str) and value and "://" not in value:
            scheme, path = ("file:", value.removeprefix("file:")) if value.startswith("file:") else ("", value)
            anchored[name] = scheme + os.path.normpath(directory / os.path.expanduser(path))
    return anchored


def _warn_once(message: str) -> None:
    if message not in _warned_of:
        _warned_of.add(message)
        _logger.warning(message)


def _from_file(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} is not valid TOML: {error}", hint="fix the line that it names") from error
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}", hint="check its owner and its disk") from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    tables: dict[str, dict[str, object]] = {}
    unknown = []
    for name, text in environ.items():
        setting = name.removeprefix(PREFIX).lower()
        if not name.startswith(PREFIX) or name in _OTHER_VARIABLES:
            continue
        if _KUBERNETES.fullmatch(name):
            unknown.append(name)
        elif (table := next((table for table, prefix in _TABLES.items() if name.startswith(prefix)), None)) is not None:
            tables.setdefault(table, {})[name.removeprefix(_TABLES[table]).lower().replace("_", ".")] = text
        elif _DURATIONS.get(setting, setting) in _TYPES:
            found[setting] = text
        else:
            near = difflib.get_close_matches(setting, [*_TYPES, *_DURATIONS], n=1)
            unknown.append(f"{name} (did you mean {PREFIX}{near[0].upper()}?)" if near else name)
    if unknown:
        _warn_once(f"environment variables that are not settings are ignored: {', '.join(sorted(unknown))}")
    return {**found, **tables}


def _checked(values: Mapping[str, object], where: str, prefix: str = "") -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for name, value in values.items():
        field_name = _DURATIONS.get(name, name)
        if field_name not in _TYPES:
            raise _unknown(name, where, prefix)
        try:
            checked[field_name] = _converted(field_name, name in _DURATIONS, value)
        except (ValueError, PotokError):
            # A table, or a value in place of one, may contain passwords.
            given = "this" if _TYPES[field_name].startswith("Mapping") else f'"{value}"'
            message = f'{given} cannot be the value of "{_display_name(name, prefix)}" ({where})'
            raise SettingError(message, hint=_wanted(name)) from None
    return checked


def _converted(field_name: str, is_duration: bool, value: object) -> object:
    kind = _TYPES[field_name]
    if field_name in _FROM_ZERO and str(value).strip() == "0":
        return 0
    if is_duration and isinstance(value, timedelta | str | int | float):
        return _positive(to_ms(value))
    if kind == "int":
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(value)
        return _positive(int(value))
    if kind == "bool":
        return _boolean(value)
    if kind == "str" and isinstance(value, str | Path):
        if field_name == "log_level":
            value = str(value).upper()
        if str(value) not in _CHOICES.get(field_name, (str(value),)):
            raise ValueError(value)
        return str(value)
    if kind.startswith("Mapping") and isinstance(value, Mapping):
        return dict(_flat(value, "spark." if field_name == "spark" else ""))
    raise ValueError(value)


def _positive(number: int) -> int:
    if number < 1:
        raise ValueError(number)
    return number


def _boolean(value: object) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    word = str(value).lower()
    if word not in words:
        raise ValueError(value)
    return words[word]


def _flat(table: Mapping[str, object], prefix: str = "spark.") -> list[tuple[str, str]]:
    """TOML reads `sql.ansi.enabled = true` as nested tables; Spark and Kafka expect the dotted name."""
    pairs: list[tuple[str, str]] = []
    for name, value in table.items():
        dotted = name if name.startswith("spark.") else prefix + name
        if isinstance(value, Mapping):
            pairs += _flat(value, "spark." if name == "spark" else dotted + ".")
        else:
            pairs.append((dotted, str(value).lower() if isinstance(value, bool) else str(value)))
    return pairs


def _wanted(name: str) -> str:
    if name in _DURATIONS:
        for_ever = ", or 0 forever" if _DURATIONS[name] in _FROM_ZERO else ""
        return f'write a duration such as "30 seconds"{for_ever}'
    if name in _CHOICES:
        return f"write one of: {', '.join(filter(None, _CHOICES[name]))}"
    words = {"int": "a whole number above zero", "bool": "true or false", "str": "text"}
    tables = {"spark": "a table of Spark settings", "kafka": "a table of options of Kafka's client"}
    return f"write {words.get(_TYPES[name]) or tables[name]}"


def _unknown(name: str, where: str, prefix: str) -> SettingError:
    near = difflib.get_close_matches(name, [*_TYPES, *_DURATIONS], n=1)
    if near:
        hint = f'did you mean "{_display_name(near[0], prefix)}"?'
    else:
        hint = "known settings: " + ", ".join(_display_name(known, prefix) for known in sorted(_TYPES))
    return SettingError(f'there is no setting "{_display_name(name, prefix)}" ({where})', hint=hint)


def _display_name(name: str, prefix: str) -> str:
    return prefix + name.upper() if prefix else name
