"""Tuning a trained language model by LoRA to answer from several passages, in their words."""
