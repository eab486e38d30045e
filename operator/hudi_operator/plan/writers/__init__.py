"""HudiWriters: which ones may start now and what the others wait for.

The life of attempts and the status of writers are decided here, too.

`admission` decides, `attempts` executes, `runs`, `overlaps`, `schedules`, `source_tables` and
`ending_for_change` give reasons to wait or to stop, `committed_condition`, `duplicates` and
`writer_status` show the result to people. Uses every package below. Keeps F5 and I9: a writer's
next attempt starts only when no older one can hold or get the lock, and an attempt is in status
before any of its objects exists (I6).
"""
