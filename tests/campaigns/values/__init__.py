"""Values that a table can hold: edge values of each type in each role, written, tended and read
back (docs/use/what-a-table-can-hold.md).
"""
