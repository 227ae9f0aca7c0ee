"""The model side: loading, buffers, positions, forwards over sparse query tokens, decoding."""
