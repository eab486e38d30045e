"""Options of a plain write after which Hudi archives almost everything."""

from __future__ import annotations

OPTIONS = {
    "hoodie.table.name": "archived",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.commitmeta.key.prefix": "hudioperator.",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.embed.timeline.server": "false",
}
