"""ragcache for vLLM: its server loads the KV of chunks that stand in a prompt, in any order, from an index.

>>> # python -m vllm_ragcache --index ./index --port 8000
"""
