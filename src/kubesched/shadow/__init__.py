"""Shadow mode: watches another scheduler and decides beside it, without writing anything."""
