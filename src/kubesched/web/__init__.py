"""The web page: its data as JSON, and its files."""
