"""Red-blue pebble games on attention's computation graphs, with every I/O counted exactly."""
