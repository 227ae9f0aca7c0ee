"""ragcache: prefill each RAG chunk once, answer from its KV cache."""
