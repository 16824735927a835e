"""The scheduling framework: extension points, their results, and the runtime of a profile."""
