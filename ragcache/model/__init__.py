"""The model: the only folder that touches the internals of transformers."""
