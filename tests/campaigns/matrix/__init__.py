"""RFC-22's test plan, cell by cell (`make matrix`)."""
