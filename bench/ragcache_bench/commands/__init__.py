"""`ragcache bench …` and `ragcache doctor`: the commands that measure."""
