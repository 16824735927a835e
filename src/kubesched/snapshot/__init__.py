"""A cluster as it was at one moment: read from a server, a file or manifests, and asked what-if."""
