"""Cron schedules with a time zone: validation, and the ticks around a given time.

Pure; the time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from hudi_operator.api.fields import text

CRON_FIELDS = 5


@dataclass(frozen=True)
class Schedule:
    """Five cron fields in a time zone of the IANA database.

    The fields are minute, hour, day of month, month and day of week.
    """

    cron: str = text(required=True, at_least=9, at_most=128)
    time_zone: str = text("Etc/UTC", at_least=1, at_most=64, matches="^[A-Za-z][A-Za-z0-9_+/-]*$")

    def problem(self, field: str) -> str:
        """Why the schedule cannot be used (field, value, rule); empty when it can."""
        try:
            zone = ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return f"{field}.timeZone {self.time_zone!r}: not a time zone of the IANA database"
        if len(self.cron.split()) != CRON_FIELDS:
            return f"{field}.cron {self.cron!r}: must have five fields: minute, hour, day of month, month, day of week"
        try:
            next(CronSim(self.cron, datetime(2000, 1, 1, tzinfo=zone)))
        except CronSimError as error:
            return f"{field}.cron {self.cron!r}: {str(error).lower()}"
        except StopIteration:
            return f"{field}.cron {self.cron!r}: no such date"
        return ""

    def previous(self, now_ms: int) -> datetime:
        """The newest tick before the moment (Unix milliseconds), in UTC.

        Raises CronSimError for a schedule with a problem.
        """
        return self._tick(now_ms, reverse=True)

    def next(self, now_ms: int) -> datetime:
        """The first tick after the moment, in UTC."""
        return self._tick(now_ms, reverse=False)

    def _tick(self, now_ms: int, *, reverse: bool) -> datetime:
        now = datetime.fromtimestamp(now_ms / 1000, tz=ZoneInfo(self.time_zone))
        return next(CronSim(self.cron, now, reverse=reverse)).astimezone(UTC)
