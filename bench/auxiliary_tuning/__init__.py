"""How the auxiliary of `cacheclip` is tuned to choose the tokens that the primary would (CacheClip's first version)."""
