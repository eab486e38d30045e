"""Upkeep of the chart's etcd: what is taken for a backup, and what the command is told."""
