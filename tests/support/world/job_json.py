"""A job.json that several tests use."""

JOB = {
    "writer": {"namespace": "default", "name": "w", "uid": "u"},
    "attempt": {"id": "default.w-1", "number": 1},
    "run": 1,
    "table": {
        "id": "0" * 16, "table": "default/t", "name": "t", "path": "s3a://lake/t/", "type": "COPY_ON_WRITE",
        "recordKeyFields": ["id"], "partitionFields": ["p"], "orderingFields": ["ts"], "hiveStylePartitioning": True,
    },
    "operation": "upsert",
    "hudiOptions": {"hoodie.parquet.max.file.size": "1000"},
}  # fmt: skip
