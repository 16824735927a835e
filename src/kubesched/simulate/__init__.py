"""What-if simulations: headroom, node changes, another configuration; on the real engine."""
