"""One answer: a request, its chunks' KV loaded, some tokens recomputed, and the text that comes out."""
