"""Results as pictures and as pages that need nothing beside themselves."""
