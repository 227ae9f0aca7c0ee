"""The command line: one file per command; torch and friends are imported inside the commands."""
