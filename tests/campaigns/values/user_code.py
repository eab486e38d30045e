"""Program of the writers of this campaign: one batch per SELECT of their arguments."""

from __future__ import annotations


def queries(spark, context):
    for query in context.arguments["queries"]:
        yield spark.sql(query)
