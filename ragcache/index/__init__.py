"""Documents, their chunks, and what is stored of them: ingestion, life cycle, settings."""
