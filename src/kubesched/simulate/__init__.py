"""What if: headroom, nodes that come or go, another configuration; on the engine that schedules."""
