"""Enumerated crashes: one run of the operator for each of its writes and each way in which that
write can go wrong.
"""
