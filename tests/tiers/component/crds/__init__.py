"""CRDs, admission policies, chart and examples, put to a real API server."""
