"""An application that tries to write past the lock, by option and by SET. One JSON line per way: what came of it."""

from __future__ import annotations

import json
import os
import sys

from hudi_runtime import context
from hudi_runtime.errors import classify_causes, describe_causes, java_causes

IN_PROCESS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
PREFER = "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy"
WAYS = {
    "provider": {"hoodie.write.lock.provider": IN_PROCESS},
    "mode": {"hoodie.write.concurrency.mode": "SINGLE_WRITER"},
    "eager": {"hoodie.clean.failed.writes.policy": "EAGER"},
    "bare": {"hoodie.write.concurrency.mode": "SINGLE_WRITER", "hoodie.clean.failed.writes.policy": "EAGER", "hoodie.write.lock.provider": IN_PROCESS},
    "strategy": {
        "hoodie.write.lock.conflict.resolution.strategy": PREFER,
        "hoodie.write.lock.provider": IN_PROCESS,
        "hoodie.client.init.callback.classes": "",
    },
}


def outcome(action):
    try:
        action()
    except Exception as error:
        causes = java_causes(error)
        return {"failed": True, "class": classify_causes(causes).value, "message": describe_causes(causes)[:300] if causes else str(error)[:300]}
    return {"failed": False}


def main(results: str) -> None:
    current = context.current()
    spark = current.spark
    frame = spark.createDataFrame([(100, "c", "hostile", 99)], "id int, p string, v string, ts long")
    spark.sql(f"CREATE TABLE hostile USING hudi LOCATION '{current.table_path}'")

    def by_option(settings):
        options = {**current.table_options(), "hoodie.datasource.write.operation": "upsert", **settings}
        frame.write.format("hudi").options(**options).mode("append").save(current.table_path)

    def by_set(settings):
        for key, value in settings.items():
            if value:
                spark.sql(f"SET {key}={value}")
        spark.sql("UPDATE hostile SET v = 'hostile' WHERE id = 1")

    def instants():
        return {name.split(".")[0].split("_")[0] for name in os.listdir(f"{current.table_path.removeprefix('file://')}/.hoodie/timeline")}

    found = {}
    for way, by in [(way, by_option) for way in WAYS] + [("bare", by_set), ("strategy", by_set)]:
        name = f"{way} by {'option' if by is by_option else 'SET'}"
        found[name] = outcome(lambda by=by, way=way: by(WAYS[way])) | {"timeline": sorted(instants())}
        print(f"HOSTILE {name}: {json.dumps(found[name])}", flush=True)
        for key in WAYS[way]:
            spark.conf.unset(key)
    with open(results, "w", encoding="utf-8") as file:
        json.dump(found, file)


main(sys.argv[1])
