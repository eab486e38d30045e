"""Cron schedules with a time zone: validation, and the ticks around a given time.

Pure; the time is an argument. Without cronsim, which `kubectl hudi` does not have, no tick is
known, and of a cron expression only numbers are judged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hudi_operator.api.fields import text

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7))
"""Each with its least and its greatest number."""
CRON_FIELDS = len(_FIELDS)
_NUMBERS = re.compile(r"(\*|\d{1,4}(-\d{1,4})?)(/\d{1,4})?", re.ASCII)
"""An item of a field that has numbers alone."""
TELLS_TICKS = find_spec("cronsim") is not None
ANY_ZONE = "Etc/UTC"


@dataclass(frozen=True)
class Schedule:
    """Five cron fields in a time zone of the IANA database.

    The fields are minute, hour, day of month, month and day of week.
    """

    cron: str = text(required=True, at_least=9, at_most=128)
    time_zone: str = text(ANY_ZONE, at_least=1, at_most=64, matches="^[A-Za-z][A-Za-z0-9_+/-]*$")

    def problem(self, field: str) -> str:
        """Why the schedule cannot be used (field, value, rule); empty when it can."""
        zone = _zone(self.time_zone)
        if zone is None and _zone(ANY_ZONE) is not None:
            return f"{field}.timeZone {self.time_zone!r}: not a time zone of the IANA database"
        if len(self.cron.split()) != CRON_FIELDS:
            return f"{field}.cron {self.cron!r}: must have five fields: minute, hour, day of month, month, day of week"
        found = _unusable(self.cron, zone) if zone is not None and TELLS_TICKS else wrong_number(self.cron)
        return f"{field}.cron {self.cron!r}: {found}" if found else ""

    def previous(self, now_ms: int) -> datetime:
        """The newest tick before the moment (Unix milliseconds), in UTC.

        Raises CronSimError for a schedule with a problem.
        """
        return self._tick(now_ms, reverse=True)

    def next(self, now_ms: int) -> datetime:
        """The first tick after the moment, in UTC."""
        return self._tick(now_ms, reverse=False)

    def _tick(self, now_ms: int, *, reverse: bool) -> datetime:
        from cronsim import CronSim

        now = datetime.fromtimestamp(now_ms / 1000, tz=ZoneInfo(self.time_zone))
        return next(CronSim(self.cron, now, reverse=reverse)).astimezone(UTC)


def _zone(name: str) -> ZoneInfo | None:
    """A time zone; None: there is none of this name, or no database where this runs."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@lru_cache(maxsize=4096)
def _unusable(cron: str, zone: ZoneInfo) -> str:
    """Why a cron expression has no tick; empty when it has one.

    50 years are searched for it: once, and not at each look (F628).
    """
    from cronsim import CronSim, CronSimError

    try:
        next(CronSim(cron, datetime(2000, 1, 1, tzinfo=zone)))
    except CronSimError as error:
        return str(error).lower()
    except StopIteration:
        return "no such date"
    return ""


def wrong_number(cron: str) -> str:
    """The first number in a cron expression that its field cannot have; empty: none.

    Items with letters or signs are not judged, and neither is whether there is such a date.
    """
    for (name, least, most), said in zip(_FIELDS, cron.split(), strict=True):
        for item in filter(_NUMBERS.fullmatch, said.split(",")):
            numbers = [int(one) for one in re.findall(r"\d+", item.partition("/")[0])]
            if any(not least <= one <= most for one in numbers) or any(a > b for a, b in pairwise(numbers)):
                return f"bad {name}: {item} is not within {least}-{most}"
    return ""
