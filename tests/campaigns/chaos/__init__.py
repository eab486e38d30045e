"""Writers of overlapping keys on a real cluster, and something killed or frozen
every few seconds.
"""
