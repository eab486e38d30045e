"""Tests of who is suspect, what proves a death, how a dead writer is settled, and what is collected
(I1, I2, I6).
"""
