"""The journal of what the scheduler saw and decided: its entries, written and read."""
