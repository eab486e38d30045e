"""A program that runs its arguments as statements on its table `t`; without any it deletes records
by key, in each way that it has.

Records 2 and 3 with `DELETE FROM`, 4 with a save whose rows know nothing but the keys' columns.
"""

from __future__ import annotations

import sys

from hudi_runtime.api import current_context

current = current_context()
spark = current.spark
path = current.table_path

spark.sql(f"CREATE TABLE t USING hudi LOCATION '{path}'")


def delete() -> None:
    spark.sql("DELETE FROM t WHERE p = 'a' AND (id = 2 OR v = 'third')")
    gone = spark.createDataFrame([(4, "a")], "id int, p string")
    options = {**current.table_options(), "hoodie.datasource.write.operation": "delete"}
    gone.write.format("hudi").options(**options).mode("append").save(path)


for statement in sys.argv[1:]:
    spark.sql(statement)
if not sys.argv[1:]:
    delete()
