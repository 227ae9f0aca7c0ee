"""Tasks, metrics and runs: how good and how fast each method answers."""
