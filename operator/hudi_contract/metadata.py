"""Names in the metadata of commits that the operator's writers and agents make."""

PREFIX = "hudioperator."
"""`hoodie.datasource.write.commitmeta.key.prefix`: options with this prefix become metadata
of the commit.
"""
WRITER = f"{PREFIX}writer"
"""namespace/name of the HudiWriter."""
ATTEMPT = f"{PREFIX}attempt"
INC = f"{PREFIX}inc"
"""Incarnation."""
PROGRESS = f"{PREFIX}progress"
"""Position in the source, JSON. Absent from a commit that has no rows and only changes
the table's columns.
"""
BOOTSTRAP = f"{PREFIX}bootstrap"
"""`BootstrapMark`, JSON."""
