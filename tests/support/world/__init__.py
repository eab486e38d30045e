"""What planners and pure parts of the runtime see, simulated: cluster, etcd, processes and clocks that a test moves; and samples of jobs and
callbacks.
"""
