"""The gate in etcd: who may acquire the table's lock at all, and under which mode, versions and durations.

`gate` opens, closes, freezes and releases it, `adoption` handles what others left in the table before (I7), `stalled` says why a table cannot go on
until a person changes something. Uses requests, fencing and core; knows nothing of agent pods or of single writers. Parameters change only while the
gate is closed and nobody is left who started under the old ones.
"""
