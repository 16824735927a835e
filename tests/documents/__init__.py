"""The documentation as something that can be run: read, classified, and its commands executed."""
