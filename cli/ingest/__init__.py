"""``pagefleet ingest``: folders, manifests and archives go to the API, each file once."""
