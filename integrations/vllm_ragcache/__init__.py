"""ragcache for vLLM: its server loads the KV of chunks that stand in a prompt, in any order, from an index.

`python -m vllm_ragcache` starts it.
"""
