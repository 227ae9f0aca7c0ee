"""Training of the bundled reader, its invented worlds, and the demo corpus."""
