"""The contract between operator, agents and drivers: what more than one process reads or writes, said once.

Key names and the data file `protocol.json` (keys, transactions, error codes, default durations), names of pods, attempts, agents, labels and
finalizers, the shapes of records in etcd, the settle record with its phases and reasons, and the rules for each option of Hudi (`hudi_options.tsv`).
The Java module packs both data files. Uses the standard library alone, imports nothing of the operator or the runtime, and does no I/O beyond reading
its own data. Keeps I6: every name follows from its inputs, so an action that is repeated finds what it made before.
"""
