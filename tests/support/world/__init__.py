"""Simulation of everything that planners and pure parts of the runtime see: cluster, etcd,
processes and clocks that a test moves (`simulated_world`), what is true in them (`judged_world`)
and random histories of them (`histories`); fakes of table, session and etcd for one service each
(`fake_...`), and worlds whose requests the agent's own code serves (`meeting`, `served`).
"""
