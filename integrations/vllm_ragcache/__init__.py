"""ragcache for vLLM: its server loads the KV of chunks that stand in a prompt, in any order, from an index.

`ragcache serve --engine vllm` starts it.
"""
