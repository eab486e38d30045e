"""Pure model: facts, protocol records, planning rules' vocabulary. No I/O, no asyncio."""
