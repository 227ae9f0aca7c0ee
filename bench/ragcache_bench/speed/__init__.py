"""Times: to the first token, over a trace of questions, of several questions at once, of ingestion."""
