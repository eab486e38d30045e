"""The gate in etcd: it controls who may acquire the table's lock.

It also has the mode, versions and durations under which that happens.

`gate` opens, closes and freezes it, `releasing` gives it up, `taking_over` does so for a HudiTable
that is gone, by a person's word, `adoption` handles instants that earlier writers left
in the table (I7), `turns` lets one of several HudiTables of a path keep the gate, `asked` says
whether the agent is asked for something behind the closed gate, `trust` whether etcd can be
trusted, `stalled` determines why a table cannot continue until a person changes something. Uses
requests, fencing and core; does not know agent pods or single writers. Parameters change only while
the gate is closed and no attempt that started under the old ones is left.
"""
