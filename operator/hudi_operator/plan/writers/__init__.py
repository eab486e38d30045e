"""HudiWriters: which ones may start now and what the others wait for.

The life of attempts and the status of writers are decided here, too.

`admission` decides, `attempts` executes. Reasons to wait (`block`) or to stop come from `runs`,
`overlaps`, `schedules`, `source_tables`, `replacing`, `event_log`, `deadlines`, `held_up` (time
that counts towards no deadline) and `ending_for_change`; `out_of_memory` gives the next attempt
more memory. `executors_missing`, `committed_condition`, `duplicates`, `next_step` and
`writer_status` show the result to people, `starting_status` says which part of it may be written
later, and `awaited` whether the end of a wait comes as an event. Uses every package below. Keeps F5
and I9: a writer's next attempt starts only when no older one can hold or get the lock, and an
attempt is in status before any of its objects exists (I6).
"""
