"""Question families and the small worlds they are about: what the tasks ask, and what the reader is trained on."""
